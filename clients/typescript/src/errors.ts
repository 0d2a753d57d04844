// Errors of the daemon, with the reason by which programs tell them apart.
import { status as codes, type Metadata } from "@grpc/grpc-js";
import { inspect } from "node:util";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** The name of a gRPC status, such as `"NOT_FOUND"`. */
export type Code = keyof typeof codes;

/** What every function of this library throws when the daemon refuses, cannot be reached, or a turn was lost. */
export class TooldError extends Error {
  override readonly name = "TooldError";

  constructor(
    /** The gRPC status. `"UNAVAILABLE"`: the daemon cannot be reached. */
    readonly code: Code,
    /** Stable, lower_snake_case, as docs/errors.md lists them; `""` when the error is not the daemon's own. */
    readonly reason: string,
    message: string,
    /** What the reason is about, by name. */
    readonly metadata: Record<string, string> = {},
    /** Of a turn that has failed in the middle: what its calls gave, as `Session.run` returns it. */
    readonly items: Item[] = [],
  ) {
    super(message);
  }
}

/** An item to append to the conversation with a model, in the form of its API. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- it goes into the SDK of another vendor as it is
export type Item = any;

/** @internal An error about what the program has given to this library. */
export function refuse(message: string): TooldError {
  return new TooldError("INVALID_ARGUMENT", "", message);
}

/** @internal The entry of a table. Throws if there is none of that name. */
export function oneOf<T>(what: string, name: string, table: Record<string, T>): T {
  if (Object.hasOwn(table, name)) return table[name]!;
  throw refuse(`${what} is ${inspect(name)}: it is one of ${Object.keys(table).join(", ")}`);
}

/** @internal Throws if an object has another field than these. */
export function known(what: string, object: object, fields: string[]): void {
  const other = Object.keys(object).find((field) => !fields.includes(field));
  if (other !== undefined) throw refuse(`${what}: there is no ${other}, but ${fields.join(", ")}`);
}

/** @internal The JSON of a value. Throws if it has none. */
export function toJSON(what: string, value: unknown): string {
  try {
    const json = JSON.stringify(value) as string | undefined;
    if (json !== undefined) return json;
  } catch {} // such as a circle
  throw refuse(`${what} has no JSON: ${inspect(value)}`);
}

type Status = { code: number; details: string; metadata?: Metadata };

/** @internal Returns what grpc-js, or anything below it, has thrown as a TooldError. */
export function asError(error: unknown): TooldError {
  if (error instanceof TooldError) return error;
  const { code, details, metadata, message } = error as Partial<Status> & Error;
  const name = (typeof code === "number" && (codes[code] as Code | undefined)) || "UNKNOWN";
  const [info] = metadata?.get("grpc-status-details-bin") ?? [];
  const { reason = "", values = {} } = info instanceof Uint8Array ? errorInfo(info) : {};
  return new TooldError(name, reason, details || message, values);
}

/** @internal Reports whether a stream has ended because its connection broke, and not by a decision of the daemon. */
export function isBreak(error: TooldError): boolean {
  return error.code === "UNAVAILABLE" || (error.reason === "" && ["INTERNAL", "UNKNOWN"].includes(error.code));
}

/** Reads google.rpc.ErrorInfo out of a google.rpc.Status. */
function errorInfo(status: Uint8Array): { reason?: string; values?: Record<string, string> } {
  for (const [number, detail] of fields(status)) {
    const any = new Map(number === 3 ? fields(detail) : []);
    if (!text(any.get(1)).endsWith("/google.rpc.ErrorInfo")) continue;
    const info = fields(any.get(2) ?? new Uint8Array());
    const entries = info.filter(([n]) => n === 3).map(([, entry]) => new Map(fields(entry)));
    return {
      reason: text(new Map(info).get(1)),
      values: Object.fromEntries(entries.map((entry) => [text(entry.get(1)), text(entry.get(2))])),
    };
  }
  return {};
}

/** The fields of a message that have bytes or text, in their order. */
function fields(message: Uint8Array): [number, Uint8Array][] {
  const found: [number, Uint8Array][] = [];
  for (const reader = new BinaryReader(message); reader.pos < reader.len; ) {
    const [number, type] = reader.tag();
    if (type === WireType.LengthDelimited) found.push([number, reader.bytes()]);
    else reader.skip(type, number);
  }
  return found;
}

function text(bytes?: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
