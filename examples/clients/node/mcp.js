// toold as an MCP server, from the side of a client with the protocol's own SDK for Node: tools are listed and called,
// questions answered, progress shown, a call is cancelled. Prints what it sees, one JSON object a line.
// Usage: node mcp.js TOOLD SOCKET ROOT
"use strict";

const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { ElicitRequestSchema, ListRootsRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const [toold, socket, root] = process.argv.slice(2);
const print = (kind, what) => console.log(JSON.stringify({ kind, ...what }));

// What the person at this client says: yes, unless the file's name says otherwise.
function decide(question) {
  print("question", { message: question.message, fields: Object.keys(question.requestedSchema.properties) });
  const decision = question.message.includes("forbidden") ? "deny" : "allow";
  return { action: "accept", content: { decision, message: decision === "deny" ? "not this one" : "" } };
}

async function main() {
  const client = new Client(
    { name: "mcp-example", version: "1.0.0" },
    { capabilities: { elicitation: { form: {} }, roots: { listChanged: true } } },
  );
  client.setRequestHandler(ElicitRequestSchema, async (request) => decide(request.params));
  client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: pathToFileURL(root).href }] }));
  await client.connect(new StdioClientTransport({ command: toold, args: ["mcp", "--socket", socket], cwd: "/" }));

  const { tools } = await client.listTools();
  print("tools", { names: tools.map((tool) => tool.name) });

  const call = async (name, input, options) => {
    try {
      const result = await client.callTool({ name, arguments: input }, undefined, options);
      print("result", { name, ...result });
    } catch (error) {
      print("failed", { name, message: String(error.message) });
    }
  };
  await call("Write", { file_path: path.join(root, "allowed.txt"), content: "written\n" });
  await call("Write", { file_path: path.join(root, "forbidden.txt"), content: "written\n" });
  await Promise.all([
    call("Read", { file_path: path.join(root, "allowed.txt") }),
    call("Glob", { pattern: "*.txt" }),
  ]);
  await call("Bash", { command: "echo first; sleep 1; echo second" }, { onprogress: (step) => print("progress", step) });
  const stop = new AbortController();
  const stopped = call("Bash", { command: "echo waiting; sleep 600" }, { signal: stop.signal, onprogress: () => stop.abort("enough") });
  await stopped;
  await call("Bash", { command: "echo after" }); // runs when the one before has ended
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
