// Background tasks of all sessions, with their output as it comes.

import { call, stream } from "./api.js";
import { button, el, keyed, show } from "./dom.js";
import { ansi } from "./format.js";
import { changed, store } from "./store.js";

export function tasksPage(main) {
  const none = el("p", { class: "quiet" }), box = el("div"), open = new Set();
  show(main, el("h2", {}, "Background tasks"), none, box);
  const draw = () => {
    const all = [];
    for (const [session, s] of store.sessions) for (const task of s.session.background_tasks ?? []) all.push({ session, task });
    none.textContent = all.length ? "" : "No background task runs.";
    keyed(box, all, ({ session, task }) => `${session} ${task.task_id}`, (x) => card(x, open));
  };
  draw();
  const stop = changed(draw);
  return () => { stop(); for (const control of open) control.abort(); };
}

function card({ session, task }, open) {
  const output = el("pre", { tabIndex: 0, "aria-label": "Output", hidden: true });
  const follow = button("Show output", async () => {
    output.hidden = false;
    const control = new AbortController();
    open.add(control);
    await readOutput({ session_id: session, tool_use_id: task.tool_use_id, turn: task.turn }, output, true, control.signal);
  });
  return el("section", { class: "panel", "aria-label": task.command },
    el("h3", {}, el("code", {}, task.command)),
    el("p", { class: "quiet" }, el("a", { href: `#/session/${encodeURIComponent(session)}` }, session), ` · task ${task.task_id}`,
      (task.ports ?? []).map((p) => [" · ", p.url ? el("a", { href: p.url, target: "_blank", rel: "noreferrer" }, `port ${p.port}`) : `port ${p.port}`])),
    el("div", { class: "bar" }, follow, button("Kill", () => call("SessionService/KillTask", { session_id: session, task_id: task.task_id }), "danger")), output);
}

const shown = 200_000; // characters of output that the page holds

// readOutput shows what a call has printed; with follow, until it ends or signal aborts.
export async function readOutput(its, into, follow, signal) {
  const decoder = new TextDecoder();
  let text = "";
  try {
    await stream("ToolService/ReadOutput", { ...its, follow }, (m) => {
      const bytes = Uint8Array.from(atob(m.data ?? ""), (c) => c.charCodeAt(0));
      text = (text + decoder.decode(bytes, { stream: true })).slice(-shown);
      const end = into.scrollTop + into.clientHeight >= into.scrollHeight - 8;
      into.replaceChildren(...ansi(text));
      if (end) into.scrollTop = into.scrollHeight;
    }, signal);
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
  return text;
}
