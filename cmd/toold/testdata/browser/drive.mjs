// Drives the dashboard in Chromium as a person would, with the keyboard alone, beside clients that run turns.
// Usage: node drive.mjs TOOLD SOCKET DIR SHOTS ASKING, a program that asks for a hidden line, or "". Exit code 0: everything was seen.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { promisify } from "node:util";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [toold, socket, dir, shots, asking] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const run = promisify(execFile);
const cli = async (...args) => (await run(toold, ["--socket", socket, ...args], { cwd: dir })).stdout;
const step = (text) => console.log(text);

// turn runs a turn of calls in a session, and returns when it has ended. A shell starts the client: what has started a client cannot
// open a page that answers for it.
async function turn(session, calls, ...flags) {
  const p = spawn("sh", ["-c", '"$@"; exit $?', "sh", toold, "--socket", socket, "run", "--session", session, ...flags], { cwd: dir, stdio: ["pipe", "ignore", "inherit"] });
  p.stdin.end(calls.map((c) => JSON.stringify(c) + "\n").join(""));
  const [code] = await once(p, "exit");
  return code;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const errors = [];

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("console", (m) => { if (m.type() === "error") errors.push(m.text()); });
  const { url, code } = JSON.parse(await cli("dashboard", "--json"));
  await page.goto(`${url}#${code}`);
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  return page;
}

// check holds a page against axe's rules, and keeps a picture of it.
async function check(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), [], `${name} has findings of axe`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.equal(wide, false, `${name} is wider than the window`);
  await page.screenshot({ path: join(shots, name + ".png") });
}

// tab moves the focus on until it is on what fits.
async function tab(page, fits, text = "") {
  for (let i = 0; i < 80; i++) {
    if (await page.evaluate(([f, t]) => new Function("e", "t", `return ${f}`)(document.activeElement, t), [fits, text]).catch(() => false)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${fits} ${text}`);
}
const reach = async (page, text) => {
  const target = page.locator("a,button,input,select").filter({ hasText: text }).first();
  await target.waitFor();
  for (let i = 0; i < 80; i++) {
    if (await target.evaluate((e) => e === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${text}`);
};

const page = await open();
assert.equal(await page.evaluate(() => location.hash), "", "the code is left in the address");

step("a live turn: batches, progress, an abort");
writeFileSync(join(dir, "poem.txt"), "one\ntwo\n");
const live = turn("live", [
  { id: "r1", name: "Read", input: { file_path: join(dir, "poem.txt") } },
  { id: "r2", name: "Glob", input: { pattern: "*" } },
  { id: "s1", name: "Bash", input: { command: `printf '\\033[32mfirst\\033[0m <b>bold</b>\\n'; while [ ! -e ${dir}/go ]; do sleep 0.1; done; exit 3` } },
  { id: "s2", name: "Bash", input: { command: "touch never" } },
], "--mode", "bypassPermissions");
await page.getByRole("link", { name: "live", exact: true }).waitFor();
await reach(page, "live");
await page.keyboard.press("Enter");
const calls = page.getByRole("listbox", { name: "Calls" });
await calls.getByText("runs", { exact: true }).first().waitFor();
await check(page, "session-live-1280");
await tab(page, "e.getAttribute('role') === 'listbox'");
const row = (text) => calls.getByRole("option").filter({ hasText: text });
assert.match(await row("Read(").innerText(), /^b1/);
for (let i = 0; i < 20 && !(await row("printf").getAttribute("aria-selected") === "true"); i++) await page.keyboard.press(i ? "ArrowDown" : "Home");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Output so far" }).waitFor();
await page.getByLabel("Output so far").getByText("first").waitFor();
assert.equal(await page.locator("pre b").count(), 0, "text has become markup");
writeFileSync(join(dir, "go"), "");
assert.equal(await live, 1);
await page.getByText("error", { exact: true }).waitFor();
assert.equal(await page.getByLabel("Output", { exact: true }).locator(".a-32").innerText(), "first");
await reach(page, "← live");
await page.keyboard.press("Enter");
await row("touch never").getByText("aborted").waitFor();

step("a question is answered");
writeFileSync(join(dir, "settings.json"), "{}");
const asked = turn("asking", [
  { id: "w0", name: "Read", input: { file_path: join(dir, "poem.txt") } },
  { id: "w1", name: "Edit", input: { file_path: join(dir, "poem.txt"), old_string: "two", new_string: "three & <i>four</i>" } },
]);
await page.getByRole("link", { name: "Questions (1)" }).waitFor();
await reach(page, "Questions (1)");
await page.keyboard.press("Enter");
await page.locator(".question .line.add").getByText("three & <i>four</i>").waitFor();
await check(page, "question-1280");
await reach(page, "Allow");
await page.keyboard.press("Enter");
assert.equal(await asked, 0);
await page.getByText("Nothing waits for an answer.").waitFor();
assert.equal(readFileSync(join(dir, "poem.txt"), "utf8"), "one\nthree & <i>four</i>\n");

if (asking) {
  step("a program gets a hidden line as it was typed");
  const hidden = turn("hidden", [{ id: "p1", name: "Bash", input: { command: asking, pty: true } }], "--mode", "bypassPermissions");
  await page.locator(".question input[type=password]").waitFor();
  await tab(page, "e.type === 'password'");
  await page.keyboard.type("Xq7correct-hörse-9battery");
  await reach(page, "Allow");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing waits for an answer.").waitFor();
  assert.equal(await hidden, 0);
  while (!existsSync(join(dir, "got"))) await later(50);
  assert.equal(readFileSync(join(dir, "got"), "utf8"), "Xq7correct-hörse-9battery");
}

step("an edit is undone");
await page.goto(page.url().split("#")[0] + "#/call/asking/w1");
await page.getByRole("heading", { name: "Changed files" }).waitFor();
await page.getByRole("heading", { name: "Why it was allowed" }).waitFor();
await check(page, "call-1280");
await reach(page, "Undo …");
await page.keyboard.press("Enter");
await reach(page, "Put back");
await page.keyboard.press("Enter");
await page.getByText("1 files were put back.").waitFor();
await page.locator("#health").getByText(/^run p50 .*, p99 /).waitFor();

step("several turns have the id of a call");
await page.goto(page.url().split("#")[0] + "#/call/asking/w1/7");
await page.getByRole("alert").getByText('The call "w1" is one of turn 1, not of turn 7').waitFor();
assert.equal(errors.splice(0).length, 1); // the browser logs what is refused
const buttons = page.getByRole("button", { name: /Undo|Cancel/ });
assert.deepEqual(await buttons.allTextContents(), [], "another call could be undone");
assert.equal(readFileSync(join(dir, "poem.txt"), "utf8"), "one\ntwo\n");
assert.equal(await turn("asking", [{ id: "w1", name: "Glob", input: { pattern: "again" } }], "--turn", "again"), 0);
for (const [path, title] of [["w1/1", "Edit("], ["w1", "Glob("]]) {
  await page.goto(page.url().split("#")[0] + "#/call/asking/" + path);
  await page.getByRole("heading", { level: 2 }).filter({ hasText: title }).waitFor();
}

step("a background task is killed");
assert.equal(await turn("tasks", [{ id: "b1", name: "Bash", input: { command: "echo started; sleep 1000", run_in_background: true } }], "--mode", "bypassPermissions"), 0);
await page.getByRole("link", { name: "Tasks (1)" }).waitFor();
await reach(page, "Tasks (1)");
await page.keyboard.press("Enter");
await reach(page, "Show output");
await page.keyboard.press("Enter");
await page.getByLabel("Output").getByText("started").waitFor();
await check(page, "tasks-1280");
await reach(page, "Kill");
await page.keyboard.press("Enter");
await page.getByText("No background task runs.").waitFor();

step("10,000 calls are filtered");
const many = Number(process.env.MANY ?? 10000);
for (let from = 0; from < many; from += 1000) {
  await turn("many", Array.from({ length: Math.min(1000, many - from) }, (_, i) => ({ id: `m${from + i}`, name: "Glob", input: { pattern: `nothing-${from + i}` } })));
}
await page.goto(page.url().split("#")[0] + "#/session/many");
await page.getByText(`${many} calls`, { exact: true }).waitFor();
assert.ok(await calls.getByRole("option").count() < 100, "all rows are elements");
await tab(page, "e.type === 'search'");
await page.keyboard.type(`nothing-${many - 7})`);
await page.getByText(`1 of ${many} calls`).waitFor();
assert.equal(await row(`nothing-${many - 7}`).count(), 1);

step("narrow and dark");
for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["dark", 400], ["light", 400]]) {
  const other = await open({ colorScheme, viewport: { width, height: 800 } });
  await check(other, `sessions-${colorScheme}-${width}`);
  for (const [name, path] of [["session", "session/live"], ["call", "call/asking/w1/1"], ["questions", "questions"], ["settings", "surroundings/live"]]) {
    await other.goto(other.url().split("#")[0] + "#/" + path);
    await other.locator("main h2").waitFor();
    if (name === "session") await other.getByRole("listbox", { name: "Calls" }).getByRole("option").first().waitFor();
    if (name === "call") await other.getByRole("heading", { name: "Changed files" }).waitFor();
    if (name === "settings") await other.getByText("permissions.allow").first().waitFor();
    await check(other, `${name}-${colorScheme}-${width}`);
  }
  await other.context().close();
}
assert.deepEqual(errors, []);
await browser.close();
step("everything was seen");
