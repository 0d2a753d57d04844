// A long list of calls: MANY of them, 1,000 unless the environment says otherwise. It prints how evenly it scrolls.

import assert from "node:assert/strict";
import { check, step, tab, to, turn } from "./person.mjs";

const total = Number(process.env.MANY ?? 1000), height = 28; // of a row, as list.js has it

export async function many(page) {
  step(`${total} calls are filtered, and scroll`);
  for (let from = 0; from < total; from += 1000) {
    await turn("many", Array.from({ length: Math.min(1000, total - from) }, (_, i) => ({ id: `m${from + i}`, name: "Glob", input: { pattern: `nothing-${from + i}` } })));
  }
  const calls = page.getByRole("listbox", { name: "Calls" }), rows = calls.getByRole("option");
  await to(page, "session/many");
  await page.getByText(`${total} calls`, { exact: true }).waitFor();
  await keys(page, calls);
  await scroll(page, rows);
  const found = `nothing-${total - 7})`;
  await tab(page, "e.type === 'search'");
  await page.keyboard.type(found);
  await page.getByText(`1 of ${total} calls`).waitFor();
  assert.equal(await rows.filter({ hasText: found }).count(), 1);
  await check(page, "many-1280");
}

// keys goes through the list with the keys that move by more than a row. Turns have a row each, and the calls come after it.
async function keys(page, calls) {
  const items = total + Math.ceil(total / 1000);
  await tab(page, "e.getAttribute('role') === 'listbox'");
  const screen = Math.floor(await calls.evaluate((e) => e.clientHeight) / height);
  for (const [key, place] of [["Home", 1], ["PageDown", 1 + screen], ["PageDown", 1 + 2 * screen], ["PageUp", 1 + screen], ["End", items], ["PageUp", items - screen], ["ArrowDown", items - screen + 1], ["Home", 1]]) {
    await page.keyboard.press(key);
    const chosen = await calls.evaluate((box) => {
      const row = document.getElementById(box.getAttribute("aria-activedescendant"));
      const [b, r] = [box.getBoundingClientRect(), row.getBoundingClientRect()];
      return { place: Number(row.getAttribute("aria-posinset")), of: Number(row.getAttribute("aria-setsize")), selected: row.getAttribute("aria-selected"), seen: r.top >= b.top - 1 && r.bottom <= b.bottom + 1 };
    });
    assert.deepEqual(chosen, { place, of: items, selected: "true", seen: true }, `${key} chooses another row`);
  }
}

// scroll moves the list by ten rows a frame, to its end and back, and prints how long the frames take. How long is the machine's affair; how
// many rows are elements is not.
async function scroll(page, rows) {
  const { times, draw, most } = await page.evaluate(async () => {
    const box = document.querySelector(".list"), frame = () => new Promise(requestAnimationFrame);
    const frames = Math.min(300, Math.ceil((box.scrollHeight - box.clientHeight) / 280)), times = [];
    let most = 0, last = await frame();
    for (const way of [1, -1]) {
      for (let i = 0; i < frames; i++) {
        box.scrollTop += way * 280;
        const now = await frame();
        times.push(now - last);
        last = now;
        most = Math.max(most, box.querySelectorAll("[role=option]").length);
      }
    }
    const draws = times.slice(0, 50).map(() => { // without layout and painting
      box.scrollTop += 280;
      const began = performance.now();
      box.dispatchEvent(new Event("scroll")); // the browser's own comes with the frame
      return performance.now() - began;
    });
    return { times: times.sort((a, b) => a - b), draw: draws.sort((a, b) => a - b)[Math.floor(draws.length / 2)], most };
  });
  const at = (part) => times[Math.floor((times.length - 1) * part)].toFixed(1);
  step(`${times.length} frames of ten rows each: median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms; making the rows takes ${draw.toFixed(1)} ms; at most ${most} rows are elements`);
  assert.ok(most > 10 && most < 100, `${most} rows are elements`);
  assert.ok(await rows.count() < 100, "all rows are elements");
}
