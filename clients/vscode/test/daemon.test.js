// The extension with a stand-in for the editor, beside an agent at the real daemon. Needs toold on PATH, with a place of its own.
"use strict";
const assert = require("node:assert/strict");
const { execFile, execFileSync } = require("node:child_process");
const { mkdtempSync, readFileSync, realpathSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { afterEach, test } = require("node:test");
const fake = require("./fake.js");
const { activate } = require("../dist/extension.js");

let window, context, last = 0;

/** Waits for something to hold, and returns it. */
async function seen(what, holds) {
  const until = Date.now() + 30_000;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > until) throw new Error(`not seen: ${what}; said: ${fake.said.join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A folder with a file, a window that is attached, and an agent's way to call tools in the session. */
async function begin() {
  const root = realpathSync(mkdtempSync(`${tmpdir()}/vs`)), name = `s${++last}`, path = `${root}/a.txt`;
  writeFileSync(path, "one\ntwo\n");
  Object.assign(fake, { roots: [root], said: [], documents: [], settings: {}, executed: [], answer: async () => undefined, refuseSave: false });
  context = { subscriptions: [] };
  window = activate(context);
  await fake.run("toold.attach", name);
  await seen("an attached session", () => window.session?.id && window.status === "toold" && window.sessions().then((found) => found.some((s) => s.id === name)));
  // An agent has a parent of its own: the daemon takes no answer from a process that has started the client who asks.
  const call = (tool, input) => new Promise((resolve) => {
    const script = 'toold call --session "$0" "$1" "$2"; exit';
    execFile("sh", ["-c", script, name, tool, JSON.stringify(input)], { timeout: 60_000 }, (_, stdout, stderr) => resolve(stdout + stderr));
  });
  return { root, path, call, name };
}

afterEach(() => { for (const s of context.subscriptions) s.dispose(); });

test("unsaved text is read, edited in the editor, and saved for programs", async () => {
  const { path, call } = await begin();
  const document = fake.open(path);
  document.type("eins\ntwo\n");
  assert.match(await call("Read", { file_path: path }), /eins/);
  fake.answer = async (_, buttons) => buttons?.find((b) => b === "Allow");
  await call("Edit", { file_path: path, old_string: "eins", new_string: "1" });
  assert.equal(document.text, "1\ntwo\n");
  assert.equal(readFileSync(path, "utf8"), "one\ntwo\n");
  assert.match(await call("Bash", { command: "cat a.txt" }), /1\ntwo/);
  assert.equal(document.isDirty, false);
  document.type("later\n");
  fake.refuseSave = true;
  assert.match(await call("Bash", { command: "cat a.txt" }), /1\ntwo/);
  document.close();
  assert.match(await call("Read", { file_path: path }), /two/);
});

test("a question is answered, with its diff beside it", async () => {
  const { path, call } = await begin();
  const answers = ["Show Diff", "Allow"];
  fake.answer = async () => answers.shift();
  await call("Read", { file_path: path });
  await call("Edit", { file_path: path, old_string: "one", new_string: "eins" });
  assert.equal(readFileSync(path, "utf8"), "eins\ntwo\n");
  const [command, left, right] = fake.executed.find(([c]) => c === "vscode.diff");
  const text = (uri) => fake.providers.get("toold").provideTextDocumentContent(uri);
  assert.equal(command, "vscode.diff");
  assert.match(text(left), /\none\n/);
  assert.match(text(right), /\neins\n/);
  fake.answer = async (_, choices) => choices?.at(-1) === "More…" ? "More…" : choices?.at(-1) ?? "not today";
  assert.match(await call("Bash", { command: "touch made" }), /not today/);
});

test("the editor's tools are the session's", async () => {
  const { path, call } = await begin();
  fake.diagnostics = [[{ fsPath: path }, [{ range: { start: { line: 0, character: 2 } }, severity: 1, message: "unused", source: "lint" }]]];
  assert.match(await call("getDiagnostics", {}), /a\.txt:1:3: warning: unused \[lint\]/);
  assert.match(await call("getSelection", {}), /No file is shown/);
  fake.answer = async (_, buttons) => buttons[0];
  assert.match(await call("openDiff", { path, content: "proposed\n" }), /accepted this text[^]*proposed/);
  fake.answer = async () => undefined;
  assert.match(await call("openDiff", { path, content: "proposed\n" }), /rejected/);
});

test("calls are in the tree, and can be stopped", async () => {
  const { call, name } = await begin();
  fake.answer = async (_, buttons) => buttons?.find((b) => b === "Allow");
  const result = call("Bash", { command: "sleep 600; touch never" });
  const running = await seen("a running call", () => window.calls.find((c) => c.state === "running"));
  assert.match(window.status, /1 running/);
  const [listed] = await fake.tree.getChildren();
  assert.equal(fake.tree.getTreeItem(listed).label, name);
  const [item] = await fake.tree.getChildren(listed);
  assert.equal(fake.tree.getTreeItem(item).contextValue, "toold.running");
  await fake.run("toold.cancelCall", item);
  await result;
  const ended = await seen("its end", () => window.calls.find((c) => c.id === running.id && c.state === "ended"));
  assert.equal(ended.outcome, "OUTCOME_CANCELLED");
});

test("what has changed is shown and put back", async () => {
  const { path, call } = await begin();
  fake.answer = async (_, buttons) => buttons?.find((b) => b === "Allow" || b === "Put Back");
  await call("Read", { file_path: path });
  await call("Edit", { file_path: path, old_string: "one", new_string: "eins" });
  await fake.run("toold.diff");
  assert.match(fake.shown.text, /-one\n\+eins/);
  await fake.run("toold.log");
  assert.match(fake.shown.text, /Edit/);
  await fake.run("toold.undo");
  assert.equal(readFileSync(path, "utf8"), "one\ntwo\n");
  await fake.run("toold.tasks");
  assert.ok(fake.said.includes("toold: no background tasks"));
});

test("a daemon that is gone is attached again, with the unsaved text", async () => {
  const { path, call } = await begin();
  const document = fake.open(path);
  document.type("unsaved\n");
  await call("Read", { file_path: path });
  const { pid } = JSON.parse(execFileSync("toold", ["status", "--json"]));
  let attached = 0;
  const real = window.attached;
  window.attached = (session) => (attached++, real.call(window, session));
  process.kill(pid, "SIGKILL");
  await seen("the session, attached again", () => attached);
  assert.match(await call("Read", { file_path: path }), /unsaved/);
});

test("errors are said, and the editor's own server is offered", async () => {
  const { root } = await begin();
  const [server] = fake.mcp.provideMcpServerDefinitions();
  assert.deepEqual([server.command, server.args], ["toold", ["mcp", "--root", root]]);
  await fake.run("toold.detach");
  await fake.run("toold.diff");
  assert.match(fake.said.at(-1), /not attached/);
  const missing = `${root}/absent/toold`;
  fake.settings.command = [missing];
  await fake.run("toold.attach", "x");
  await seen("why", () => fake.said.find((s) => s.includes(missing)));
  assert.equal(window.session, undefined);
  await fake.run("toold.attach");
  assert.match(fake.said.at(-1), /absent\/toold/);
});
