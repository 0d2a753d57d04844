// The daemon's tools for OpenAI Agents: `new Agent({tools: [...(await tools(client, session)), shell(session), applyPatch(session)]})`.
import { applyPatchTool, shellTool, tool, type ApplyPatchResult, type FunctionTool, type ShellResult, type Tool } from "@openai/agents";
import { randomUUID } from "node:crypto";
import type { Client } from "../client.js";
import type { Item } from "../errors.js";
import { resultText, type Session } from "../session.js";

/** The tools of a session, as functions. A call that fails has the text of its result, for the model. */
export async function tools(client: Client, session: Session): Promise<FunctionTool<any, any, string>[]> {
  const definitions = await client.tools("mcp", session);
  return definitions.map(({ name, description, inputSchema }) =>
    tool({
      name,
      description,
      parameters: { required: [], ...inputSchema, additionalProperties: true },
      strict: false,
      execute: async (input: unknown) => resultText(await session.call(name, input).result()),
    }),
  );
}

/** The model's own shell: each command is judged and confined as a call of Bash. */
export function shell(session: Session): Tool {
  const run = async ({ commands, timeoutMs, maxOutputLength }: { commands: string[]; timeoutMs?: number; maxOutputLength?: number }): Promise<ShellResult> => {
    const action = { commands, timeout_ms: timeoutMs, max_output_length: maxOutputLength };
    const { output } = await answer(session, { type: "shell_call", action });
    return { output: output.map(({ stdout, stderr, outcome }: Item) => ({ stdout, stderr, outcome: { type: outcome.type, exitCode: outcome.exit_code } })), maxOutputLength };
  };
  return shellTool({ shell: { run } });
}

/** The model's own patches, each of one file. */
export function applyPatch(session: Session): Tool {
  const apply = (operation: object): Promise<ApplyPatchResult> => answer(session, { type: "apply_patch_call", operation });
  return applyPatchTool({ editor: { createFile: apply, updateFile: apply, deleteFile: apply } });
}

/** Runs one item of the Responses API, and returns the one that answers it. */
async function answer(session: Session, item: object): Promise<Item> {
  const id = randomUUID();
  const [output] = await session.run({ object: "response", status: "completed", output: [{ ...item, id, call_id: id, status: "completed" }] });
  return output;
}
