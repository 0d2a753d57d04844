// Runs commands of the memory tool, a JSON array on stdin, with the implementation of the SDK in the directory that the first
// argument names. It prints a JSON array of what each returned: {text} or {error}.
import { text } from 'node:stream/consumers';
import { BetaLocalFilesystemMemoryTool, betaMemoryTool } from '@anthropic-ai/sdk/tools/memory/node';

const tool = betaMemoryTool(await BetaLocalFilesystemMemoryTool.init(process.argv[2]));
const results = [];
for (const input of JSON.parse(await text(process.stdin))) {
  try {
    results.push({ text: await tool.run(tool.parse(input)) });
  } catch (error) {
    results.push({ error: error.message });
  }
}
console.log(JSON.stringify(results));
