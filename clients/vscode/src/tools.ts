// The editor's own tools, which every client of the session may call.
import type { Message } from "./bridge";

/** What the tools need of the editor. Lines and columns count from 1. */
export interface Sight {
  diagnostics(path?: string): { path: string; line: number; column: number; severity: string; message: string; source?: string }[];
  selection(): { path: string; from: number; to: number; text: string } | undefined;
  /** Shows a file beside a proposal, and returns the text that the user accepts; undefined: it was rejected. */
  propose(path: string, content: string, signal: AbortSignal): Promise<string | undefined>;
}

const path = { type: "string" };

/** The tools as Attach has them. */
export const definitions: Message[] = [
  {
    name: "getDiagnostics", description: "What language servers and linters say in the user's editor, one a line: file, line, column, severity, message.",
    schema: { type: "object", properties: { path: { ...path, description: "Of this file only; all files without it. Absolute." } }, additionalProperties: false },
  },
  {
    name: "getSelection", description: "The text that the user has selected in the editor, with its file and lines.",
    schema: { type: "object", properties: {}, additionalProperties: false },
  },
  {
    name: "openDiff",
    description: "Shows the user a file beside what it could become. The user may change the proposal; the answer has the text that was accepted, or says that it was rejected. Writes nothing.",
    schema: { type: "object", required: ["path", "content"], properties: { path: { ...path, description: "Absolute." }, content: { ...path, description: "The whole proposed text." } }, additionalProperties: false },
  },
].map(({ schema, ...tool }) => ({ ...tool, input_schema_json: JSON.stringify(schema), read_only: true }));

/** Runs a call of one of them. What it throws is told to the agent. */
export async function run(sight: Sight, name: string, input: Message, signal: AbortSignal): Promise<string> {
  switch (name) {
    case "getDiagnostics": {
      const lines = sight.diagnostics(input.path).map((d) => `${d.path}:${d.line}:${d.column}: ${d.severity}: ${d.message}${d.source ? ` [${d.source}]` : ""}`);
      return lines.sort().join("\n") || "No diagnostics.";
    }
    case "getSelection": {
      const selected = sight.selection();
      if (!selected) return "No file is shown.";
      return selected.text ? `${selected.path}:${selected.from}-${selected.to}\n${selected.text}` : `Nothing is selected. The cursor is at ${selected.path}:${selected.from}.`;
    }
    case "openDiff": {
      const accepted = await sight.propose(input.path, input.content, signal);
      return accepted === undefined ? "The user rejected the change." : `The user accepted this text, which is not written yet:\n${accepted}`;
    }
    default:
      throw new Error("The editor does not have this tool.");
  }
}
