// One session as a waterfall: its turns, and each call as a bar of the times it waited, was asked about and ran.

import { call } from "./api.js";
import { button, el, show } from "./dom.js";
import { outcome, plural, span, tone } from "./format.js";
import { list } from "./list.js";
import { questionCards } from "./questions.js";
import { changed, store } from "./store.js";

export function sessionPage(main, name) {
  const filter = el("input", { type: "search", placeholder: "Filter calls", "aria-label": "Filter calls", oninput: () => draw() });
  const only = el("select", { "aria-label": "Which calls", onchange: () => draw() },
    [["", "All calls"], ["open", "Not ended"], ["bad", "Failed"]].map(([value, text]) => el("option", { value }, text)));
  const count = el("span", { class: "quiet", role: "status" });
  const about = el("p", { class: "quiet" }), actions = el("span", { class: "bar" });
  const cards = questionCards(name);
  const calls = list("Calls", row, (item) => { if (item.call) location.hash = `#/call/${encodeURIComponent(name)}/${encodeURIComponent(item.call.id)}/${item.call.turn}`; });
  show(main, el("h2", {}, name), about, cards.box, el("div", { class: "bar" }, filter, only, count, el("a", { href: `#/surroundings/${encodeURIComponent(name)}` }, "Servers and settings"), actions), calls.box);
  const interrupt = button("Interrupt", () => call("SessionService/Interrupt", { session_id: name, reason: "The user stopped it in the dashboard." }), "danger");

  function draw() {
    const state = store.sessions.get(name)?.session;
    about.textContent = [state?.working_directory, state?.client?.name && `client ${state.client.name}`, state && (state.attached ? "attached" : "not attached"), why()].filter(Boolean).join(" · ");
    if (Boolean(actions.firstChild) !== Boolean(state?.open_calls)) show(actions, state?.open_calls && interrupt);
    const text = filter.value.toLowerCase();
    const fits = (c) => (!text || c.title.toLowerCase().includes(text) || c.id.toLowerCase().includes(text)) &&
      (!only.value || (only.value === "open" ? !c.outcome : c.outcome && c.outcome !== "OUTCOME_OK"));
    const items = [];
    const places = new Map(), aborted = [];
    let turn = null, n = 0;
    for (const c of store.order) {
      if (!fits(c)) continue;
      n++;
      if (c.turn !== turn) { turn = c.turn; items.push({ key: `turn ${turn}`, turn: store.turns.get(turn) }); }
      places.set(c, items.length);
      if (c.by) aborted.push(c);
      items.push({ key: c.key, call: c, turn: store.turns.get(turn) });
    }
    count.textContent = n === store.order.length ? plural(n, "call") : `${n} of ${plural(store.order.length, "call")}`;
    calls.set(items, aborted.filter((c) => places.has(c.by)).map((c) => ({ from: places.get(c.by), to: places.get(c) })));
    cards.draw();
  }
  // why is why no more calls come, or none have.
  function why() { return store.ended?.code === "unknown_session" ? "No session has this name yet. Its calls are shown when it begins." : store.ended?.message; }
  draw();
  const stop = changed(draw);
  const tick = setInterval(() => { if ([...store.turns.values()].some((t) => t.open)) draw(); }, 1000); // bars of what runs grow
  return () => { stop(); clearInterval(tick); };
}

// extent is how long a turn has taken, in milliseconds.
const extent = (turn) => Math.max(1, (turn.open ? Date.now() : turn.last) - turn.began);

function row({ call: c, turn }) {
  if (!c) {
    const ended = turn.ended;
    return el("div", { class: "row turn" }, el("span", {}, `Turn ${turn.turn}`),
      el("span", { class: "quiet" }, ended ? `${plural(ended.calls ?? 0, "call")}, ${plural(ended.batches ?? 0, "batch", "batches")}, ${span(parseFloat(ended.wall ?? "0"))}` : "runs"));
  }
  const state = c.outcome ? outcome(c.outcome) : c.asking ? "asks" : c.started ? "runs" : "waits";
  const total = c.ended ? (c.ended - c.accepted) / 1000 : (Date.now() - c.accepted) / 1000;
  return el("div", { class: "row" }, el("span", { class: "quiet", title: `batch ${c.batch}` }, c.parent ? "  ↳" : `b${c.batch}`),
    el("span", {}, c.title),
    el("span", { class: c.outcome ? tone(c.outcome) : c.asking ? "warn" : "live", title: c.error?.message ?? "" }, c.outcome === "OUTCOME_ABORTED" ? `↰ ${state}` : state, c.by && el("span", { class: "unseen" }, ` by ${c.by.title}`)),
    bar(c, turn), el("span", { class: "number" }, span(total)));
}

function bar(c, turn) {
  const whole = extent(turn), width = (ms) => `${Math.max(0, ms) / whole * 100}%`;
  const now = Date.now(), end = c.ended ?? now;
  // An ended call says how long it waited, was asked and ran; of one that has not ended only the marks are known.
  let [wait, ask] = c.ended ? [c.wait * 1000, c.ask * 1000] : [(c.asked ?? c.started ?? now) - c.accepted, c.asked ? (c.started ?? now) - c.asked : 0];
  const run = Math.max(0, end - c.accepted - wait - ask);
  const part = (kind, ms) => { const i = el("i", { class: kind }); i.style.width = width(ms); return i; };
  const text = c.ended ? `waited ${span(c.wait)}, asked ${span(c.ask)}, ran ${span(c.run)}` : "";
  return el("span", { class: "time", title: text }, part("gap", c.accepted - turn.began), part("wait", wait), part("ask", ask),
    part(`run ${c.outcome ? tone(c.outcome) : c.started ? "" : "wait"}`, run));
}
