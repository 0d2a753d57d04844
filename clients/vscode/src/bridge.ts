// JSON-RPC with `toold stdio`: one child process, requests with an answer, messages of streams.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";

/** An error that a request was answered by. `code` is gRPC's, or JSON-RPC's below 0; `status` is its name. */
export class Failure extends Error {
  constructor(message: string, readonly code = 14, readonly status = "UNAVAILABLE", readonly reason = "") {
    super(message);
  }
}

/** A message of the contract in its JSON form. Numbers of 64 bits are strings; what is not set is absent. */
export type Message = { [field: string]: any };

type Waiting = { resolve(result: Message): void; reject(failure: Failure): void; take?(message: Message): void };

/** A child process that speaks JSON-RPC, a line a message. It ends with `close`, or by itself: then all that waits fails. */
export class Bridge {
  private last = 0;
  private rest: Buffer[] = [];
  private stderr = "";
  private readonly waiting = new Map<number, Waiting>();
  private child?: ChildProcessWithoutNullStreams;

  /** `onState` hears that a stream has begun, was resumed, or needs its buffers again; `onProblem` what is for the user. */
  constructor(command: string[], cwd: string | undefined, private readonly onState: (id: number, state: string) => void, private readonly onProblem: (text: string) => void) {
    const [program = "toold", ...args] = command;
    this.child = spawn(program, [...args, "stdio"], { cwd });
    this.child.stdout.on("data", (data: Buffer) => this.read(data));
    this.child.stderr.on("data", (data: Buffer) => (this.stderr = (this.stderr + data.toString()).slice(-4096)));
    this.child.stdin.on("error", () => {}); // the end of the process says more
    this.child.on("error", (error) => this.ended(`${program} cannot be started: ${error.message}`));
    this.child.on("close", (code) => this.ended(this.stderr.trim() || `${program} stdio has ended with ${code}`));
  }

  /** False once the process has ended. */
  get running(): boolean { return this.child !== undefined; }

  /** Sends a request. `take` gets each message of a stream. */
  request(method: string, params: Message, take?: (message: Message) => void): { id: number; result: Promise<Message> } {
    const id = ++this.last;
    const result = new Promise<Message>((resolve, reject) => {
      if (!this.child) return reject(new Failure("toold stdio does not run"));
      this.waiting.set(id, { resolve, reject, take });
    });
    this.write({ id, method, params });
    return { id, result };
  }

  /** Sends the next message of an Execute stream. */
  send(id: number, message: Message): void { this.write({ method: "$/send", params: { id, message } }); }

  /** Ends the process: what is under way is written to its end first. */
  close(): void { this.child?.stdin.end(); }

  private write(message: Message): void { this.child?.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n"); }

  private read(data: Buffer): void {
    for (let stop; (stop = data.indexOf(10)) >= 0; data = data.subarray(stop + 1)) {
      const line = Buffer.concat([...this.rest, data.subarray(0, stop)]).toString();
      this.rest = [];
      this.take(JSON.parse(line));
    }
    if (data.length > 0) this.rest.push(data);
  }

  private take({ id, method, params, result, error }: Message): void {
    if (method === "$/message") this.waiting.get(params.id)?.take?.(params.message);
    else if (method === "$/state") this.onState(params.id, params.state);
    else if (method === "$/error") this.onProblem(params.error.message);
    else if (id !== undefined) {
      const waiting = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) waiting?.reject(new Failure(error.message, error.code, error.data?.status, error.data?.reason));
      else waiting?.resolve(result);
    }
  }

  private ended(why: string): void {
    this.child = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of waiting) reject(new Failure(why));
  }
}
