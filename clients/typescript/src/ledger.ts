// What was sent on a session's stream, and what the daemon has confirmed of it.
import { create } from "@bufbuild/protobuf";
import { BufferChangedSchema, ExecuteRequestSchema, type Attach, type BufferChanged, type ExecuteRequest, type ToolUse } from "./gen/toold/v1/tool_pb.js";
import type { Attached, ExecuteResponse } from "./gen/toold/v1/event_pb.js";

/** How often a lost stream is resumed without a record in between, before the daemon counts as unable to serve. */
const resumeTries = 3;

export class Ledger {
  /** The newest record received, or older than all that are wanted. */
  last = 0n;
  private tries = 0;
  private kept: ExecuteRequest[] = [];
  private calls = new Set<string>();
  /** The newest text of each buffer, by path; undefined: it was closed. */
  readonly buffers = new Map<string, BufferChanged | undefined>();
  private repeated = new Map<string, Set<string | undefined>>(); // the calls that were sent again on this stream: the kinds of events that have come
  private turns = new Set<string>(); // those that have not ended; what calls a model's message asks for is not known here

  /** Sets the record after which the session goes on, once it has been attached for the first time. */
  begin(asked: Attach, attached: Attached): void {
    this.last = asked.afterSeq ?? attached.lastSeq;
  }

  /** Records a message that is about to be sent. Reports whether it is kept until it is confirmed. */
  add(request: ExecuteRequest): boolean {
    const m = request.message;
    switch (m.case) {
      case "toolUse":
        this.calls.add(key(m.value.turnId, useID(m.value)));
        this.turns.add(m.value.turnId);
        break;
      case "modelEvent":
        this.turns.add(m.value.turnId);
        break;
      case "cancel":
        if (m.value.toolUseId && ![...this.calls].some((call) => call.endsWith(key("", m.value.toolUseId)))) return false;
        break;
      case "endTurn":
      case "discardTurn":
      case "clientToolResult":
      case "interrupt":
        break;
      default:
        return false;
    }
    this.kept.push(request);
    return true;
  }

  /** Takes note of an event: what it confirms is not sent again. Reports whether it is new. */
  confirm(event: ExecuteResponse): boolean {
    const { case: kind, value } = event.event;
    if (kind === "progress") return true;
    if (kind === "accepted" || kind === "started" || kind === "toolResult") {
      // The daemon may send records of a call that was sent again twice: as missed ones, and for the call that it knows.
      const come = this.repeated.get(key(event.turnId, value.toolUseId));
      if (come?.has(kind)) return false;
      come?.add(kind);
    }
    // Of a message that the daemon has lost: another turn of the name follows.
    const isLost = kind === "turnEnded" && value.interrupted;
    if (isLost && this.kept.some(({ message: m }) => m.case === "modelEvent" && m.value.turnId === event.turnId)) return false;
    if (event.seq > 0n) this.tries = 0; // a record, not what concerns the stream only
    if (event.seq > this.last) this.last = event.seq;
    this.calls.delete(key(event.turnId, ended(event)));
    if (event.event.case === "turnEnded") this.turns.delete(event.turnId);
    this.kept = this.kept.filter((request) => !confirms(event, request));
    return true;
  }

  /** Keeps a text, and returns it under its new version. */
  buffer(path: string, content: string): BufferChanged {
    const text = create(BufferChangedSchema, { path, content, version: (this.buffers.get(path)?.version ?? 0n) + 1n });
    this.buffers.set(path, text);
    return text;
  }

  /** What is to be sent again. */
  unconfirmed(): ExecuteRequest[] {
    const uses = this.kept.flatMap(({ message: m }) => (m.case === "toolUse" ? [m.value] : []));
    this.repeated = new Map(uses.map((use) => [key(use.turnId, useID(use)), new Set()]));
    const texts = [...this.buffers].map(([path, value]) =>
      create(ExecuteRequestSchema, { message: value ? { case: "bufferChanged", value } : { case: "bufferClosed", value: { path } } }),
    );
    return [...texts, ...this.kept];
  }

  /** Reports whether calls are under way, or a turn is open, for which a lost stream is resumed once more. */
  resumable(): boolean {
    return ++this.tries <= resumeTries && this.calls.size + this.turns.size > 0;
  }

  /** Drops what was sent: nothing of it will be waited for. */
  forget(): void {
    [this.kept, this.tries] = [[], 0];
    this.calls.clear();
    this.turns.clear();
  }
}

function key(turn: string, id: string): string {
  return `${turn}\0${id}`;
}

function useID(use: ToolUse): string {
  if (!use.nativeJson) return use.id;
  try {
    const item = JSON.parse(use.nativeJson) as { id?: string; call_id?: string };
    return item.call_id || item.id || "";
  } catch {
    return ""; // it is refused
  }
}

/** The tool use of which nothing more comes after an event: it has its result, or was refused and did not become a call. */
function ended({ event }: ExecuteResponse): string {
  if (event.case === "notice" && event.value.code === "duplicate_id") return event.value.toolUseId;
  return event.case === "toolResult" ? event.value.toolUseId : "";
}

/** Reports whether an event shows that the daemon has a message and will not lose it. */
function confirms(response: ExecuteResponse, { message }: ExecuteRequest): boolean {
  const { event, turnId } = response;
  const turnEnds = (turn: string) => event.case === "turnEnded" && (turn === "" || turn === turnId);
  const callEnds = (id: string) => event.case === "toolResult" && event.value.toolUseId === id;
  switch (message.case) {
    case "toolUse": {
      const id = useID(message.value);
      // The result of a replayed call is older than what a new stream would begin with.
      const accepted = event.case === "accepted" && event.value.toolUseId === id && !event.value.replayed;
      return turnId === message.value.turnId && (accepted || ended(response) === id);
    }
    case "cancel":
      return message.value.toolUseId ? callEnds(message.value.toolUseId) : turnEnds(message.value.turnId);
    case "endTurn":
    case "discardTurn":
    case "modelEvent":
      return turnEnds(message.value.turnId);
    case "interrupt":
      return turnEnds("");
    case "clientToolResult":
      return callEnds(message.value.toolUseId);
    default:
      return false;
  }
}
