// The daemon's tools for the tool runner of Anthropic's SDK: `client.beta.messages.toolRunner({tools: await tools(client, session), ...})`.
import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import type { Client } from "../client.js";
import type { Session } from "../session.js";

/** The tools of a session. Results have the form that the daemon makes for the API, images and documents included. */
export async function tools(client: Client, session: Session): Promise<BetaRunnableTool[]> {
  const definitions = await client.tools("anthropic", session);
  return definitions.map((definition) => ({
    ...definition,
    parse: (input: unknown) => input,
    async run(input: unknown, context?: { toolUse: { id: string }; signal?: AbortSignal | null }) {
      const block = { type: "tool_use", id: context?.toolUse.id ?? "call", name: definition.name, input };
      const message = { type: "message", role: "assistant", content: [block] };
      const [user] = await session.run(message, { signal: context?.signal ?? undefined });
      const [{ content, is_error }] = user.content;
      if (is_error) throw new ToolError(content);
      return content;
    },
  }));
}
