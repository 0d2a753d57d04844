// The pages, by the address behind "#/", and what stands above all of them.

import { call, enter } from "./api.js";
import { callPage } from "./call.js";
import { el, show } from "./dom.js";
import { bytes, plural, seconds, span } from "./format.js";
import { questionsPage } from "./questions.js";
import { sessionPage } from "./session.js";
import { sessionsPage } from "./sessions.js";
import { changed, look, store } from "./store.js";
import { surroundingsPage } from "./surroundings.js";
import { tasksPage } from "./tasks.js";

const main = document.getElementById("main");
const pages = { sessions: sessionsPage, session: sessionPage, call: callPage, questions: questionsPage, tasks: tasksPage, surroundings: surroundingsPage };
let leave = () => {};

function waiting() { let n = 0; for (const s of store.sessions.values()) n += s.open_questions?.length ?? 0; return n; }
function tasks() { let n = 0; for (const s of store.sessions.values()) n += s.session.background_tasks?.length ?? 0; return n; }

function drawNavigation() {
  const here = location.hash.split("/")[1] || "sessions";
  const above = { session: "sessions", call: "sessions", surroundings: "sessions" }[here];
  const link = (page, text, n) => el("a", { href: `#/${page}`, "aria-current": here === page ? "page" : above === page && "true" }, n ? `${text} (${n})` : text);
  const nav = document.getElementById("nav");
  const next = [link("sessions", "Sessions"), link("questions", "Questions", waiting()), link("tasks", "Tasks", tasks())];
  const same = nav.children.length === next.length && next.every((a, i) => a.isEqualNode(nav.children[i]));
  if (!same) show(nav, next);
  document.title = waiting() ? `(${waiting()}) toold` : "toold";
  const state = document.getElementById("state");
  if (state.textContent !== store.problem) state.textContent = store.problem;
}

function route() {
  leave();
  const [, page = "", ...rest] = location.hash.split("/").map(decodeURIComponent);
  const make = pages[page] ?? pages.sessions;
  look(make === sessionPage ? rest[0] : make === callPage ? rest[0] : "");
  show(main);
  leave = make(main, ...rest) ?? (() => {});
  drawNavigation();
  main.focus({ preventScroll: true });
}

// figures are how the daemon does; undefined: an older one.
function figures(health) {
  if (!health) return [];
  const phases = (health.phases ?? []).filter((p) => p.calls && seconds(p.p99) >= 0.0005).map((p) => `${p.phase} p50 ${span(seconds(p.p50))}, p99 ${span(seconds(p.p99))}`);
  return [`${(health.calls_per_second ?? 0).toFixed(1)} calls/s`, ...phases, `memory ${bytes(health.memory_bytes)}`, `journal ${bytes(health.journal_bytes)}`];
}

async function health() {
  if (document.hidden) return;
  try {
    const info = await call("DaemonService/GetInfo");
    const up = (Date.now() - Date.parse(info.started)) / 1000;
    const warnings = info.warnings?.length ?? 0;
    const strip = [`toold ${info.version}`, `up ${span(up)}`, plural(info.sessions ?? 0, "session"), plural(info.running_calls ?? 0, "call runs", "calls run"),
      `sandbox ${(info.sandbox ?? "").replace("SANDBOX_TIER_", "").toLowerCase()}`, ...figures(info.health), warnings && plural(warnings, "warning")].filter(Boolean);
    const line = document.getElementById("health");
    show(line, strip.map((text) => el("span", {}, text)));
    line.title = (info.warnings ?? []).join("\n");
  } catch { /* the line above the page says that the daemon has gone */ }
}

document.getElementById("skip").addEventListener("click", (e) => { e.preventDefault(); main.focus(); });

if (await enter()) {
  addEventListener("hashchange", route);
  changed(drawNavigation);
  route();
  health();
  setInterval(health, 5000);
} else {
  show(main, el("div", { class: "panel" }, el("h2", {}, "This page is not connected"),
    el("p", {}, "Its address was used already, or is older than a minute. Run ", el("code", {}, "toold dashboard"), " to open it again.")));
}
