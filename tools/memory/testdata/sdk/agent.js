// Runs calls of the agent toolset, a JSON array of {name, input} on stdin, with the implementation of the SDK in the directory that
// the first argument names. It prints a JSON array of what each returned: {text} or {error}.
import { text } from 'node:stream/consumers';
import { betaAgentToolset20260401 } from '@anthropic-ai/sdk/tools/agent-toolset/node';

const tools = betaAgentToolset20260401({ workdir: process.argv[2] });
const results = [];
for (const { name, input } of JSON.parse(await text(process.stdin))) {
  try {
    results.push({ text: await tools.find((tool) => tool.name === name).run(input) });
  } catch (error) {
    results.push({ error: error.message });
  }
}
for (const tool of tools) await tool.close?.();
console.log(JSON.stringify(results));
