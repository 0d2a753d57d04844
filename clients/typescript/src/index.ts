/**
 * The client of the toold daemon, which runs the tool calls of language models.
 * @packageDocumentation
 */
export type { Answer, ToolOutput } from "./callbacks.js";
export { connect, type Client } from "./client.js";
export { TooldError, type Code, type Item } from "./errors.js";
export type { ConnectOptions } from "./link.js";
export { resultText, type ClientTool, type Mode, type Session, type SessionOptions, type UndoOptions } from "./session.js";
export type { Call, Turn } from "./turn.js";
/** The messages, enums and services of the contract, proto/toold/v1. */
export * as v1 from "./v1.js";
