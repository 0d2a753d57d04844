// What only this library has, against a real daemon, which it starts: the environment has to name a place of its own for it.
// clients/conformance holds it against what all libraries do.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { TooldError, connect, resultText } from "toold";

let client;
before(async () => (client = await connect()));
after(() => client.close());

const root = () => mkdtempSync(join(tmpdir(), "client-"));
const bash = (id, command) => ({ type: "tool_use", id, name: "Bash", input: { command } });

test("the README's first result", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [code] = readme.match(/(?<=```js\n)[^`]*/);
  const [printed] = readme.match(/(?<=```json\n)[^`]*/);
  assert.ok(code.trim().split("\n").length <= 10);
  const package_ = new URL("..", import.meta.url);
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8", cwd: package_ }), printed);
});

test("the fields of an answer", async () => {
  const dir = root();
  const session = await client.session({
    roots: [dir],
    onQuestion: (question) => {
      if (question.inputJson.includes("broken")) throw new Error("no terminal");
      return { decision: "deny", message: "not now" };
    },
  });
  const write = (name) => session.call("Write", { file_path: join(dir, name), content: "x\n" }).result();
  assert.match(resultText(await write("no.txt")), /not now/);
  assert.match(resultText(await write("broken.txt")), /no terminal/);
  session.close();
});

test("a call's events, its time limit, and a signal", async () => {
  const session = await client.session({ roots: [root()], mode: "bypassPermissions" });
  const kinds = [];
  for await (const { event } of session.call("Bash", { command: "echo out; sleep 60" }, { timeout: 200 })) kinds.push(event.case);
  assert.deepEqual([kinds[0], kinds.at(-1)], ["accepted", "toolResult"]);
  const abort = new AbortController();
  session.on("event", ({ event }) => event.case === "started" && event.value.toolUseId === "long" && abort.abort());
  const [user] = await session.run({ id: "m", type: "message", role: "assistant", content: [bash("long", "sleep 60")] }, { signal: abort.signal });
  assert.equal(user.content[0].is_error, true);
  const turn = session.turn();
  assert.throws(() => session.call("LS"), { reason: "turn_open" });
  await turn.discard();
  session.close();
});

test("diff, undo, watch", async () => {
  const dir = root();
  writeFileSync(join(dir, "a.txt"), "old\n");
  const session = await client.session({ roots: [dir], mode: "acceptEdits" });
  await session.call("Write", { file_path: join(dir, "b.txt"), content: "new\n" }).result();
  const { net } = await session.diff();
  assert.deepEqual(net.map(({ path }) => path), [join(dir, "b.txt")]);
  assert.deepEqual((await session.undo({ dryRun: true })).restored, [join(dir, "b.txt")]);
  await session.undo();
  assert.throws(() => readFileSync(join(dir, "b.txt")));
  await assert.rejects(session.undo(), TooldError);
  const seen = [];
  for await (const { event } of client.watch(session, { afterSeq: 0n, follow: false })) seen.push(event.case);
  assert.ok(seen.includes("toolResult") && seen.includes("turnEnded"));
  session.close();
});

test("definitions and errors", async () => {
  for (const format of ["anthropic", "openai", "responses", "mcp", "native"]) assert.ok((await client.tools(format)).length > 5, format);
  await assert.rejects(connect({ program: "no-such-program" }), { code: "UNAVAILABLE", reason: "no_daemon" });
  await assert.rejects(connect({ address: "http://x" }), { code: "INVALID_ARGUMENT" });
});
