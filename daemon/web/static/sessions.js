// All open sessions.

import { call } from "./api.js";
import { el, keyed, show } from "./dom.js";
import { plural, when } from "./format.js";
import { changed, store } from "./store.js";

export function sessionsPage(main) {
  const body = el("tbody"), none = el("p", { class: "quiet" });
  const closed = el("div");
  show(main, el("h2", {}, "Sessions"), none,
    el("div", { class: "wrap" }, el("table", {}, el("thead", {}, el("tr", {}, ["Session", "Now", "Directory", "Client", "Tasks", "Created"].map((h) => el("th", { scope: "col" }, h)))), body)),
    el("div", { class: "bar" }, el("button", { type: "button", onclick: () => showClosed(closed) }, "Show closed sessions")), closed);
  const draw = () => {
    const all = [...store.sessions.values()].sort((a, b) => (b.session.created ?? "").localeCompare(a.session.created ?? ""));
    none.textContent = all.length ? "" : "No session is open. A client that connects, or “toold run”, makes one.";
    keyed(body, all, (s) => s.session.session_id, () => el("tr"), (tr, s) => {
      const text = JSON.stringify(s);
      if (tr.shown !== text) { tr.shown = text; show(tr, cells(s)); }
    });
  };
  draw();
  return changed(draw);
}

const link = (name) => el("a", { href: `#/session/${encodeURIComponent(name)}` }, name);

function cells({ session: s, open_questions: questions = [] }) {
  const now = questions.length ? el("span", { class: "warn" }, `asks ${questions.length}`) : s.open_calls ? el("span", { class: "live" }, plural(s.open_calls, "call")) : el("span", { class: "short" }, s.attached ? "attached" : "no client");
  return [link(s.session_id), now, s.working_directory ?? s.roots?.[0] ?? "", s.client?.name ?? "", String(s.background_tasks?.length ?? 0), when(s.created)].map((c) => el("td", {}, c));
}

async function showClosed(container) {
  try {
    const { sessions = [] } = await call("SessionService/ListSessions", { include_closed: true, page_size: 200 });
    const closed = sessions.filter((s) => s.closed);
    show(container, el("h3", {}, "Closed"), closed.length ? el("ul", {}, closed.map((s) => el("li", {}, link(s.session_id), " ", el("span", { class: "quiet" }, `${s.roots?.[0] ?? ""} ${when(s.created)}`))))
      : el("p", { class: "quiet" }, "No closed session is among the newest 200."));
  } catch (error) { show(container, el("p", { class: "bad", role: "alert" }, error.message)); }
}
