/**
 * The client of the toold daemon, which runs the tool calls of language models.
 * @packageDocumentation
 */
export { connect, type Client } from "./client.js";
export { TooldError, type Code, type Item } from "./errors.js";
export type { ConnectOptions } from "./link.js";
export { resultText, type Answer, type ClientTool, type Mode, type Session, type SessionOptions, type ToolOutput, type UndoOptions } from "./session.js";
export type { Call, Turn } from "./turn.js";
/** The messages, enums and services of the contract, proto/toold/v1. */
export * as v1 from "./v1.js";
