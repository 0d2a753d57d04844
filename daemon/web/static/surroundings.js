// What a session's calls meet: the servers beside it, and the settings in force with where each stands.

import { call } from "./api.js";
import { el, show } from "./dom.js";

export function surroundingsPage(main, session) {
  const body = el("div");
  show(main, el("p", {}, el("a", { href: `#/session/${encodeURIComponent(session)}` }, `← ${session}`)), el("h2", {}, "Servers and settings"), body);
  load(body, session);
}

const table = (label, heads, rows) => el("div", { class: "wrap" }, el("table", { "aria-label": label },
  el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))));

const tones = { ready: "ok", failed: "bad", not_started: "quiet", idle_stopped: "quiet" };
const words = { ready: "running", not_started: "not started", idle_stopped: "idle-stopped" };

async function load(body, session_id) {
  try {
    const [{ servers = [] }, { settings = [], warnings = [] }] = await Promise.all([call("SessionService/ListServers", { session_id }), call("SessionService/GetSettings", { session_id })]);
    show(body,
      warnings.map((w) => el("p", { class: "warn" }, w.text)),
      el("h3", {}, "MCP servers and language servers"),
      servers.length ? table("Servers", ["Server", "State", "Tools", "From"], servers.map((s) => [`${s.name}${s.kind === "language" ? " (language)" : ""}`,
        [el("span", { class: tones[s.state] ?? "warn" }, words[s.state] ?? s.state), s.message && ` ${s.message}`], s.kind === "mcp" ? String(s.tools ?? 0) : "", s.origin]))
        : el("p", { class: "quiet" }, "None was started. They start when a call first needs them."),
      el("h3", {}, "Settings in force"),
      settings.length ? table("Settings", ["Setting", "Value", "From"], settings.map((s) => [el("code", {}, s.key), el("code", {}, s.value), `${s.file}${s.line ? ":" + s.line : ""}`]))
        : el("p", { class: "quiet" }, "No file sets anything."));
  } catch (error) { show(body, el("p", { class: "bad", role: "alert" }, error.message)); }
}
