// The Execute stream of a session, which survives the loss of its connection.
import { status } from "@grpc/grpc-js";
import { create } from "@bufbuild/protobuf";
import { TooldError, asError, isBreak } from "./errors.js";
import { Ledger } from "./ledger.js";
import type { Execution, Link } from "./link.js";
import { AttachSchema, ExecuteRequestSchema, type Attach, type ExecuteRequest } from "./gen/toold/v1/tool_pb.js";
import type { ExecuteResponse } from "./gen/toold/v1/event_pb.js";

export interface Dial {
  link(): Promise<Link>;
  /** A connection is broken: the next link() is another one. */
  lost(link: Link): void;
}

export interface Receiver {
  /** Each event in its order; the first of each stream is Attached. */
  event(event: ExecuteResponse): void;
  /** The stream has ended and is not resumed. What was sent has no answer any more. */
  failed(error: TooldError): void;
  epoch(epoch: string): void;
}

/**
 * While calls are under way or a turn is open, a lost stream is resumed at once, after the last record received, by a
 * daemon that may be another one. Otherwise it attaches again when it is used next. What the daemon may not have is sent
 * again in its order.
 */
export class Stream {
  id = "";
  private epoch = "";
  readonly ledger = new Ledger();
  private call: Execution | undefined;
  private attaching = false;
  private closed = false;
  private waiting: ExecuteRequest[] = []; // sent while attaching, and not kept by the ledger

  constructor(
    private readonly dial: Dial,
    private readonly attach: Attach,
    private readonly receiver: Receiver,
  ) {}

  /** Attaches for the first time. */
  async begin(): Promise<void> {
    this.attaching = true;
    try {
      await this.open();
    } catch (error) {
      if (!isBreak(asError(error))) throw error;
      await this.open(); // the connection was an old one
    }
  }

  send(message: ExecuteRequest["message"]): void {
    if (this.closed) throw closed();
    const request = create(ExecuteRequestSchema, { message });
    const kept = this.ledger.add(request);
    if (this.call) {
      this.call.write(request);
      return;
    }
    if (!kept && !message.case?.startsWith("buffer")) this.waiting.push(request); // a new stream has the newest texts alone
    if (this.attaching) return;
    this.attaching = true;
    this.open().catch((error) => this.fail(asError(error)));
  }

  close(): void {
    this.closed = true;
    this.call?.cancel();
    this.fail(closed());
  }

  /** Attaches, and sends again what the daemon may not have. */
  private async open(): Promise<void> {
    try {
      await this.greet();
    } catch (error) {
      if (!(error instanceof TooldError && error.code === "OUT_OF_RANGE" && this.ledger.last > 0n)) throw error;
      this.ledger.last = 0n; // the records have other numbers now
      await this.greet();
    }
  }

  private async greet(): Promise<void> {
    const link = await this.dial.link();
    if (this.closed) throw closed();
    const call = link.execute();
    await new Promise<void>((resolve, reject) => {
      const ended = (error: TooldError) => {
        if (this.call === call) return void this.resume(link, error);
        if (isBreak(error)) this.dial.lost(link);
        reject(error);
      };
      let first = true;
      call.on("error", (error) => ended(asError(error)));
      call.on("status", ({ code }) => code === status.OK && ended(new TooldError("CANCELLED", "", "the daemon has ended the stream")));
      call.on("data", (event: ExecuteResponse) => {
        if (this.call === call) return this.receive(event);
        if (!first) return; // of a stream that was given up: it comes again
        first = false;
        try {
          this.attached(call, event);
          resolve();
        } catch (error) {
          call.cancel();
          reject(asError(error));
        }
      });
      call.write(create(ExecuteRequestSchema, { message: { case: "attach", value: this.nextAttach() } }));
    });
  }

  /** A new stream is attached, unless its records are not those that the last one had. */
  private attached(call: Execution, first: ExecuteResponse): void {
    if (this.closed) throw closed();
    if (first.event.case !== "attached") throw new TooldError("INTERNAL", "", "the daemon did not begin with attached");
    const { sessionId, epoch } = first.event.value;
    if (this.id === "") this.ledger.begin(this.attach, first.event.value);
    const changed = this.epoch !== "" && this.epoch !== epoch;
    [this.id, this.epoch] = [sessionId, epoch];
    if (changed) {
      this.receiver.epoch(epoch);
      if (this.ledger.last > 0n) throw new TooldError("OUT_OF_RANGE", "", "the records have other numbers now");
    }
    this.call = call;
    this.receive(first);
    for (const request of [...this.ledger.unconfirmed(), ...this.waiting]) call.write(request);
    this.attaching = false;
    this.waiting = [];
  }

  private nextAttach(): Attach {
    if (this.id === "") return this.attach;
    const { env, client, capabilities, clientTools, role } = this.attach;
    return create(AttachSchema, { sessionId: this.id, afterSeq: this.ledger.last, env, client, capabilities, clientTools, role });
  }

  private receive(event: ExecuteResponse): void {
    if (this.ledger.confirm(event)) this.receiver.event(event);
  }

  /** Attaches again after a stream has ended with an error, while calls are under way. */
  private async resume(link: Link, error: TooldError): Promise<void> {
    this.call = undefined;
    this.attaching = true;
    if (isBreak(error)) this.dial.lost(link);
    while (isBreak(error) && !this.closed && this.ledger.resumable()) {
      try {
        return await this.open();
      } catch (again) {
        error = asError(again);
      }
    }
    this.fail(error);
  }

  private fail(error: TooldError): void {
    this.ledger.forget();
    this.call = undefined;
    this.attaching = false;
    this.waiting = [];
    this.receiver.failed(error);
  }
}

function closed(): TooldError {
  return new TooldError("CANCELLED", "session_closed", "this client has closed the session");
}
