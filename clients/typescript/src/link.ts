// A connection to a daemon: where it is, how it is started, and the methods of its services.
import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { readFile, stat } from "node:fs/promises";
import { isIP } from "node:net";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethodServerStreaming, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { TooldError, asError } from "./errors.js";
import { ToolService, type ExecuteRequest } from "./gen/toold/v1/tool_pb.js";
import type { ExecuteResponse } from "./gen/toold/v1/event_pb.js";

/** Where the daemon is. */
export interface ConnectOptions {
  /**
   * `unix:/path` or `tcp://host:port`. Default: `TOOLD_ADDRESS`; without it the daemon of this user, which
   * `toold start` starts if it does not run.
   */
  address?: string;
  /** The file with the token for TCP; default: `TOOLD_TOKEN_FILE`. Only its owner may be able to read it. */
  tokenFile?: string;
  /** The file with the authorities (PEM) of the daemon's certificate, for TCP; default: the system's. */
  ca?: string;
  /** The program that starts the daemon; default: `toold`, on PATH. */
  program?: string;
}

/** @internal */
export type Execution = grpc.ClientDuplexStream<ExecuteRequest, ExecuteResponse>;

/** @internal One connection. It connects when it is used. */
export class Link {
  private isClosed = false;

  private constructor(
    private readonly channel: grpc.Client,
    private readonly metadata: grpc.Metadata,
  ) {}

  /** Finds the daemon, or starts it. Throws a TooldError "no_daemon" if that fails. */
  static async open(options: ConnectOptions): Promise<Link> {
    const address = options.address || process.env["TOOLD_ADDRESS"] || (await start(options.program ?? "toold"));
    const metadata = new grpc.Metadata();
    let target = address;
    let credentials = grpc.credentials.createInsecure();
    if (!address.startsWith("unix:")) {
      const { hostname, port, protocol } = parse(address);
      if (protocol !== "tcp:" || !port) throw new TooldError("INVALID_ARGUMENT", "", `${address} is not an address of a daemon: write unix:/path or tcp://host:port`);
      const host = hostname === "localhost" ? (await lookup(hostname)).address : hostname.replace(/^\[|\]$/g, "");
      if (options.ca || !isLoopback(host)) credentials = grpc.credentials.createSsl(options.ca ? await readFile(options.ca) : null);
      target = isIP(host) === 6 ? `ipv6:[${host}]:${port}` : `dns:${host}:${port}`;
      metadata.set("authorization", `Bearer ${await token(options.tokenFile ?? process.env["TOOLD_TOKEN_FILE"])}`);
    }
    // A pool of its own: a new connection must not wait because an old one to the same address has failed.
    return new Link(new grpc.Client(target, credentials, { "grpc.use_local_subchannel_pool": 1 }), metadata);
  }

  close(): void {
    this.isClosed = true;
    this.channel.close();
  }

  /** Calls a method that answers once. */
  unary<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>): Promise<MessageShape<O>> {
    if (this.isClosed) return Promise.reject(closed());
    return new Promise<MessageShape<O>>((resolve, reject) => {
      this.channel.makeUnaryRequest(path(method), encode(method.input), decode(method.output), create(method.input, request), this.metadata, (error, answer) =>
        error ? reject(error) : resolve(answer as MessageShape<O>),
      );
    }).catch((error) => {
      throw asError(error);
    });
  }

  /** Calls a method that answers with a stream. Leaving the loop ends it. */
  async *stream<I extends DescMessage, O extends DescMessage>(method: DescMethodServerStreaming<I, O>, request: MessageInitShape<I>): AsyncGenerator<MessageShape<O>, void, undefined> {
    if (this.isClosed) throw closed();
    const answers = this.channel.makeServerStreamRequest(path(method), encode(method.input), decode(method.output), create(method.input, request), this.metadata);
    try {
      for await (const answer of answers) yield answer as MessageShape<O>;
    } catch (error) {
      throw asError(error);
    } finally {
      answers.on("error", () => {}); // that of the cancel
      answers.cancel();
    }
  }

  execute(): Execution {
    if (this.isClosed) throw closed();
    const { execute } = ToolService.method;
    return this.channel.makeBidiStreamRequest(path(execute), encode(execute.input), decode(execute.output), this.metadata);
  }
}

function closed(): TooldError {
  return new TooldError("UNAVAILABLE", "", "the connection to the daemon is closed");
}

function path(method: { parent: { typeName: string }; name: string }): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function encode<M extends DescMessage>(schema: M) {
  return (message: MessageShape<M>) => Buffer.from(toBinary(schema, message));
}

function decode<M extends DescMessage>(schema: M) {
  return (bytes: Buffer) => fromBinary(schema, bytes);
}

function parse(address: string): URL {
  try {
    return new URL(address);
  } catch {
    return new URL("none:");
  }
}

function isLoopback(host: string): boolean {
  return host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** Runs `toold start --json`, and returns the address on which the daemon serves its own user. */
async function start(program: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, ["start", "--json"]);
    const { listeners = [] } = JSON.parse(stdout) as { listeners?: { address: string }[] };
    const own = listeners.find(({ address }) => address.startsWith("unix:"));
    if (own) return own.address;
    throw new Error("the daemon listens on no Unix socket");
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    const why = code === "ENOENT" ? "it is not on PATH. Install toold, or set TOOLD_ADDRESS" : stderr?.trim() || message;
    throw new TooldError("UNAVAILABLE", "no_daemon", `${program} cannot start the daemon: ${why}`);
  }
}

/** The first token of a file that only its owner can read. */
async function token(file: string | undefined): Promise<string> {
  const refuse = (why: string) => new TooldError("UNAUTHENTICATED", "", why);
  if (!file) throw refuse("a daemon over TCP requires a token: name its file in tokenFile or TOOLD_TOKEN_FILE");
  if ((await stat(file)).mode & 0o077) throw refuse(`other users can read the tokens in ${file}: chmod 600 ${file}`);
  for (const line of (await readFile(file, "utf8")).split("\n")) {
    const words = line.trim().split(/\s+/);
    if (words[0] && !words[0].startsWith("#") && words.length <= 2) return words[words.length - 1]!;
  }
  throw refuse(`${file} holds no token`);
}
