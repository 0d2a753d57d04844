// Background tasks of all sessions, with their output as it comes.

import { call } from "./api.js";
import { button, el, keyed, show } from "./dom.js";
import { output } from "./output.js";
import { changed, store } from "./store.js";

export function tasksPage(main) {
  const none = el("p", { class: "quiet" }), box = el("div"), control = new AbortController();
  show(main, el("h2", {}, "Background tasks"), none, box);
  const draw = () => {
    const all = [];
    for (const [session, s] of store.sessions) for (const task of s.session.background_tasks ?? []) all.push({ session, task });
    none.textContent = all.length ? "" : "No background task runs.";
    keyed(box, all, ({ session, task }) => `${session} ${task.task_id}`, (x) => card(x, control.signal));
  };
  draw();
  const stop = changed(draw);
  return () => { stop(); control.abort(); };
}

function card({ session, task }, signal) {
  const printed = el("div");
  const follow = button("Show output", () => output(printed, { session_id: session, tool_use_id: task.tool_use_id, turn: task.turn }, signal));
  return el("section", { class: "panel", "aria-label": task.command },
    el("h3", {}, el("code", {}, task.command)),
    el("p", { class: "quiet" }, el("a", { href: `#/session/${encodeURIComponent(session)}` }, session), ` · task ${task.task_id}`,
      (task.ports ?? []).map((p) => [" · ", p.url ? el("a", { href: p.url, target: "_blank", rel: "noreferrer" }, `port ${p.port}`) : `port ${p.port}`])),
    el("div", { class: "bar" }, follow, button("Kill", () => call("SessionService/KillTask", { session_id: session, task_id: task.task_id }), "danger")), printed);
}
