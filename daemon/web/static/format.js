// How values of the contract are shown.

import { el } from "./dom.js";

// seconds reads a Duration of ProtoJSON, such as "1.5s".
export const seconds = (duration) => (duration ? parseFloat(duration) : 0);

export function span(s) {
  if (s < 0.0005) return "0";
  if (s < 1) return `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function bytes(n) {
  n = Number(n ?? 0); // ProtoJSON writes 64 bits as text
  return n < 1 << 20 ? `${Math.round(n / 1024)} KiB` : n < 1 << 30 ? `${Math.round(n / (1 << 20))} MiB` : `${(n / (1 << 30)).toFixed(1)} GiB`;
}

export const plural = (n, one, more = one + "s") => `${n} ${Number(n) === 1 ? one : more}`;
export const when = (time) => (time ? new Date(time).toLocaleString() : "");
export const word = (name, prefix) => (name ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
export const outcome = (name) => word(name, "OUTCOME_");

// tone is the colour of an outcome.
export function tone(name) {
  if (name === "OUTCOME_OK") return "ok";
  if (name === "OUTCOME_ERROR" || name === "OUTCOME_DENIED" || name === "OUTCOME_INVALID" || name === "OUTCOME_TIMED_OUT") return "bad";
  return name ? "warn" : "";
}

export function json(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

// diff shows a unified diff.
export function diff(text) {
  const kind = (line) => /^(\+\+\+|---|diff |index |@@)/.test(line) ? "hunk" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : "";
  return el("pre", { class: "diff", tabIndex: 0, "aria-label": "Diff" }, text.replace(/\n$/, "").split("\n").map((line) => el("span", { class: "line " + kind(line) }, line)));
}

// ansi turns what a program has printed into text and spans: colours and weight are kept, all other control sequences dropped.
export function ansi(text) {
  const parts = [];
  let classes = new Set();
  const add = (s) => { if (s) parts.push(classes.size ? el("span", { class: [...classes].join(" ") }, s) : s); };
  let from = 0;
  for (const match of text.matchAll(/\x1b(?:\[([0-9;:?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] !== "m") continue;
    const codes = (match[1] || "0").split(";").map(Number);
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i];
      if (code === 0) classes = new Set();
      else if (code === 22) { classes.delete("a-1"); classes.delete("a-2"); }
      else if (code >= 23 && code <= 27) classes.delete(`a-${code - 20}`);
      else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : 4; // 256 and true colours have no place here
      else if (code === 39) classes = new Set([...classes].filter((c) => !/^a-[39]\d$/.test(c)));
      else if ((code >= 1 && code <= 9) || (code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
        if (code >= 30) classes = new Set([...classes].filter((c) => !/^a-[39]\d$/.test(c)));
        classes.add(`a-${code}`);
      }
    }
  }
  add(text.slice(from));
  return parts;
}

// grounds shows what a verdict rests on, unless a reason that is shown already says all of it.
export function grounds(list, reason) {
  if (!list?.length || (list.length === 1 && list[0].text === reason && !list[0].rule)) return null;
  return el("ul", {}, list.map((g) => el("li", {}, g.text, g.rule && [" ", el("code", {}, `${g.list}: ${g.rule}`)],
    g.file && el("span", { class: "quiet" }, ` ${g.file}${g.line ? ":" + g.line : ""}`))));
}
