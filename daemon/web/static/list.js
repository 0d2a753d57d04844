// A list of which only the rows in view are elements, so that 10,000 calls scroll as 10 do. It is a listbox for the keyboard and for
// screen readers: the focus stays on the list, and one row is the chosen one.

import { el } from "./dom.js";

const height = 28;

export function list(label, row, open) {
  let items = [], arrows = [], chosen = -1, follow = true;
  let made = new Map(); // the rows in view by their place, until the items change
  const space = el("div", { class: "space", role: "presentation" });
  const box = el("div", { class: "list", role: "listbox", tabIndex: 0, "aria-label": label }, space);
  const near = () => box.scrollTop + box.clientHeight >= items.length * height - 2 * height;

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 8), last = Math.min(items.length, first + Math.ceil(box.clientHeight / height) + 16);
    const rows = new Map();
    for (let i = first; i < last; i++) {
      rows.set(i, made.get(i) ?? make(i));
      rows.get(i).setAttribute("aria-selected", i === chosen);
    }
    made = rows;
    space.replaceChildren(...rows.values(), ...lines(first, last));
    if (chosen >= first && chosen < last) box.setAttribute("aria-activedescendant", `row-${chosen}`);
    else box.removeAttribute("aria-activedescendant");
  }
  function make(i) {
    const r = row(items[i]);
    r.id = `row-${i}`;
    r.style.top = `${i * height}px`;
    for (const [name, value] of [["role", "option"], ["aria-posinset", i + 1], ["aria-setsize", items.length]]) r.setAttribute(name, value);
    r.addEventListener("click", () => { choose(i); open(items[i]); });
    return r;
  }
  // lines draws the arrows among those rows: of all that begin at one row a single line, with a head at each end. What an arrow says
  // is in the text of its row too.
  function lines(first, last) {
    const trunks = new Map(), drawn = [];
    const line = (kind, from, to) => {
      const l = el("i", { class: kind, "aria-hidden": "true" });
      l.style.top = `${(from + 0.5) * height}px`;
      l.style.height = `${(to - from) * height}px`;
      drawn.push(l);
    };
    for (const { from, to } of arrows) {
      const low = Math.max(first - 1, Math.min(from, to)), high = Math.min(last, Math.max(from, to));
      if (low >= last || high < first) continue;
      const trunk = trunks.get(from);
      trunks.set(from, { low: Math.min(low, trunk?.low ?? low), high: Math.max(high, trunk?.high ?? high) });
      if (to >= first && to < last) line("head", to, to);
    }
    for (const [from, { low, high }] of trunks) {
      line("trunk", low, high);
      if (from >= first && from < last) line("tail", from, from);
    }
    return drawn;
  }
  function choose(i) {
    if (!items.length) return;
    chosen = Math.max(0, Math.min(items.length - 1, i));
    const top = chosen * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    draw();
  }
  box.addEventListener("scroll", () => { follow = near(); draw(); });
  box.addEventListener("keydown", (e) => {
    const page = Math.floor(box.clientHeight / height);
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + page, PageUp: chosen - page, Home: 0, End: items.length - 1 }[e.key];
    if (to !== undefined) { e.preventDefault(); choose(to); }
    if (e.key === "Enter" && items[chosen]) { e.preventDefault(); open(items[chosen]); }
  });
  new ResizeObserver(draw).observe(box);
  return {
    box,
    // set shows other items, and arrows from the place of one to that of another. A list that shows its end goes on showing it.
    set(next, between = []) {
      const was = items[chosen]?.key;
      [items, arrows, made] = [next, between, new Map()];
      chosen = was === undefined ? -1 : items.findIndex((item) => item.key === was);
      space.style.height = `${items.length * height}px`;
      if (follow) box.scrollTop = items.length * height;
      draw();
    },
  };
}
