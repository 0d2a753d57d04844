// Runs gemini-cli-core's own tools, as its agent does: a line of JSON asks ({"id", "method": tool, "params": input}), and a
// line answers. The folder that the tools work in is the first argument.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [root, modules] = process.argv.slice(2);
const require = createRequire(modules + '/');
const core = await import(pathToFileURL(require.resolve('@google/gemini-cli-core')));

// What the library prints belongs to a person, not to the protocol.
console.log = console.info = console.debug = console.error;

const config = new core.Config({
  sessionId: 'peer', targetDir: root, cwd: root, debugMode: false, model: 'none',
  approvalMode: core.ApprovalMode.YOLO, usageStatisticsEnabled: false,
});
await config.storage?.initialize();
const bus = new core.MessageBus(config.getPolicyEngine?.() ?? new core.PolicyEngine({}), false);
const tools = {};
for (const name of ['ShellTool', 'ReadFileTool', 'GrepTool', 'RipGrepTool', 'GlobTool', 'LSTool']) {
  if (core[name]) tools[name] = new core[name](config, bus);
}
await core.initializeShellParsers?.();

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  let answer;
  try {
    const result = await tools[method].build(params).execute({ abortSignal: new AbortController().signal, updateOutput: () => {} });
    answer = result.error ? { error: result.error } : { result };
  } catch (error) {
    answer = { error: { message: String(error?.stack ?? error) } };
  }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\n');
}
process.exit(0);
