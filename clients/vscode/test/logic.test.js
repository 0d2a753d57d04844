// What needs no daemon: edits of texts, questions and their answers, the sides of a diff.
"use strict";
const assert = require("node:assert/strict");
const { mkdtempSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { test } = require("node:test");
const { Buffers } = require("../dist/buffers.js");
const { Questions, sides } = require("../dist/questions.js");
const { Bridge } = require("../dist/bridge.js");

function documentOf(text) {
  return {
    path: "/a", version: 5, isDirty: true, isClosed: false, text,
    getText() { return this.text; },
    async save() { return !(this.isDirty = false); },
  };
}

const apply = async (document, changes) => {
  for (const { from, to, text } of changes) document.text = document.text.slice(0, from) + text + document.text.slice(to);
  document.version++;
  return true;
};

test("edits count bytes of UTF-8, and several are made one after the other", async () => {
  for (const [before, edits, after] of [
    ["äöü", [{ offset: "2", length: "2", text: "o" }], "äoü"],
    ["a𝄞b", [{ offset: "1", length: "4", text: "" }], "ab"],
    ["one", [{ text: "zero " }], "zero one"],
    ["one\n", [{ offset: "0", length: "3", text: "two" }, { offset: "4", text: "three\n" }], "two\nthree\n"],
    ["aa", [{ offset: "1", length: "1", text: "aa" }], "aaa"],
  ]) {
    const document = documentOf(before);
    const sent = [];
    const buffers = new Buffers(() => [document], apply);
    buffers.start((m) => sent.push(m));
    assert.equal(await buffers.edit({ path: "/a", version: "5", edits }), 6);
    assert.equal(document.text, after);
    buffers.touch(document);
    assert.equal(sent.length, 1, "the text after the edit is not sent again");
  }
});

test("an edit of another version, or of a file that is not open, changes nothing", async () => {
  const document = documentOf("one");
  const buffers = new Buffers(() => [document], apply);
  buffers.start(() => {});
  await assert.rejects(buffers.edit({ path: "/a", version: "4", edits: [{ text: "x" }] }), /has changed/);
  await assert.rejects(buffers.edit({ path: "/b", version: "5", edits: [{ text: "x" }] }), /not have the file open/);
  assert.equal(document.text, "one");
});

test("a saved or closed file is taken back", () => {
  const document = documentOf("one");
  const sent = [];
  const buffers = new Buffers(() => [document], apply);
  buffers.start((m) => sent.push(m));
  document.isDirty = false;
  buffers.touch(document);
  buffers.touch(document);
  assert.deepEqual(sent, [{ buffer_changed: { path: "/a", version: 5, content: "one" } }, { buffer_closed: { path: "/a" } }]);
});

test("what was changed by something else during an edit is an error, and the text is told again", async () => {
  const document = documentOf("one");
  const sent = [];
  const buffers = new Buffers(() => [document], async (d, changes) => { await apply(d, changes); d.text += "!"; return true; });
  buffers.start((m) => sent.push(m));
  await assert.rejects(buffers.edit({ path: "/a", version: "5", edits: [{ text: "x" }] }), /something else/);
  await new Promise(setImmediate);
  assert.deepEqual(sent.at(-1), { buffer_changed: { path: "/a", version: 6, content: "xone!" } });
});

test("the sides of a diff keep what only looks like a header", () => {
  const [left, right] = sides("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n--- two\n+++ zwei\n three\n\\ No newline at end of file\n");
  assert.equal(left, "+++ b/x\n@@ -1,3 +1,3 @@\none\n-- two\nthree");
  assert.equal(right, "+++ b/x\n@@ -1,3 +1,3 @@\none\n++ zwei\nthree");
});

/** Asks one question, and returns what was sent. The answers are given in turn. */
async function answered(question, ...answers) {
  const sent = [], shown = [];
  const next = async (title, ...rest) => (shown.push([title, ...rest]), answers.shift());
  const questions = new Questions({ message: next, pick: next, input: next, diff: next }, () => {});
  questions.add({ send: (m) => sent.push(m.answer) }, { question_id: "q", input_digest: "d", title: "Bash(rm x)", reason: "It removes.", ...question });
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
  return { sent, shown, questions };
}

test("answers", async () => {
  const suggestions = [{ list: "allow", rule: "Bash(rm *)" }, { list: "deny", rule: "Bash(rm)" }];
  const base = { question_id: "q", input_digest: "d" };
  for (const [question, answers, sent] of [
    [{}, ["Allow"], { ...base, decision: "DECISION_ALLOW" }],
    [{}, ["Deny"], { ...base, decision: "DECISION_DENY" }],
    [{ diff: "@@ -1 +1 @@\n-a\n+b" }, ["Show Diff", undefined, "Allow"], { ...base, decision: "DECISION_ALLOW" }],
    [{ suggestions }, ["More…", "Deny, and tell the model why", "not now"], { ...base, decision: "DECISION_DENY", message: "not now" }],
    [{ suggestions }, ["More…", "Always allow Bash(rm *)", "for this session"], { ...base, decision: "DECISION_ALLOW", remember: [{ rule: "Bash(rm *)", list: "allow", scope: "SCOPE_SESSION" }] }],
    [{ suggestions }, ["More…", "Always deny Bash(rm)", "for all my projects"], { ...base, decision: "DECISION_DENY", remember: [{ rule: "Bash(rm)", list: "deny", scope: "SCOPE_USER" }] }],
    [{ form_schema_json: '{"properties":{"n":{"type":"integer"},"b":{"type":"boolean"},"e":{"enum":["x","y"]}}}' }, ["Allow", "3", "no", "y"], { ...base, decision: "DECISION_ALLOW", updated_input_json: '{"n":3,"b":false,"e":"y"}' }],
  ]) assert.deepEqual((await answered(question, ...answers)).sent, [sent]);
});

test("a question that is dismissed stays open, and can be answered later", async () => {
  const { sent, questions } = await answered({}, undefined, "Allow");
  assert.deepEqual(sent, []);
  assert.equal(questions.count, 1);
  assert.equal(await questions.again(), true);
  assert.equal(sent.length, 1);
  assert.equal(await questions.again(), false);
});

test("a yes to a question that has become another one is not passed on", async () => {
  const sent = [];
  const asked = [];
  const questions = new Questions({ message: (text) => new Promise((resolve) => asked.push({ text, resolve })) }, () => {});
  const session = { send: (m) => sent.push(m.answer) };
  questions.add(session, { question_id: "q", input_digest: "old", title: "old" });
  questions.add(session, { question_id: "q", input_digest: "new", title: "new" });
  asked[0].resolve("Allow");
  while (asked.length < 2) await new Promise(setImmediate);
  assert.deepEqual(sent, []);
  assert.match(asked[1].text, /new/);
  asked[1].resolve("Allow");
  while (sent.length < 1) await new Promise(setImmediate);
  assert.equal(sent[0].input_digest, "new");
});

test("a question that was withdrawn is not answered", async () => {
  const sent = [];
  let resolve;
  const questions = new Questions({ message: () => new Promise((r) => (resolve = r)) }, () => {});
  questions.add({ send: (m) => sent.push(m) }, { question_id: "q", title: "x" });
  questions.withdraw("q");
  resolve("Allow");
  await new Promise(setImmediate);
  assert.deepEqual(sent, []);
});

test("a program that cannot be started is named, and every request fails", async () => {
  const bridge = new Bridge([`${mkdtempSync(`${tmpdir()}/vs`)}/absent/toold`], undefined, () => {}, () => {});
  await assert.rejects(bridge.request("DaemonService/GetInfo", {}).result, /absent\/toold cannot be started/);
  await assert.rejects(bridge.request("DaemonService/GetInfo", {}).result, /does not run/);
});
