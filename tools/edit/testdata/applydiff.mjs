// Applies diffs with the implementation of @openai/agents. Each line of the standard input is {"text", "diff", "create"}, each of
// the output {"text"} or {"error"}. The argument is the directory that has node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";

const require = createRequire(pathToFileURL(process.argv[2] + "/package.json"));
const { applyDiff } = await import(pathToFileURL(require.resolve("@openai/agents")));
for await (const line of createInterface({ input: process.stdin })) {
  const { text, diff, create } = JSON.parse(line);
  let answer;
  try {
    answer = { text: applyDiff(text, diff, create ? "create" : "default") };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
