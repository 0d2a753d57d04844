// Against a real daemon, which the library starts: the environment has to name a place of its own for it.
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
const asText = (item) => JSON.stringify(item);

test("the README's first result", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [code] = readme.match(/(?<=```js\n)[^`]*/);
  const [printed] = readme.match(/(?<=```json\n)[^`]*/);
  assert.ok(code.trim().split("\n").length <= 10);
  const package_ = new URL("..", import.meta.url);
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8", cwd: package_ }), printed);
});

test("messages of each API", async () => {
  const session = await client.session({ roots: [root()], mode: "bypassPermissions" });
  const [user] = await session.run({ id: "m", type: "message", role: "assistant", content: [{ type: "text", text: "x" }, bash("a", "sleep 0.2; echo one"), bash("b", "echo two")] });
  assert.equal(user.role, "user");
  assert.deepEqual(user.content.map((block) => block.tool_use_id), ["a", "b"]);
  assert.match(asText(user.content[0]), /one/);

  const call = (id, command) => ({ id, type: "function", function: { name: "Bash", arguments: JSON.stringify({ command }) } });
  const chat = await session.run(JSON.stringify({ id: "c", object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: null, tool_calls: [call("c1", "sleep 0.2; echo one"), call("c2", "echo two")] }, finish_reason: "tool_calls" }] }));
  assert.deepEqual(chat.map(({ role, tool_call_id }) => [role, tool_call_id]), [["tool", "c1"], ["tool", "c2"]]);

  const item = { type: "function_call", id: "fc_1", call_id: "r1", name: "Bash", arguments: '{"command":"echo three"}' };
  const responses = await session.run({ id: "r", object: "response", status: "completed", output: [item] });
  assert.equal(responses.length, 1);
  assert.equal(responses[0].type, "function_call_output");
  assert.match(asText(responses[0]), /three/);

  assert.deepEqual(await session.run({ id: "t", type: "message", role: "assistant", content: [{ type: "text", text: "no calls" }] }), []);
  session.close();
});

const events = (id, input) => [
  { type: "message_start", message: { id: `msg_${id}`, type: "message", role: "assistant", content: [] } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Let me see." } },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 1, content_block: { type: "tool_use", id, name: "Bash", input: {} } },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: JSON.stringify(input).slice(0, 7) } },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: JSON.stringify(input).slice(7) } },
  { type: "content_block_stop", index: 1 },
  { type: "message_delta", delta: { stop_reason: "tool_use" } },
  { type: "message_stop" },
];

test("a model's stream, event by event", async () => {
  const session = await client.session({ roots: [root()], mode: "bypassPermissions" });
  const started = new Promise((resolve) => session.on("event", ({ event }) => event.case === "started" && resolve()));
  const turn = session.turn();
  const all = events("s1", { command: "echo streamed" });
  for (const event of all.slice(0, 8)) turn.feed(event);
  await started; // before the message has ended
  assert.throws(() => session.call("LS"), { reason: "turn_open" });
  for (const event of all.slice(8)) turn.feed(JSON.stringify(event));
  assert.match(asText(await turn.end()), /streamed/);

  const chunks = [
    { object: "chat.completion.chunk", choices: [{ index: 0, delta: { role: "assistant", tool_calls: [{ index: 0, id: "k1", type: "function", function: { name: "Bash", arguments: '{"command":' } }] } }] },
    { object: "chat.completion.chunk", choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '"echo chunked"}' } }] } }] },
    { object: "chat.completion.chunk", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  ];
  const chat = session.turn();
  for (const chunk of [...chunks, "[DONE]"]) chat.feed(chunk);
  assert.match(asText(await chat.end()), /chunked/);

  const thrownAway = session.turn();
  for (const event of events("s2", { command: "sleep 60" }).slice(0, 8)) thrownAway.feed(event);
  await thrownAway.discard();
  assert.deepEqual(await thrownAway.end(), []);
  const nothing = session.turn();
  nothing.feed(all[0]);
  assert.deepEqual(await nothing.end(), []);
  session.close();
});

test("a message that cannot be used", async () => {
  const session = await client.session({ roots: [root()] });
  await assert.rejects(session.run("{"), { name: "TooldError", code: "INVALID_ARGUMENT", reason: "invalid_model_event" });
  const failed = session.turn();
  failed.feed({ type: "message_start", message: { id: "m" } });
  failed.feed({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
  await assert.rejects(failed.end(), { code: "ABORTED", reason: "model_failed" });
  assert.equal((await session.call("LS", { path: "." }).result()).isError !== undefined, true);
  session.close();
});

test("questions", async () => {
  const dir = root();
  const asked = [];
  let yes = true;
  const session = await client.session({
    roots: [dir],
    onQuestion: async (question) => {
      asked.push(question.title);
      if (question.inputJson.includes("broken")) throw new Error("no terminal");
      return yes ? { decision: "allow", remember: [{ rule: "Bash(true)" }] } : { decision: "deny", message: "not now" };
    },
  });
  const write = (name) => session.call("Write", { file_path: join(dir, name), content: "x\n" }).result();
  assert.equal((await write("yes.txt")).outcome, v1.Outcome.OK);
  yes = false;
  const no = await write("no.txt");
  assert.equal(no.error.code, "client_denied");
  assert.match(resultText(no), /not now/);
  assert.match(resultText(await write("broken.txt")), /no terminal/);
  assert.equal(asked.length, 3);
  session.close();

  const silent = await client.session({ roots: [dir] });
  const denied = await silent.call("Write", { file_path: join(dir, "silent.txt"), content: "x" }).result();
  assert.equal(denied.error.code, "cannot_ask");
  silent.close();
});

test("tools of the client's own", async () => {
  let cancelled;
  const stopped = new Promise((resolve) => (cancelled = resolve));
  const session = await client.session({
    roots: [root()],
    mode: "bypassPermissions",
    tools: [
      { name: "add", description: "Adds.", schema: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] }, readOnly: true, run: ({ a }) => `sum ${a + 1}` },
      { name: "fail", description: "Fails.", run: () => Promise.reject(new Error("out of order")) },
      { name: "wait", description: "Waits.", run: (_, { signal }) => new Promise(() => signal.addEventListener("abort", cancelled)) },
    ],
  });
  assert.ok((await client.tools("anthropic", session)).some(({ name }) => name === "add"));
  assert.equal(resultText(await session.call("add", { a: 1 }).result()), "sum 2");
  assert.equal((await session.call("add", {}).result()).outcome, v1.Outcome.INVALID);
  const failed = await session.call("fail").result();
  assert.equal(failed.isError, true);
  assert.match(resultText(failed), /out of order/);
  const waiting = session.call("wait");
  for await (const { event } of waiting) if (event.case === "started") waiting.cancel("enough");
  assert.equal((await waiting.result()).outcome, v1.Outcome.CANCELLED);
  await stopped;
  session.close();
});

test("a call's events, cancel, interrupt, output", async () => {
  const dir = root();
  const session = await client.session({ roots: [dir], mode: "bypassPermissions" });
  const kinds = [];
  const call = session.call("Bash", { command: "echo out; echo err >&2; sleep 60" });
  for await (const { event } of call) {
    kinds.push(event.case);
    if (event.case === "progress") call.cancel("seen enough");
  }
  const result = await call.result();
  assert.equal(result.outcome, v1.Outcome.CANCELLED);
  assert.deepEqual([kinds[0], kinds.at(-1)], ["accepted", "toolResult"]);
  let printed = "";
  for await (const bytes of client.output(session, call.id, { channel: "stdout" })) printed += Buffer.from(bytes);
  assert.equal(printed, "out\n");

  session.on("event", ({ event }) => {
    if (event.case === "started" && event.value.toolUseId === "runs") session.interrupt("the user broke in");
    if (event.case === "toolResult" && event.value.toolUseId === "waits") writeFileSync(join(dir, "go"), "");
  });
  const two = [bash("runs", "touch a; until [ -e go ]; do sleep 0.05; done"), bash("waits", "touch b")];
  const [answers] = await session.run({ id: "i", type: "message", role: "assistant", content: two });
  assert.equal(answers.content.length, 2);
  assert.match(asText(answers.content[1]), /the user broke in/);

  const timed = await session.call("Bash", { command: "sleep 60" }, { timeout: 200 }).result();
  assert.equal(timed.outcome, v1.Outcome.TIMED_OUT);

  const abort = new AbortController();
  session.on("event", ({ event }) => event.case === "started" && event.value.toolUseId === "long" && abort.abort());
  const [user] = await session.run({ id: "m", type: "message", role: "assistant", content: [bash("long", "sleep 60")] }, { signal: abort.signal });
  assert.equal(user.content[0].is_error, true);
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
  await assert.rejects(client.session({ name: "never-made" }), (error) => {
    assert.ok(error instanceof TooldError);
    assert.equal(error.code, "NOT_FOUND");
    assert.notEqual(error.reason, "");
    return true;
  });
  await assert.rejects(connect({ program: "no-such-program" }), { code: "UNAVAILABLE", reason: "no_daemon" });
  await assert.rejects(connect({ address: `unix:${root()}/none.sock` }), { code: "UNAVAILABLE" });
  await assert.rejects(connect({ address: "http://x" }), { code: "INVALID_ARGUMENT" });
});
