// A session's Execute stream beside its agent: what comes is passed on, a lost session is attached again.
import { Bridge, Failure, type Message } from "./bridge";

/** A call that the window knows of. */
export type Call = { id: string; turn?: string; title: string; state: "waiting" | "running" | "ended"; outcome?: string };

/** What the editor does for a session. Promises that are rejected are the editor's failure, told to the agent. */
export interface Editor {
  /** The session is attached, for the first time or again: what it has to know is sent. */
  attached(session: Session): void;
  /** A question is open, or asked again. */
  ask(session: Session, question: Message): void;
  /** A question no longer matters. */
  withdraw(questionId: string): void;
  /** A call wants a buffer changed; the new version is returned. */
  edit(edit: Message): Promise<number>;
  /** A program is about to see the disk; the paths that stay unsaved are returned. */
  save(paths: string[]): Promise<string[]>;
  /** One of the editor's tools is called. */
  run(name: string, input: Message, signal: AbortSignal): Promise<string>;
  /** Calls have changed: begun, running, ended. */
  changed(): void;
  /** Something to tell the user. */
  tell(text: string): void;
  /** The session is over for this window. */
  lost(why: string): void;
}

/** How often a lost session is attached again, each time after twice the wait of the one before, in ms. */
const tries = 6, firstWait = 250;

/** How many ended calls are kept for the tree. */
const kept = 50;

const hopeless = ["NOT_FOUND", "INVALID_ARGUMENT", "PERMISSION_DENIED", "FAILED_PRECONDITION", "UNAUTHENTICATED"];

/** A session that this window stands beside: it answers, offers text and tools, and sends no tool uses. */
export class Session {
  readonly calls = new Map<string, Call>();
  private readonly bridge: Bridge;
  private readonly running = new Map<string, AbortController>();
  private stream = 0;
  private failed = 0;
  private closed = false;
  private afterSeq?: string;
  private retry?: NodeJS.Timeout;

  constructor(command: string[], private readonly roots: string[], private name: string, private readonly tools: Message[], private readonly editor: Editor) {
    this.bridge = new Bridge(command, roots[0], (_, state) => state !== "attached" && this.editor.attached(this), (text) => this.editor.tell(text));
    this.join();
  }

  /** The session's name; empty until it is attached, if it was not given. */
  get id(): string { return this.name; }

  /** Sends a message on the stream. */
  send(message: Message): void { this.bridge.send(this.stream, message); }

  /** A method of the daemon that answers once. */
  request(method: string, params: Message): Promise<Message> { return this.bridge.request(method, params).result; }

  /** Detaches. The session goes on. */
  close(): void {
    this.closed = true;
    clearTimeout(this.retry);
    for (const stop of this.running.values()) stop.abort();
    this.bridge.close();
  }

  private join(): void {
    const attach = {
      session_id: this.name, role: "ROLE_COMPANION", roots: this.roots, after_seq: this.afterSeq, client: { name: "vscode-toold", version: "0.1.0" },
      capabilities: { answers: true, buffers: true, file_changes: true, no_structured: true }, client_tools: this.tools,
    };
    const { id, result } = this.bridge.request("ToolService/Execute", { attach }, (event) => this.take(event));
    this.stream = id;
    result.then(() => this.lost(new Failure("the stream has ended")), (failure) => this.lost(failure));
  }

  private lost(failure: Failure): void {
    if (this.closed) return;
    if (failure.status === "OUT_OF_RANGE") this.afterSeq = undefined; // records are lost: on from what there is
    if (++this.failed > tries || !this.bridge.running || hopeless.includes(failure.status)) {
      this.close();
      this.editor.lost(failure.message);
      return;
    }
    this.retry = setTimeout(() => this.join(), firstWait * 2 ** (this.failed - 1));
  }

  private take(event: Message): void {
    if (event.seq) this.afterSeq = event.seq;
    if (event.attached) {
      this.name = event.attached.session_id;
      this.failed = 0;
      this.editor.attached(this);
    } else if (event.accepted) this.note({ id: event.accepted.tool_use_id, turn: event.turn, title: event.accepted.title || event.accepted.name, state: "waiting" });
    else if (event.started) this.note({ id: event.started.tool_use_id, state: "running" });
    else if (event.tool_result) this.note({ id: event.tool_result.tool_use_id, state: "ended", outcome: event.tool_result.outcome });
    else if (event.question) this.editor.ask(this, event.question);
    else if (event.question_withdrawn) this.editor.withdraw(event.question_withdrawn.question_id);
    else if (event.client_tool_use) void this.run(event.client_tool_use, event.turn_id);
    else if (event.client_tool_cancel) this.running.get(event.client_tool_cancel.tool_use_id)?.abort();
    else if (event.buffer_edit) void this.edit(event.buffer_edit, event.turn_id);
    else if (event.save_buffers) void this.save(event.save_buffers, event.turn_id);
    else if (event.notice && !["file_changed", "buffer_conflict"].includes(event.notice.code)) this.editor.tell(event.notice.message);
    else if (event.session_changed?.closed) {
      this.close();
      this.editor.lost("the session was closed");
    }
  }

  private note(call: Partial<Call> & { id: string }): void {
    this.calls.set(call.id, { title: call.id, state: "waiting", ...this.calls.get(call.id), ...call });
    const ended = [...this.calls.values()].filter((c) => c.state === "ended");
    for (const old of ended.slice(0, -kept)) this.calls.delete(old.id);
    this.editor.changed();
  }

  private async run(use: Message, turn_id?: string): Promise<void> {
    const stop = new AbortController();
    this.running.set(use.tool_use_id, stop);
    const reply: Message = { tool_use_id: use.tool_use_id, turn_id };
    try {
      reply.content = [{ text: await this.editor.run(use.name, JSON.parse(use.input_json || "{}"), stop.signal) }];
    } catch (error) {
      reply.content = [{ text: wordsOf(error) }];
      reply.is_error = true;
    }
    this.running.delete(use.tool_use_id);
    this.send({ client_tool_result: reply });
  }

  private async edit(edit: Message, turn_id?: string): Promise<void> {
    const reply: Message = { tool_use_id: edit.tool_use_id, turn_id };
    try {
      reply.version = await this.editor.edit(edit);
    } catch (error) {
      reply.error = wordsOf(error);
    }
    this.send({ buffer_edited: reply });
  }

  private async save({ tool_use_id, paths = [] }: Message, turn_id?: string): Promise<void> {
    const unsaved = await this.editor.save(paths).catch(() => paths);
    this.send({ buffers_saved: { tool_use_id, turn_id, unsaved } });
  }
}

function wordsOf(error: unknown): string { return error instanceof Error ? error.message : String(error); }
