// The window's part: one attached session, its questions, buffers and tools, and the program's other commands.
import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { sep } from "node:path";
import type { Message } from "./bridge";
import { Buffers } from "./buffers";
import { Questions, type Asker } from "./questions";
import { Session, type Call, type Editor } from "./session";
import { definitions, run, type Sight } from "./tools";

/** What the window needs of the editor. */
export interface Desk extends Asker, Sight {
  command(): string[];
  roots(): string[];
  saves(): boolean;
  tell(text: string): void;
  /** Shows a text of its own, in a language of the editor's. */
  show(title: string, text: string, language: string): PromiseLike<unknown>;
  /** The state has changed: the tree and the status line are drawn again. */
  redraw(): void;
}

/** A session in the list of those that run here. */
export type Listed = { id: string; client: string; directory: string };

export class Window implements Editor {
  session?: Session;
  readonly questions: Questions;

  constructor(private readonly desk: Desk, readonly buffers: Buffers) {
    this.questions = new Questions(desk, () => desk.redraw());
  }

  // What a session asks of the editor.
  attached(session: Session): void {
    this.buffers.start((message) => session.send(message));
    this.desk.redraw();
  }
  ask(session: Session, question: Message): void { this.questions.add(session, question); }
  withdraw(id: string): void { this.questions.withdraw(id); }
  edit(edit: Message): Promise<number> { return this.buffers.edit(edit); }
  save(paths: string[]): Promise<string[]> { return this.desk.saves() ? this.buffers.save(paths) : Promise.resolve(paths); }
  run(name: string, input: Message, signal: AbortSignal): Promise<string> { return run(this.desk, name, input, signal); }
  changed(): void { this.desk.redraw(); }
  tell(text: string): void { this.desk.tell(text); }
  lost(why: string): void {
    this.detach();
    this.desk.tell(`detached: ${why}`);
  }

  /** The attached session's calls, the newest first. */
  get calls(): Call[] { return [...(this.session?.calls.values() ?? [])].reverse(); }

  /** A text for the status line; empty while nothing is attached. */
  get status(): string {
    if (!this.session) return "";
    const running = this.calls.filter((c) => c.state !== "ended").length, open = this.questions.count;
    return ["toold", running && `${running} running`, open && `${open} to answer`].filter(Boolean).join(" · ");
  }

  /** Attaches to the session of a name, which is made if there is none. */
  join(name: string): void {
    this.detach();
    this.session = new Session(this.desk.command(), this.desk.roots(), name, definitions, this);
    this.desk.redraw();
  }

  /** Detaches. The session goes on. */
  detach(): void {
    this.buffers.stop();
    this.questions.withdrawAll();
    this.session?.close();
    this.session = undefined;
    this.desk.redraw();
  }

  /** The sessions that run in the window's folders, above or below them. */
  async sessions(): Promise<Listed[]> {
    const all: Message[] = JSON.parse(await this.program("sessions", "--json")).sessions ?? [];
    const here = this.desk.roots().map((root) => realpathSync(root) + sep);
    return all
      .filter((s) => (s.roots ?? []).some((root: string) => here.some((h) => h.startsWith(root + sep) || (root + sep).startsWith(h))))
      .map((s) => ({ id: s.session_id, client: s.client?.name ?? "", directory: s.working_directory ?? "" }));
  }

  /** Attaches to the session that runs here, or to the one that is chosen. `silent`: only if there is exactly one. */
  async attach(silent = false): Promise<void> {
    const found = await this.sessions();
    if (found.length === 1 || silent) return found.length === 1 ? this.join(found[0]!.id) : undefined;
    const other = "Another name…";
    const lines = found.map((s) => `${s.id}  ${s.client}  ${s.directory}`);
    const picked = await this.desk.pick("Session", [...lines, other]);
    const name = picked === other ? await this.desk.input("The session's name; one that no session has makes one") : found[lines.indexOf(picked ?? "")]?.id;
    if (name) this.join(name);
  }

  async answer(): Promise<void> {
    if (!(await this.questions.again())) this.desk.tell("no question is open");
  }

  async cancel(call?: Call): Promise<void> {
    const session = this.here();
    if (call) await session.request("SessionService/CancelCall", { session_id: session.id, tool_use_id: call.id, turn: call.turn });
    else await session.request("SessionService/CancelTurn", { session_id: session.id, all: true, reason: "The user stopped it in the editor." });
  }

  async diff(call?: string): Promise<void> {
    const text = await this.program("diff", "--session", this.here().id, ...(call ? [call] : []));
    await this.desk.show("toold diff", text.trim() || "Nothing has changed.", "diff");
  }

  async log(): Promise<void> { await this.desk.show("toold log", await this.program("log", "--session", this.here().id), "plaintext"); }

  async undo(): Promise<void> {
    const undo = ["undo", "--session", this.here().id];
    const preview = await this.program(...undo, "--dry-run");
    await this.desk.show("toold undo", preview, "diff");
    if ((await this.desk.message("Put these files back?", "Put Back")) === "Put Back") this.desk.tell((await this.program(...undo, "--yes")).trim());
  }

  async tasks(): Promise<void> {
    const session = this.here();
    const found = await session.request("SessionService/GetSession", { session_id: session.id });
    const tasks: Message[] = found.session.background_tasks ?? [];
    if (tasks.length === 0) return this.desk.tell("no background tasks");
    const lines = tasks.map((t) => `${t.task_id}  ${t.command}`);
    const task = tasks[lines.indexOf((await this.desk.pick("End a background task", lines)) ?? "")];
    if (task) await session.request("SessionService/KillTask", { session_id: session.id, task_id: task.task_id });
  }

  private here(): Session {
    if (!this.session?.id) throw new Error("not attached: run the command toold: Attach to a Session");
    return this.session;
  }

  /** Runs the program, and returns what it prints. A failure has what it said. */
  private program(...args: string[]): Promise<string> {
    const [program = "toold", ...first] = this.desk.command();
    return new Promise((resolve, reject) => {
      execFile(program, [...first, ...args], { env: { ...process.env, NO_COLOR: "1" }, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        if (error) reject(new Error(stderr.trim().replace(/^toold: /, "") || error.message));
        else resolve(stdout);
      });
    });
  }
}
