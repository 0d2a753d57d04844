// What a call has printed: its end, and more as it comes.

import { stream } from "./api.js";
import { el, show } from "./dom.js";
import { ansi, bytes } from "./format.js";

const kept = 200_000; // bytes that are held of one output

// asked is stream, but a daemon that is not there now is asked again later.
const asked = (...request) => stream(...request).catch((error) => { if (error.code !== 14) throw error; });

// output shows the end of what a call prints until the call has ended or signal aborts, and adds nothing until there is something. It asks
// again each half second while the page is seen: a request that waits for more would hold one of the browser's six connections.
export async function output(box, its, signal) {
  const pre = el("pre", { tabIndex: 0, "aria-label": "Output" }), note = el("p", { class: "quiet" });
  let held = new Uint8Array(), end = 0; // the bytes before the offset end
  const add = (offset, data) => {
    if (offset > end) held = new Uint8Array(); // what is between was not sent
    const next = new Uint8Array(held.length + data.length);
    next.set(held);
    next.set(data, held.length);
    held = next.length > kept ? next.slice(-kept) : next;
    end = offset + data.length;
  };
  for (let ended = false; !ended;) {
    const before = end;
    if (!document.hidden) {
      await asked("ToolService/ReadOutput", { ...its, offset: String(end), last: String(kept) }, (m) => {
        add(Number(m.offset ?? 0), Uint8Array.from(atob(m.data ?? ""), (c) => c.charCodeAt(0)));
        ended = Boolean(m.end);
      }, signal);
    }
    if (signal.aborted) return;
    if (end > before || (ended && end)) draw(box, pre, note, held, end, ended);
    if (!ended) await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function draw(box, pre, note, held, end, ended) {
  const whole = held.length === end;
  const from = whole ? 0 : firstLine(held), left = end - held.length + from;
  if (pre.parentElement !== box) show(box, el("h3", {}, "Output"), note, pre);
  note.hidden = whole;
  note.textContent = ended ? `The last ${bytes(end - left)} of ${bytes(end)} are shown.` : `The last ${bytes(end - left)} so far are shown; ${bytes(left)} came before them.`;
  const follows = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8;
  pre.replaceChildren(...ansi(new TextDecoder().decode(held.subarray(from), { stream: !ended }))); // stream: a character may still be coming
  if (follows) pre.scrollTop = pre.scrollHeight;
}

// firstLine is where the first whole line begins; in one long line, the first whole character.
function firstLine(held) {
  const at = held.subarray(0, 4096).indexOf(10) + 1;
  return at || Math.max(0, held.findIndex((b) => (b & 0xc0) !== 0x80));
}
