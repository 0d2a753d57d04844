// A client of the daemon: everything that is not a session's stream.
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { TooldError, oneOf } from "./errors.js";
import { Link, type ConnectOptions } from "./link.js";
import { Session, type SessionOptions } from "./session.js";
import { DaemonService, type GetInfoResponse } from "./gen/toold/v1/daemon_pb.js";
import { Channel, type ExecuteResponse } from "./gen/toold/v1/event_pb.js";
import { SessionService } from "./gen/toold/v1/session_pb.js";
import { ToolFormat, ToolService } from "./gen/toold/v1/tool_pb.js";

const formats = {
  native: ToolFormat.NATIVE,
  anthropic: ToolFormat.ANTHROPIC,
  openai: ToolFormat.OPENAI,
  responses: ToolFormat.OPENAI_RESPONSES,
  anthropicNative: ToolFormat.ANTHROPIC_NATIVE,
  agentToolset: ToolFormat.AGENT_TOOLSET,
  mcp: ToolFormat.MCP,
};

/**
 * Finds the daemon of this user, or starts it with `toold start`. Throws a TooldError: `no_daemon` if that fails,
 * `UNAVAILABLE` if nothing answers at the address.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const client = new Client(options);
  await client.info();
  return client;
}

/** A client of one daemon. When the connection is lost, the next use connects again, and starts the daemon if need be. */
export class Client {
  private current: Promise<Link> | undefined;
  private opened: Link | undefined; // what current gave
  private readonly sessions = new Set<Session>();

  /** @internal */
  constructor(private readonly options: ConnectOptions) {}

  /** Attaches to a session, or makes one. Throws a TooldError such as `unknown_session`. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const session = await Session.attach(this, options);
    this.sessions.add(session);
    return session;
  }

  /** The definitions of the tools, as the API of a model takes them: of a session, or of a new one. `native`: toold.v1.Tool. */
  async tools(format: keyof typeof formats, session?: Session | string): Promise<any[]> {
    const { tools, definitionsJson } = await this.unary(ToolService.method.listTools, { format: oneOf("format", format, formats), sessionId: idOf(session) });
    return format === "native" ? tools : (JSON.parse(definitionsJson) as any[]);
  }

  /**
   * The output of a call as its processes wrote it, from the byte `offset` on: what is there, or with `follow` until the call
   * has ended. `channel`: default both, in the order in which they were seen.
   */
  async *output(session: Session | string, callId: string, { offset = 0, follow = false, channel }: { offset?: number; follow?: boolean; channel?: "stdout" | "stderr" } = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const from = { stdout: Channel.STDOUT, stderr: Channel.STDERR };
    const request = { sessionId: idOf(session), toolUseId: callId, offset: BigInt(offset), follow, channel: channel && from[channel] };
    for await (const { data } of (await this.link()).stream(ToolService.method.readOutput, request)) if (data.length > 0) yield data;
  }

  /** The events of a session behind a record (default: from now on), and then live, without taking part in it. `follow: false`: only those that are there. */
  async *watch(session: Session | string, { afterSeq, follow = true }: { afterSeq?: bigint; follow?: boolean } = {}): AsyncGenerator<ExecuteResponse, void, undefined> {
    const request = { sessionId: idOf(session), afterSeq, noFollow: !follow };
    for await (const { event } of (await this.link()).stream(SessionService.method.watch, request)) if (event) yield event;
  }

  /** What the daemon is: version, process, limits, confinement. */
  info(): Promise<GetInfoResponse> {
    return this.unary(DaemonService.method.getInfo, {});
  }

  /** Calls any method that answers once, such as `ToolService.method.getCall`; once more if the connection was lost. */
  async unary<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>): Promise<MessageShape<O>> {
    for (let again = false; ; again = true) {
      const link = await this.link();
      try {
        return await link.unary(method, request);
      } catch (error) {
        if (!(error instanceof TooldError && error.code === "UNAVAILABLE")) throw error;
        this.lost(link);
        if (again) throw error;
      }
    }
  }

  /** Leaves all sessions of this client, as Session.close does, and closes the connection: wait for it before `process.exit()`. */
  async close(): Promise<void> {
    await Promise.all([...this.sessions].map((session) => session.close()));
    if (this.opened) this.lost(this.opened);
  }

  /** @internal A session was left, and ends. Only over a connection that there is: none is made, and no daemon started, for that. */
  async left(session: Session, ends: boolean): Promise<void> {
    this.sessions.delete(session);
    if (ends) await this.opened?.unary(SessionService.method.closeSession, { sessionId: session.id }).catch(() => {}); // it has ended already
  }

  /** @internal */
  link(): Promise<Link> {
    if (this.current) return this.current;
    const opening: Promise<Link> = Link.open(this.options).then(
      (link) => (this.current === opening && (this.opened = link), link),
      (error) => {
        if (this.current === opening) this.current = undefined;
        throw error;
      },
    );
    return (this.current = opening);
  }

  /** @internal */
  lost(link: Link): void {
    if (this.opened === link) this.opened = this.current = undefined;
    link.close();
  }
}

function idOf(session: Session | string | undefined): string {
  return session instanceof Session ? session.id : (session ?? "");
}
