// What a program's callbacks give: what the daemon is told of it, and what becomes of what is none.
import { inspect } from "node:util";
import { create, toBinary, type DescMessage, type JsonObject, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { known, oneOf, refuse, toJSON } from "./errors.js";
import type { ContentSchema } from "./gen/toold/v1/event_pb.js";
import { AnswerSchema, ClientToolResultSchema, Decision, Scope, type Answer as AnswerMessage, type ClientToolResult } from "./gen/toold/v1/tool_pb.js";

/** The answer to a question; `true` and `false` are short for one with nothing but the decision. */
export interface Answer {
  decision: "allow" | "deny";
  /** For the model, with `deny`. */
  message?: string;
  /** An input to run instead. The daemon judges it again. */
  updatedInput?: unknown;
  /** With `deny`: also stop the turn. */
  interruptTurn?: boolean;
  /** With `allow`, to a question with `secret`: the line that the program reads. Ask for it without showing it. */
  secret?: string;
  /** Rules that settle the like from now on, such as `{rule: "Bash(npm test)"}`. Default: list `allow`, scope `session`. */
  remember?: { rule: string; list?: "allow" | "ask" | "deny"; scope?: "session" | "local" | "project" | "user" }[];
}

/** What a tool of the client's gives: a text, or blocks. */
export type ToolOutput = string | { content: string | MessageInitShape<typeof ContentSchema>[]; isError?: boolean; structured?: JsonObject };

const scopes = { session: Scope.SESSION, local: Scope.LOCAL, project: Scope.PROJECT, user: Scope.USER };

const decisions = { allow: Decision.ALLOW, deny: Decision.DENY };

/** @internal Makes what the daemon is told of what onQuestion has returned. Throws where that is no answer, so that nothing is allowed by mistake. */
export function answerMessage(questionId: string, inputDigest: string, given: Answer | boolean): AnswerMessage {
  const answer: Answer = typeof given === "boolean" ? { decision: given ? "allow" : "deny" } : given;
  if (typeof answer !== "object" || answer === null) throw refuse(`onQuestion returned ${inspect(given)}: return true, false or {decision: "allow" | "deny"}`);
  known("an answer", answer, ["decision", "message", "updatedInput", "interruptTurn", "remember", "secret"]);
  const { decision, message, updatedInput, interruptTurn, secret, remember = [] } = answer;
  return sendable(AnswerSchema, {
    questionId, inputDigest, message, interruptTurn, secret,
    decision: oneOf("decision", decision, decisions),
    updatedInputJson: updatedInput === undefined ? "" : toJSON("updatedInput", updatedInput),
    remember: remember.map(({ rule, list = "allow", scope = "session" }) => ({ rule, list, scope: oneOf("scope", scope, scopes) })),
  });
}

/** @internal Makes what the daemon is told of what a tool has returned. Throws where that is no output. */
export function resultMessage(tool: string, output: ToolOutput): ClientToolResult {
  const { content, isError, structured } = typeof output === "object" && output !== null ? output : { content: output };
  const blocks = typeof content === "string" ? [{ block: { case: "text" as const, value: content } }] : content;
  if (!Array.isArray(blocks)) throw refuse(`the tool ${tool} returned ${inspect(output)}: return a string or {content}`);
  return sendable(ClientToolResultSchema, { content: blocks, isError, structured });
}

/** Makes a message. Throws where it could not be sent: on a stream that would end the stream. */
function sendable<M extends DescMessage>(schema: M, fields: MessageInitShape<M>): MessageShape<M> {
  const message = create(schema, fields);
  toBinary(schema, message);
  return message;
}

/** @internal Calls a function of the program's. What it throws is a warning of the process. */
export function guarded(call: () => unknown): void {
  void (async () => call())().catch(warn);
}

/** @internal */
export function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : text(error));
}

/** @internal What an error says. */
export function text(error: unknown): string {
  return error instanceof Error ? error.message : typeof error === "string" ? error : inspect(error);
}
