// Drives the dashboard in Chromium as a person would, with the keyboard alone, beside clients that run turns.
// Usage: node drive.mjs TOOLD SOCKET DIR SHOTS ASKING, a program that asks for a hidden line, or "". Exit code 0: everything was seen.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as later } from "node:timers/promises";
import assert from "node:assert/strict";
import { many } from "./many.mjs";
import { asking, browser, check, dir, errors, narrow, open, press, reach, step, tab, to, turn } from "./person.mjs";

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
await page.getByLabel("Output", { exact: true }).getByText("first").waitFor();
assert.equal(await page.locator("pre b").count(), 0, "text has become markup");
writeFileSync(join(dir, "go"), "");
assert.equal(await live, 1);
await page.getByText("error", { exact: true }).waitFor();
assert.equal(await page.getByLabel("Output", { exact: true }).locator(".a-32").innerText(), "first");
await reach(page, "← live");
await page.keyboard.press("Enter");
assert.match(await row("touch never").textContent(), /↰ aborted by Bash\(printf/);
const places = await page.evaluate(() => { // at once, since a row that changes is made again
  const middles = (what) => [...document.querySelectorAll(`.list ${what}`)].map((e) => { const b = e.getBoundingClientRect(); return (b.top + b.bottom) / 2; });
  const [tail, trunk, head, rows] = ["i.tail", "i.trunk", "i.head", "[role=option]"].map(middles);
  return { tail, trunk, head, from: rows.at(-2), to: rows.at(-1) };
});
const near = (found, y) => assert.ok(found.length === 1 && Math.abs(found[0] - y) <= 2, `an arrow's part is at ${found}, not ${y}: ${JSON.stringify(places)}`);
near(places.tail, places.from);
near(places.trunk, (places.from + places.to) / 2);
near(places.head, places.to);
await check(page, "session-aborted-1280");

step("a session is watched before it begins, and a call of it is cancelled");
await to(page, "session/early");
await page.getByText("No session has this name yet.").waitFor();
const early = turn("early", [{ id: "e1", name: "Bash", input: { command: "sleep 1000" } }], "--mode", "bypassPermissions");
await calls.getByText("runs", { exact: true }).first().waitFor();
await tab(page, "e.getAttribute('role') === 'listbox'");
await page.keyboard.press("End");
await page.keyboard.press("Enter");
await reach(page, "Cancel");
await press(page, () => page.getByText("cancelled", { exact: true }).first().waitFor());
assert.equal(await early, 1);

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
await narrow(page, "question-400");
await reach(page, "Allow");
await press(page, () => page.getByText("Nothing waits for an answer.").waitFor());
assert.equal(await asked, 0);
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
await to(page, "call/asking/w1");
await page.getByRole("heading", { name: "Changed files" }).waitFor();
await page.getByRole("heading", { name: "Why it was allowed" }).waitFor();
await check(page, "call-1280");
await reach(page, "Undo …");
await page.keyboard.press("Enter");
await reach(page, "Put back");
await press(page, () => page.getByText("All of it has been put back.").waitFor());
await page.getByText("1 file was put back.").waitFor();
await page.locator("#health").getByText(/^run p50 .*, p99 /).waitFor();

step("several turns have the id of a call");
await to(page, "call/asking/w1/7");
await page.getByRole("alert").getByText('The call "w1" is one of turn 1, not of turn 7').waitFor();
assert.equal(errors.splice(0).length, 1); // the browser logs what is refused
const buttons = page.getByRole("button", { name: /Undo|Cancel/ });
assert.deepEqual(await buttons.allTextContents(), [], "another call could be undone");
assert.equal(readFileSync(join(dir, "poem.txt"), "utf8"), "one\ntwo\n");
assert.equal(await turn("asking", [{ id: "w1", name: "Glob", input: { pattern: "again" } }], "--turn", "again"), 0);
for (const [path, title] of [["w1/1", "Edit("], ["w1", "Glob("]]) {
  await to(page, "call/asking/" + path);
  await page.getByRole("heading", { level: 2 }).filter({ hasText: title }).waitFor();
}

step("outputs of many background tasks are followed, and one is killed");
const prints = [`seq 100000; while [ ! -e ${dir}/on ]; do sleep 0.1; done; echo 100001; sleep 1000`, ...Array.from({ length: 7 }, (_, i) => `echo started ${i}; sleep 1000`)];
assert.equal(await turn("tasks", prints.map((command, i) => ({ id: `b${i}`, name: "Bash", input: { command, run_in_background: true } })), "--mode", "bypassPermissions"), 0);
await page.getByRole("link", { name: "Tasks (8)" }).waitFor();
await reach(page, "Tasks (8)");
await page.keyboard.press("Enter");
await page.evaluate(() => { performance.clearResourceTimings(); performance.setResourceTimingBufferSize(100_000); });
const tasks = page.locator("main section");
for (let i = 0; i < 8; i++) {
  await tasks.nth(i).getByRole("button", { name: "Show output" }).focus();
  await page.keyboard.press("Enter");
}
const long = tasks.filter({ hasText: "seq 100000" });
await long.getByText("The last 195 KiB so far are shown; 380 KiB came before them.").waitFor();
for (let i = 0; i < 7; i++) await page.getByLabel("Output").getByText(`started ${i}`).waitFor();
const shown = (await long.getByLabel("Output").textContent()).trimEnd().split("\n").map(Number);
assert.deepEqual([shown.at(-1), shown.every((n, i) => n === shown[0] + i)], [100000, true]);
writeFileSync(join(dir, "on"), "");
await long.getByText("100001").waitFor();
const outputs = () => performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/ReadOutput")).reduce((sum, e) => sum + e.encodedBodySize, 0);
const sent = await page.evaluate(outputs); // all of it would be 780,000, since it is sent as base64
assert.ok(sent > 200_000 && sent < 700_000, `${sent} bytes were sent for 200,000 that are shown`);
await check(page, "tasks-1280");
await narrow(page, "tasks-400");
await tasks.nth(3).getByRole("button", { name: "Kill" }).focus();
await press(page, () => page.getByRole("link", { name: "Tasks (7)" }).waitFor());
assert.equal(await page.evaluate(() => document.activeElement.tagName), "SECTION", "the focus is not on the next task");
for (let n = 7; n > 0; n--) {
  await tasks.first().getByRole("button", { name: "Kill" }).focus();
  await press(page, () => page.getByRole("link", { name: n > 1 ? `Tasks (${n - 1})` : "Tasks", exact: true }).waitFor());
}
await page.getByText("No background task runs.").waitFor();

await many(page);

step("narrow and dark");
for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["dark", 400], ["light", 400]]) {
  const other = await open({ colorScheme, viewport: { width, height: 800 } });
  await check(other, `sessions-${colorScheme}-${width}`);
  for (const [name, path] of [["session", "session/live"], ["call", "call/asking/w1/1"], ["questions", "questions"], ["settings", "surroundings/live"]]) {
    await to(other, path);
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
