// What only this library has, against a real daemon, which it starts: the environment has to name a place of its own for it.
// clients/conformance holds it against what all libraries do.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { TooldError, connect, resultText, v1 } from "toold";

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

test("an answer that is none is a no, and says why", async () => {
  const dir = root();
  const circle = {};
  circle.circle = circle;
  const answers = {
    text: [() => "yes", /returned 'yes': return true, false/],
    nothing: [() => {}, /returned undefined/],
    null: [async () => null, /returned null/],
    one: [() => 1, /returned 1/],
    throws: [() => { throw new Error("no terminal"); }, /could not ask: no terminal/],
    rejects: [() => Promise.reject(), /could not ask: undefined/],
    decision: [() => ({ decision: "Allow" }), /decision is 'Allow': it is one of allow, deny/],
    empty: [() => ({}), /decision is undefined/],
    inherited: [() => ({ decision: "toString" }), /decision is 'toString'/],
    misspelled: [() => ({ decision: "allow", updated_input: {} }), /an answer: there is no updated_input/],
    circle: [() => ({ decision: "allow", updatedInput: circle }), /updatedInput has no JSON/],
    function: [() => ({ decision: "allow", updatedInput: () => {} }), /updatedInput has no JSON/],
    remember: [() => ({ decision: "allow", remember: "all" }), /could not ask/],
    scope: [() => ({ decision: "allow", remember: [{ rule: "Write", scope: "all" }] }), /scope is 'all'/],
    rule: [() => ({ decision: "allow", remember: [{ rule: "Nothing(((" }] }), /answer was refused: /],
    said: [() => ({ decision: "deny", message: "not now" }), /not now/],
    false: [() => false, /denied|declined|refused|no/i],
  };
  const session = await client.session({ roots: [dir], onQuestion: ({ inputJson }) => answers[inputJson.match(/(\w+)\.txt/)[1]][0]() });
  for (const [name, [, why]] of Object.entries(answers)) {
    const result = await session.call("Write", { file_path: join(dir, `${name}.txt`), content: "x\n" }).result();
    assert.equal(result.outcome, v1.Outcome.DENIED, name);
    assert.match(resultText(result), why, name);
    assert.throws(() => readFileSync(join(dir, `${name}.txt`)), { code: "ENOENT" });
  }
  answers.yes = [() => true];
  assert.equal((await session.call("Write", { file_path: join(dir, "yes.txt"), content: "x\n" }).result()).outcome, v1.Outcome.OK);
  session.close();
});

test("an output that is none is an error of the tool's", async () => {
  const outputs = {
    nothing: [() => {}, /the tool nothing returned undefined: return a string or {content}/],
    number: [() => 7, /returned 7/],
    object: [() => ({ a: 1 }), /returned { a: 1 }/],
    blocks: [() => ({ content: [7] }), /./],
    rejects: [() => Promise.reject(Object.create(null)), /Object: null prototype/],
  };
  const tools = Object.entries(outputs).map(([name, [run]]) => ({ name, description: "A tool.", readOnly: true, run }));
  const session = await client.session({ roots: [root()], tools });
  for (const [name, [, why]] of Object.entries(outputs)) {
    const result = await session.call(name).result();
    assert.equal(result.error?.code, "tool_failed", name);
    assert.match(resultText(result), why, name);
  }
  session.close();
});

test("a listener that throws is a warning", async () => {
  const warned = [];
  const all = new Promise((resolve) => process.on("warning", ({ message }) => warned.push(message) === 3 && resolve()));
  const dir = root();
  const session = await client.session({ roots: [dir], mode: "bypassPermissions", onEdit: () => { throw new Error("edit"); } });
  session.once("event", () => { throw new Error("event"); });
  session.once("event", () => Promise.reject(new Error("rejected")));
  const path = join(dir, "a.txt");
  session.buffer(path, "old\n");
  await session.call("Read", { file_path: path }).result();
  assert.equal((await session.call("Edit", { file_path: path, old_string: "old", new_string: "new" }).result()).outcome, v1.Outcome.OK);
  await all;
  assert.deepEqual(warned.sort(), ["edit", "event", "rejected"]);
  session.close();
});

test("what has no JSON leaves no turn open", async () => {
  const session = await client.session({ roots: [root()], mode: "bypassPermissions" });
  await assert.rejects(session.run({ id: 1n }), /an event has no JSON/);
  await assert.rejects(session.run(), /an event has no JSON/);
  assert.throws(() => session.call("Bash", () => {}), /input has no JSON/);
  assert.equal(resultText(await session.call("Bash", { command: "echo hi" }).result()), "hi\n");
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
  await assert.rejects(client.tools("claude"), /format is 'claude': it is one of native, anthropic, /);
  await assert.rejects(client.session({ mode: "yolo" }), /mode is 'yolo': it is one of default, acceptEdits, /);
  await assert.rejects(client.session({ onquestion() {} }), /a session's options: there is no onquestion, but name, roots, /);
  await assert.rejects(client.session({ onQuestion: null }), /onQuestion is null, not a function/);
  await assert.rejects(client.session({ tools: [{ name: "x", description: "A tool." }] }), /run of the tool x is null, not a function/);
  const session = await client.session({ roots: root() });
  await client.session({ name: "made-by-its-name" });
  await client.session({ name: session.id, roots: [] });
  await session.close();
  await assert.rejects(client.session({ name: session.id }), { reason: "session_closed" });
  await assert.rejects(connect({ program: "no-such-program" }), { code: "UNAVAILABLE", reason: "no_daemon" });
  await assert.rejects(connect({ address: "http://x" }), { code: "INVALID_ARGUMENT" });
});
