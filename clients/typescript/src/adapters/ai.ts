// The daemon's tools for the AI SDK: `streamText({tools: await tools(client, session), ...})`.
import { dynamicTool, jsonSchema, type ToolSet } from "ai";
import type { Client } from "../client.js";
import { resultText, type Session } from "../session.js";
import type { ToolResult } from "../gen/toold/v1/event_pb.js";

/** The tools of a session, by name. Images go to the model as images; a call that fails is an error for the model. */
export async function tools(client: Client, session: Session): Promise<ToolSet> {
  const definitions = await client.tools("mcp", session);
  return Object.fromEntries(
    definitions.map(({ name, description, inputSchema }) => [
      name,
      dynamicTool({
        description,
        inputSchema: jsonSchema(inputSchema),
        async execute(input, { abortSignal }): Promise<ToolResult> {
          const call = session.call(name, input); // its id is its own: those of models may come again
          const stop = () => call.cancel();
          abortSignal?.addEventListener("abort", stop);
          if (abortSignal?.aborted) stop();
          const result = await call.result().finally(() => abortSignal?.removeEventListener("abort", stop));
          if (result.isError) throw new Error(resultText(result));
          return result;
        },
        toModelOutput: ({ output }) => ({ type: "content", value: (output as ToolResult).content.flatMap(asPart) }),
      }),
    ]),
  );
}

type Part = { type: "text"; text: string } | { type: "file"; mediaType: string; data: { type: "data"; data: string } };

function asPart({ block }: ToolResult["content"][number]): Part[] {
  if (block.case === "text") return [{ type: "text", text: block.value }];
  if (block.case !== "image" && block.case !== "document") return [];
  const { mediaType, data } = block.value;
  return [{ type: "file", mediaType, data: { type: "data", data: Buffer.from(data).toString("base64") } }];
}
