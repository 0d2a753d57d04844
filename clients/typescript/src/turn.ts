// What a session waits for: a turn with what a model has asked for, or a single call.
import { TooldError, toJSON, type Item } from "./errors.js";
import type { ExecuteResponse, ModelFormat, Notice, ToolResult } from "./gen/toold/v1/event_pb.js";
import type { ExecuteRequest } from "./gen/toold/v1/tool_pb.js";

/** @internal Sends a message of the session's. */
export type Send = (message: ExecuteRequest["message"]) => void;

/** A model's message on its way to the daemon. A session has one at a time. */
export class Turn {
  /** @internal */
  readonly over: Promise<Item[]>;
  private settle!: { resolve(items: Item[]): void; reject(error: Error): void };
  private readonly results = new Map<string, { index: number; item: Item }>(); // the first of each call
  private failure: TooldError | undefined;
  private events = 0n;
  private isOpen = true;
  private isDiscarded = false;

  /** @internal */
  constructor(
    /** The turn's name in the session. */
    readonly id: string,
    private readonly begin: () => void,
    private readonly send: Send,
    private readonly sent: () => void,
    private readonly format: ModelFormat,
  ) {
    this.over = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
    this.over.catch(() => {}); // end() has it
  }

  /**
   * Passes on the next event of the model's stream, verbatim: the object that the SDK yields, the JSON text, or `[DONE]`.
   * A call runs as soon as its block is complete. It returns at once; errors come from {@link end}.
   */
  feed(event: object | string): void {
    if (!this.isOpen) throw new TooldError("FAILED_PRECONDITION", "", "the turn has ended");
    const json = typeof event === "string" ? event : toJSON("an event", event);
    if (this.events === 0n) this.begin();
    this.send({ case: "modelEvent", value: { $typeName: "toold.v1.ModelEvent", turnId: this.id, index: this.events++, format: this.format, json } });
  }

  /**
   * Says that no more events come, and waits until each call has its result. Returns the items to append, in the order of
   * the calls, as {@link Session.run} does. A call whose block is not complete does not run.
   */
  end(): Promise<Item[]> {
    if (this.close() && this.events > 0n) this.send({ case: "endTurn", value: { $typeName: "toold.v1.EndTurn", turnId: this.id } });
    if (this.events === 0n) this.settle.resolve([]);
    return this.over;
  }

  /** Throws the message away: its calls end as discarded, and {@link end} returns no items. */
  async discard(): Promise<void> {
    this.isDiscarded = true;
    if (this.close() && this.events > 0n) this.send({ case: "discardTurn", value: { $typeName: "toold.v1.DiscardTurn", turnId: this.id } });
    if (this.events > 0n) await this.over;
  }

  /** Stops the calls of the turn. Each has its result all the same: end() returns it. `reason` is for the model. */
  cancel(reason = ""): void {
    this.send({ case: "cancel", value: { $typeName: "toold.v1.Cancel", turnId: this.id, toolUseId: "", reason } });
  }

  /** @internal Takes an event of the turn. Reports whether it was the last. */
  take({ event }: ExecuteResponse): boolean {
    switch (event.case) {
      case "toolResult": {
        const { toolUseId, index, nativeJson } = event.value;
        if (nativeJson && !this.results.has(toolUseId)) this.results.set(toolUseId, { index, item: JSON.parse(nativeJson) });
        break;
      }
      case "turnEnded":
        this.close();
        if (this.failure) this.fail(this.failure);
        else this.settle.resolve(this.items());
        return true;
    }
    return false;
  }

  /** @internal Notes that the message cannot be used. The end of the turn follows. */
  refuse({ code, message }: Notice): void {
    this.failure ??= new TooldError(code === "model_failed" ? "ABORTED" : "INVALID_ARGUMENT", code, message);
  }

  /** @internal */
  fail({ code, reason, message, metadata }: TooldError): void {
    this.close();
    this.settle.reject(new TooldError(code, reason, message, metadata, this.items()));
  }

  private close(): boolean {
    const was = this.isOpen;
    this.isOpen = false;
    if (was) this.sent();
    return was;
  }

  private items(): Item[] {
    if (this.isDiscarded) return [];
    const items = [...this.results.values()].sort((a, b) => a.index - b.index).map(({ item }) => item);
    return items[0]?.type === "tool_result" ? [{ role: "user", content: items }] : items;
  }
}

/** How much progress is held for a reader that does not read: as many events. */
const maxProgress = 1000;

/**
 * One call. Iterating over it yields its events from Accepted to ToolResult; of progress that is not read the newest is
 * dropped beyond 1,000 events (`Client.output` has all of what the call printed). It can be iterated once.
 */
export class Call implements AsyncIterable<ExecuteResponse> {
  private readonly ended: Promise<ToolResult>;
  private settle!: { resolve(result: ToolResult): void; reject(error: Error): void };
  private readonly unread: ExecuteResponse[] = [];
  private wake = () => {};
  private isOver = false;

  /** @internal */
  constructor(
    /** Its id, by which `Client.output` finds it. */
    readonly id: string,
    /** The name of its turn. */
    readonly turnId: string,
    private readonly send: Send,
  ) {
    this.ended = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
    this.ended.catch(() => {}); // result() has it
  }

  /**
   * Waits for the result. A call that was denied, has failed or was cancelled has one too: see `outcome` and `error`. Throws
   * a TooldError only if the daemon cannot be reached any more, or has refused the id.
   */
  result(): Promise<ToolResult> {
    return this.ended;
  }

  /** Stops the call. Its result follows. `reason` is for the model. */
  cancel(reason = ""): void {
    if (!this.isOver) this.send({ case: "cancel", value: { $typeName: "toold.v1.Cancel", toolUseId: this.id, turnId: this.turnId, reason } });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ExecuteResponse, void, undefined> {
    for (;;) {
      for (let event = this.unread.shift(); event; event = this.unread.shift()) yield event;
      if (this.isOver) return void (await this.ended);
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** @internal Takes an event of the turn. Reports whether it was the last. */
  take(response: ExecuteResponse): boolean {
    const { event } = response;
    if (event.case === "turnEnded") return true;
    const mine = event.value && "toolUseId" in event.value && event.value.toolUseId === this.id;
    const tooMuch = event.case === "progress" && this.unread.length >= maxProgress;
    if (!mine || this.isOver || tooMuch) return false; // a second result changes nothing
    this.unread.push(response);
    if (event.case === "toolResult") {
      this.isOver = true;
      this.settle.resolve(event.value);
    }
    this.wake();
    return false;
  }

  /** @internal */
  fail(error: TooldError): void {
    this.isOver = true;
    this.settle.reject(error);
    this.wake();
  }
}
