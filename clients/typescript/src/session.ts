// A session: turns, calls, questions, and tools that the client runs.
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { resolve } from "node:path";
import { inspect } from "node:util";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { answerMessage, guarded, resultMessage, text, warn, type Answer, type ToolOutput } from "./callbacks.js";
import type { Client } from "./client.js";
import { TooldError, known, oneOf, refuse, toJSON, type Item } from "./errors.js";
import { Stream } from "./stream.js";
import { Call, Turn } from "./turn.js";
import { ModelFormat, type BufferEdit, type ClientToolUse, type Content, type ExecuteResponse, type Notice, type Question, type SaveBuffers } from "./gen/toold/v1/event_pb.js";
import { PermissionMode, type OptionsSchema } from "./gen/toold/v1/options_pb.js";
import { SessionService, type ListCheckpointsResponse, type RestoreResponse } from "./gen/toold/v1/session_pb.js";
import { AttachSchema, BufferEditedSchema, BuffersSavedSchema, Decision, ToolUseSchema, type Answer as AnswerMessage, type ClientToolResult } from "./gen/toold/v1/tool_pb.js";

/** What happens to calls that would have to ask. */
export type Mode = "default" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions";

/** A tool that this program runs itself. */
export interface ClientTool {
  /** 1 to 64 letters, digits, underscores and dashes. */
  name: string;
  /** Markdown, for the model. */
  description: string;
  /** JSON Schema of the input, which is checked before `run` is called. Default: an object with anything in it. */
  schema?: object;
  /** It changes nothing: its calls may run beside others, and are not asked about. */
  readOnly?: boolean;
  /** How long a call may run, in milliseconds; default: 10 minutes. */
  timeout?: number;
  /** Runs one call. What it throws is the call's error, for the model, and so is a result that is no {@link ToolOutput}. `signal` is aborted when the call was cancelled. */
  run(input: any, call: { id: string; signal: AbortSignal }): ToolOutput | Promise<ToolOutput>;
}

/** How to attach. */
export interface SessionOptions {
  /** Joins the session of this name, or makes one. Without it: a new session, which ends when it is closed. */
  name?: string;
  /** Directories; the first is where commands begin. Only of a new session. Default: the current directory. `[]`: `name` is not made. */
  roots?: string | string[];
  /** Default: that of the session, or `default`. */
  mode?: Mode;
  /** The form of what a model's API returns. It is found out, but for `anthropicNative` and `agentToolset`, where the model has tools of its own. */
  format?: keyof typeof modelFormats;
  /** The environment of child processes. Default: PATH, HOME, USER, SHELL, LANG, LC_* and TMPDIR of the daemon. */
  env?: Record<string, string>;
  /**
   * Answers a question. What it throws is a no, and so is everything that is not an answer: the model reads why. `signal` is aborted when
   * the answer no longer matters. Without it calls that would have to ask are denied.
   */
  onQuestion?(question: Question, context: { signal: AbortSignal }): Answer | boolean | Promise<Answer | boolean>;
  tools?: ClientTool[];
  /** Is called with the new text of a buffer that a call has edited. Without it the session has no buffers. */
  onEdit?(path: string, text: string): void;
  /**
   * Writes the unsaved text of a buffer to its file, because a program of a call is about to read the disk: the call waits 2 s. When it has returned,
   * the text is withdrawn. Without it, or when it throws, the call's result says what was not saved.
   */
  onSave?(path: string, text: string): void | Promise<void>;
  /** Everything else of a session: toold.v1.Options. */
  options?: MessageInitShape<typeof OptionsSchema>;
}

/** How far to go, and which files. Without turn and call: the newest turn that has changed something and is not undone. */
export interface UndoOptions {
  /** Before this turn, by its number. */
  turn?: bigint;
  /** Before this call. */
  call?: string;
  /** Only these files, and files below them; absolute. */
  paths?: string[];
  /** Only return what would be done. */
  dryRun?: boolean;
  /** Also restore files that another program has changed since. */
  force?: boolean;
}

interface Events {
  /** Every event of the stream, as the contract has it. */
  event: [ExecuteResponse];
  notice: [Notice];
  /** The stream has broken and goes on. */
  resumed: [];
  /** The daemon has lost records, and their numbers may be given twice: what is stored by number is void. */
  epoch: [string];
}

/** A question that was put to the program. */
interface Asked {
  answer: Promise<AnswerMessage>;
  /** Aborted when the answer no longer matters. */
  ended: AbortController;
  /** The call, with its turn. */
  of: string;
}

/**
 * A session of the daemon. While calls are under way, a lost stream is resumed at once, by a daemon that is started again
 * if need be: each call has exactly one result, and none runs twice. Otherwise the session attaches again when it is used next.
 */
export class Session extends EventEmitter<Events> {
  private readonly stream: Stream;
  private readonly format: ModelFormat; // of what a model's API returns
  private readonly turns = new Map<string, Turn | Call>(); // those that have not ended, by their names
  private readonly answers = new Map<string, Asked>(); // by question
  private readonly running = new Map<string, { controller: AbortController; result?: ClientToolResult }>(); // calls of the client's tools
  private streams = 0;
  private open: Turn | undefined; // the turn whose message is coming

  private constructor(
    private readonly client: Client,
    private readonly settings: SessionOptions,
  ) {
    super({ captureRejections: true }); // of listeners: they end up in [captureRejectionSymbol]
    this.format = settings.format === undefined ? ModelFormat.UNSPECIFIED : oneOf("format", settings.format, modelFormats);
    known("a session's options", settings, sessionFields);
    const { name, roots = process.cwd(), mode, env = {}, tools = [], options = {} } = settings;
    const functions = [["onQuestion", settings.onQuestion], ["onEdit", settings.onEdit], ["onSave", settings.onSave], ...tools.map(({ name, run }) => [`run of the tool ${name}`, run ?? null])];
    for (const [what, f] of functions) if (f !== undefined && typeof f !== "function") throw refuse(`${what} is ${inspect(f)}, not a function`);
    const attach = create(AttachSchema, {
      sessionId: name ?? "",
      roots: [roots].flat().map((root) => resolve(root)),
      env,
      client: { name: "toold-typescript", version: "0.1.0" },
      capabilities: { answers: settings.onQuestion !== undefined, buffers: settings.onEdit !== undefined, nativeResults: true },
      clientTools: tools.map(({ name, description, schema, readOnly, timeout }) => ({
        name, description, readOnly, inputSchemaJson: schema && JSON.stringify(schema), timeout: timeout === undefined ? undefined : durationFromMs(timeout),
      })),
      options: { ...options, ...(mode !== undefined && { permissionMode: oneOf("mode", mode, modes) }) },
    });
    this.stream = new Stream(client, attach, {
      event: (event) => this.take(event),
      failed: (error) => this.failed(error),
      epoch: (epoch) => void this.emit("epoch", epoch),
    });
  }

  /** @internal */
  static async attach(client: Client, settings: SessionOptions): Promise<Session> {
    const session = new Session(client, settings);
    await session.stream.begin();
    return session;
  }

  /** The session's name. */
  get id(): string {
    return this.stream.id;
  }

  /**
   * Runs what a model has asked for in one message: the whole message or response object of its API, or the JSON of it. Returns
   * what to append to the conversation, in the order of the calls: for Anthropic one message of the user, for OpenAI Chat the
   * messages of the role tool, for Responses the output items; `[]` if the model asked for nothing.
   * Calls that were denied or have failed have items too, for the model. Throws a TooldError if the message cannot be read
   * (`invalid_model_event`) or the daemon cannot be reached. `signal` cancels the calls, which then have their items soon.
   */
  async run(message: object | string, { signal }: { signal?: AbortSignal } = {}): Promise<Item[]> {
    const turn = this.turn();
    const stop = () => turn.cancel();
    try {
      turn.feed(message);
    } catch (error) {
      void turn.discard(); // nothing of it was sent
      throw error;
    }
    const items = turn.end();
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
    return items.finally(() => signal?.removeEventListener("abort", stop));
  }

  /** Begins a turn to feed with the events of a model's stream. `id` is its name, not used before in this session. */
  turn(id: string = randomUUID()): Turn {
    this.expectNoOpenTurn();
    const begin = () => void this.turns.set(id, turn); // until then a stream that fails is not the turn's
    const turn: Turn = new Turn(id, begin, (message) => this.stream.send(message), () => (this.open = undefined), this.format);
    return (this.open = turn);
  }

  /** Starts one call, as a turn of its own. `timeout` is in milliseconds; the tool's limit bounds it. */
  call(name: string, input: unknown = {}, { id = `call-${randomUUID()}`, timeout }: { id?: string; timeout?: number } = {}): Call {
    this.expectNoOpenTurn();
    const inputJson = toJSON("input", input);
    const turnId = randomUUID();
    const call = new Call(id, turnId, (message) => this.stream.send(message));
    this.turns.set(turnId, call);
    const use = create(ToolUseSchema, { id, name, turnId, arguments: { case: "inputJson", value: inputJson } });
    if (timeout !== undefined) use.timeout = durationFromMs(timeout);
    this.stream.send({ case: "toolUse", value: use });
    this.stream.send({ case: "endTurn", value: { $typeName: "toold.v1.EndTurn", turnId } });
    return call;
  }

  /** The user broke in: stops every open turn, but lets calls finish that cannot be interrupted. `reason` is for the model. */
  interrupt(reason = ""): void {
    this.stream.send({ case: "interrupt", value: { $typeName: "toold.v1.Interrupt", reason } });
  }

  /** Offers the unsaved text of a file, in place of what is on the disk; without a text: not any more. It needs `onEdit`. */
  buffer(path: string, text?: string): void {
    if (text !== undefined) return this.stream.send({ case: "bufferChanged", value: this.stream.ledger.buffer(path, text) });
    this.stream.ledger.buffers.set(path, undefined);
    this.stream.send({ case: "bufferClosed", value: { $typeName: "toold.v1.BufferClosed", path } });
  }

  /**
   * Puts files back. Refuses with `restore_conflict` if another program has changed one of them since, unless forced. It is a
   * call itself, so it can be undone: `undo({call: response.toolUseId})`.
   */
  async undo({ turn, call, paths = [], dryRun, force }: UndoOptions = {}): Promise<RestoreResponse> {
    if (turn === undefined && call === undefined) turn = await this.newestChange();
    const point = call !== undefined ? ({ case: "toolUseId", value: call } as const) : ({ case: "turn", value: turn! } as const);
    return this.client.unary(SessionService.method.restore, { sessionId: this.id, point, paths, dryRun, force });
  }

  /** What calls have changed, newest first, each with its diff, and in `net` what has become of each file: of all turns, or of one turn or call. */
  diff({ turn, call = "", paths = [] }: Pick<UndoOptions, "turn" | "call" | "paths"> = {}): Promise<ListCheckpointsResponse> {
    return this.client.unary(SessionService.method.listCheckpoints, { sessionId: this.id, turn, toolUseId: call, paths, net: true });
  }

  /**
   * Leaves the session. What is under way goes on in one with a name; one without ends, and the promise waits for that. Whoever waits for a call
   * gets a TooldError.
   */
  async close(): Promise<void> {
    this.stream.close();
    await this.client.left(this, !this.settings.name && this.id !== "");
  }

  /** A listener that throws ends neither the stream nor the program: what it throws is a warning of the process. */
  override emit<E extends keyof Events>(event: E, ...args: Events[E]): boolean {
    guarded(() => super.emit(event, ...args as never));
    return this.listenerCount(event) > 0;
  }

  private async newestChange(): Promise<bigint> {
    for (let pageToken = ""; ; ) {
      const page = await this.client.unary(SessionService.method.listCheckpoints, { sessionId: this.id, noDiffs: true, pageToken });
      const newest = page.checkpoints.find(({ undone, restore, running }) => !undone && !restore && !running);
      if (newest) return newest.turn;
      pageToken = page.nextPageToken;
      if (!pageToken) throw new TooldError("NOT_FOUND", "", "the session has changed nothing that is not undone");
    }
  }

  /** @internal What a listener's promise was rejected with. */
  override [EventEmitter.captureRejectionSymbol](error: unknown, ..._: unknown[]): void {
    warn(error);
  }

  private expectNoOpenTurn(): void {
    if (this.open) throw new TooldError("FAILED_PRECONDITION", "turn_open", "the message of another turn is still coming: end() or discard() it first");
  }

  private take(response: ExecuteResponse): void {
    const { event, turnId } = response;
    switch (event.case) {
      case "attached":
        if (this.streams++ > 0) this.emit("resumed");
        break;
      case "question":
        this.ask(event.value, turnId);
        break;
      case "questionWithdrawn":
        this.forget(event.value.questionId);
        break;
      case "clientToolUse":
        void this.runTool(event.value, turnId);
        break;
      case "clientToolCancel":
        this.running.get(`${turnId}/${event.value.toolUseId}`)?.controller.abort();
        break;
      case "toolResult":
        this.running.get(`${turnId}/${event.value.toolUseId}`)?.controller.abort();
        for (const [id, { of }] of this.answers) if (of === `${turnId}/${event.value.toolUseId}`) this.forget(id);
        break;
      case "bufferEdit":
        this.edit(event.value, turnId);
        break;
      case "saveBuffers":
        void this.save(event.value, turnId);
        break;
      case "notice":
        this.notice(event.value);
    }
    if (this.turns.get(turnId)?.take(response)) this.turns.delete(turnId);
    this.emit("event", response);
  }

  /** Some notices are about a turn or a question that waits. */
  private notice(notice: Notice): void {
    const named = notice.details?.["turn_id"];
    const turn = typeof named === "string" ? this.turns.get(named) : undefined;
    if (turn instanceof Turn && ["invalid_model_event", "model_failed"].includes(notice.code)) turn.refuse(notice);
    const question = notice.details?.["question_id"];
    const asked = typeof question === "string" ? this.answers.get(question) : undefined;
    if (asked) void this.denyRefused(asked, notice.message);
    this.emit("notice", notice);
  }

  private failed(error: TooldError): void {
    const turns = [...this.turns.values()];
    this.turns.clear();
    for (const turn of turns) turn.fail(error);
    for (const { controller } of this.running.values()) controller.abort();
    for (const id of this.answers.keys()) this.forget(id);
  }

  /** Asks the user, once for each question, and answers each time that the daemon asks: it does so again on a new stream. */
  private ask(question: Question, turnId: string): void {
    const { onQuestion } = this.settings;
    if (!onQuestion) return;
    const { questionId, inputDigest } = question;
    let asked = this.answers.get(questionId);
    if (!asked) {
      const ended = new AbortController();
      const decided = (async () => answerMessage(questionId, inputDigest, await onQuestion(question, { signal: ended.signal })))();
      const answer = decided.catch((error) => answerMessage(questionId, inputDigest, { decision: "deny", message: `The client could not ask: ${text(error)}` }));
      asked = { answer, ended, of: `${turnId}/${question.toolUseId}` };
      this.answers.set(questionId, asked);
    }
    this.answer(asked);
  }

  private answer({ answer, ended }: Asked): void {
    const stream = this.streams;
    void answer.then((value) => {
      if (!ended.signal.aborted && stream === this.streams) this.stream.send({ case: "answer", value });
    });
  }

  /** Denies what an answer would have settled that the daemon does not take, such as one with a rule that is none: the call waits for it. */
  private async denyRefused(asked: Asked, why: string): Promise<void> {
    const { questionId, inputDigest, decision, remember } = await asked.answer;
    if (decision === Decision.DENY && remember.length === 0) return;
    asked.answer = Promise.resolve(answerMessage(questionId, inputDigest, { decision: "deny", message: `The client's answer was refused: ${why}` }));
    this.answer(asked);
  }

  /** Makes a call's edits in a buffer, and confirms them. */
  private edit({ toolUseId, path, version, edits }: BufferEdit, turnId: string): void {
    const buffer = this.stream.ledger.buffers.get(path);
    const done = create(BufferEditedSchema, { toolUseId, turnId });
    if (buffer?.version !== version) return this.stream.send({ case: "bufferEdited", value: { ...done, error: "the text has changed meanwhile" } });
    let text = Buffer.from(buffer.content);
    for (const e of edits) text = Buffer.concat([text.subarray(0, Number(e.offset)), Buffer.from(e.text), text.subarray(Number(e.offset + e.length))]);
    done.version = this.stream.ledger.buffer(path, text.toString()).version;
    this.stream.send({ case: "bufferEdited", value: done });
    guarded(() => this.settings.onEdit?.(path, text.toString()));
  }

  /** Has the program save buffers, and withdraws those that it has saved. */
  private async save({ toolUseId, paths }: SaveBuffers, turnId: string): Promise<void> {
    const { onSave } = this.settings;
    const unsaved: string[] = [];
    for (const path of paths) {
      const buffer = this.stream.ledger.buffers.get(path);
      if (!buffer) continue;
      const saved = onSave !== undefined && (await Promise.resolve().then(() => onSave(path, buffer.content)).then(() => true, (error) => warn(error)));
      if (!saved) unsaved.push(path);
      else if (this.stream.ledger.buffers.get(path) === buffer) this.buffer(path); // not changed since
    }
    this.stream.send({ case: "buffersSaved", value: create(BuffersSavedSchema, { toolUseId, turnId, unsaved }) });
  }

  private forget(question: string): void {
    this.answers.get(question)?.ended.abort();
    this.answers.delete(question);
  }

  /** Runs a tool of the client's. On a new stream the daemon may ask for a call again that runs, or has ended. */
  private async runTool({ toolUseId, name, inputJson }: ClientToolUse, turnId: string): Promise<void> {
    const key = `${turnId}/${toolUseId}`;
    const runs = this.running.get(key);
    if (runs?.result) this.stream.send({ case: "clientToolResult", value: runs.result });
    if (runs) return;
    const controller = new AbortController();
    const run: { controller: AbortController; result?: ClientToolResult } = { controller };
    this.running.set(key, run);
    controller.signal.addEventListener("abort", () => this.running.delete(key));
    let result: ClientToolResult;
    try {
      const tool = this.settings.tools?.find((t) => t.name === name);
      if (!tool) throw new Error(`this client has no tool ${name}`);
      result = resultMessage(name, await tool.run(JSON.parse(inputJson || "{}"), { id: toolUseId, signal: controller.signal }));
    } catch (error) {
      result = resultMessage(name, { content: text(error), isError: true });
    }
    if (controller.signal.aborted) return;
    run.result = Object.assign(result, { toolUseId, turnId });
    this.stream.send({ case: "clientToolResult", value: run.result });
  }
}

const sessionFields: (keyof SessionOptions)[] = ["name", "roots", "mode", "env", "onQuestion", "tools", "onEdit", "onSave", "options", "format"];

const modelFormats = {
  anthropic: ModelFormat.ANTHROPIC,
  openai: ModelFormat.OPENAI_CHAT,
  responses: ModelFormat.OPENAI_RESPONSES,
  anthropicNative: ModelFormat.ANTHROPIC_NATIVE,
  agentToolset: ModelFormat.AGENT_TOOLSET,
};

const modes: Record<Mode, PermissionMode> = {
  default: PermissionMode.DEFAULT,
  acceptEdits: PermissionMode.ACCEPT_EDITS,
  plan: PermissionMode.PLAN,
  dontAsk: PermissionMode.DONT_ASK,
  bypassPermissions: PermissionMode.BYPASS_PERMISSIONS,
};

/** The text of a result, its blocks joined; images and documents are left out. */
export function resultText({ content }: { content: Content[] }): string {
  return content.map(({ block }) => (block.case === "text" ? block.value : "")).join("");
}
