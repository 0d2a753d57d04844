// What a person does with a page, and what is checked of it: for the steps in drive.mjs and many.mjs.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export const [toold, socket, dir, shots, asking] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const run = promisify(execFile);
const cli = async (...args) => (await run(toold, ["--socket", socket, ...args], { cwd: dir })).stdout;
const began = Date.now();
export const step = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1)} s: ${text}`);

// turn runs a turn of calls in a session, and returns when it has ended. A shell starts the client: what has started a client cannot
// open a page that answers for it.
export async function turn(session, calls, ...flags) {
  const p = spawn("sh", ["-c", '"$@"; exit $?', "sh", toold, "--socket", socket, "run", "--session", session, ...flags], { cwd: dir, stdio: ["pipe", "ignore", "inherit"] });
  p.stdin.end(calls.map((c) => JSON.stringify(c) + "\n").join(""));
  const [code] = await once(p, "exit");
  return code;
}

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
export const errors = [];

export async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000); // the machine may be busy
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("console", (m) => { if (m.type() === "error") errors.push(m.text()); });
  const { url, code } = JSON.parse(await cli("dashboard", "--json"));
  await page.goto(`${url}#${code}`);
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  return page;
}

// check holds a page against axe's rules, and keeps a picture of it.
export async function check(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), [], `${name} has findings of axe`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.equal(wide, false, `${name} is wider than the window`);
  await page.screenshot({ path: join(shots, name + ".png") });
}

// narrow checks a page as it is on a narrow window, and makes the window wide again.
export async function narrow(page, name) {
  const wide = page.viewportSize();
  await page.setViewportSize({ width: 400, height: 800 });
  await check(page, name);
  await page.setViewportSize(wide);
}

// tab moves the focus on until it is on what fits.
export async function tab(page, fits, text = "") {
  for (let i = 0; i < 80; i++) {
    if (await page.evaluate(([f, t]) => new Function("e", "t", `return ${f}`)(document.activeElement, t), [fits, text]).catch(() => false)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${fits} ${text}`);
}
export const reach = async (page, text) => {
  const target = page.locator("a,button,input,select").filter({ hasText: text }).first();
  await target.waitFor();
  for (let i = 0; i < 80; i++) {
    if (await target.evaluate((e) => e === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${text}`);
};

// press has the key do what the focus is on, and checks that the focus is somewhere afterwards, once the page has become as until waits for.
export async function press(page, until) {
  await page.keyboard.press("Enter");
  await until();
  assert.equal(await page.evaluate(() => document.activeElement === document.body), false, "the focus is lost");
}

// to opens a page of the dashboard by its address.
export const to = (page, path) => page.goto(page.url().split("#")[0] + "#/" + path);
