// One call: its input, why it was allowed or not, what it printed and changed, and undo.

import { call } from "./api.js";
import { button, el, show } from "./dom.js";
import { ansi, diff, grounds, json, outcome, plural, seconds, span, tone, when, word } from "./format.js";
import { output } from "./output.js";
import { changed, store } from "./store.js";

// callPage shows the call of that id and turn. Without a turn it is the newest of that id, and stays that one: each request names its
// turn, so no button is for another call.
export function callPage(main, session, id, turn) {
  const control = new AbortController();
  const head = el("div"), body = el("div"), printed = el("div"), changes = el("div");
  const done = el("p", { class: "ok", role: "status" });
  show(main, el("p", {}, el("a", { href: `#/session/${encodeURIComponent(session)}` }, `← ${session}`)), head, done, body, printed, changes);
  let shown = "", draws = 0, ended = false, following = false;
  async function draw() {
    const mine = ++draws;
    let found;
    try { found = await call("ToolService/GetCall", { session_id: session, tool_use_id: id, turn }); } catch (error) {
      return show(head, el("p", { class: "bad", role: "alert" }, error.message));
    }
    if (control.signal.aborted || mine !== draws) return;
    const of = (kind) => found.records.map((r) => r[kind] && { ...r[kind], time: r.time, turn: Number(r.turn ?? 0) }).filter(Boolean);
    const [accepted] = of("accepted"), [started] = of("started"), [result] = of("tool_result");
    turn ??= accepted?.turn;
    ended = Boolean(result);
    const its = { session_id: session, tool_use_id: id, turn };
    show(head, el("h2", {}, accepted?.title || accepted?.name || id),
      el("p", {}, result ? el("strong", { class: tone(result.outcome) }, outcome(result.outcome)) : el("strong", { class: "live" }, started ? "runs" : "waits"),
        result?.error && [" · ", result.error.message, " ", el("code", {}, result.error.code)]),
      !result && button("Cancel", () => call("SessionService/CancelCall", { ...its, reason: "The user stopped it in the dashboard." }), "danger"));
    show(body, facts(accepted, started, result), verdict(started, of("question"), result), el("h3", {}, "Input"),
      el("pre", { tabIndex: 0, "aria-label": "Input" }, json(found.input_json || "{}")), result && content(result), result && confinement(result.confinement));
    if (!following) { following = true; output(printed, its, control.signal).catch((error) => control.signal.aborted || printed.append(el("p", { class: "bad", role: "alert" }, error.message))); }
    if (result) showChanges(changes, its, (text) => { done.textContent = text; draw(); });
  }
  const stop = changed(() => {
    const c = turn ? store.calls.get(`${turn}/${id}`) : store.order.findLast((x) => x.id === id);
    if (!c || ended) return;
    const now = `${c.turn} ${Boolean(c.started)} ${c.asking} ${c.outcome}`;
    if (shown !== now) { shown = now; draw(); }
  });
  draw();
  return () => { stop(); control.abort(); };
}

function facts(accepted, started, result) {
  const u = result?.usage ?? {};
  const rows = [["Tool", accepted?.name], ["Accepted", when(accepted?.time)], ["Batch", accepted?.batch && String(accepted.batch)],
    ["Sandbox", started && word(started.sandbox, "SANDBOX_TIER_")],
    ["Times", result && `waited ${span(seconds(u.waited))}, asked ${span(seconds(u.asked))}, ran ${span(seconds(u.ran))}`],
    ["Peak memory", u.peak_memory_bytes && `${(Number(u.peak_memory_bytes) / 2 ** 20).toFixed(1)} MiB`]];
  return el("dl", { class: "panel" }, rows.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function verdict(started, questions, result) {
  const denied = result?.error?.details?.grounds;
  if (!started?.reason && !started?.grounds && !denied && !questions.length) return null;
  return [el("h3", {}, denied ? "Why it was denied" : "Why it was allowed"),
    el("div", { class: "panel" }, started?.reason && el("p", {}, started.asked ? "Asked, and answered yes: " : "", started.reason), grounds(started?.grounds ?? denied, started?.reason),
      questions.map((q) => el("p", { class: "quiet" }, `Asked ${when(q.time)}: ${q.reason ?? q.title}`)))];
}

function content(result) {
  if (!result.content?.length) return null;
  return [el("h3", {}, "Result"), result.content.map((c) => {
    if (c.text !== undefined) return el("pre", { tabIndex: 0, "aria-label": "Result" }, ansi(c.text));
    if (c.image && /^image\/(png|jpeg|gif|webp)$/.test(c.image.media_type)) return el("img", { src: `data:${c.image.media_type};base64,${c.image.data}`, alt: "The picture that the call returned" });
    if (c.link) return el("p", {}, c.link.name ?? "", " ", el("code", {}, c.link.uri));
    return el("p", { class: "quiet" }, `A document: ${c.document?.media_type ?? c.image?.media_type ?? "unknown"}`);
  }), result.spill && el("p", { class: "quiet" }, `${result.spill.omitted_bytes ?? 0} bytes are left out; the full output is in ${result.spill.path}.`)];
}

function confinement(c) {
  if (!c?.denials?.length) return null;
  return [el("h3", {}, "What the sandbox denied"), el("ul", { class: "panel" }, c.denials.map((d) =>
    el("li", {}, `${d.operation} `, el("code", {}, d.target), d.count > 1 ? ` (${d.count} times)` : "", d.moved_to && ` moved to ${d.moved_to}`, d.allow && ["; allowed by ", el("code", {}, d.allow)])))];
}

// showChanges shows the files that the call has changed. An undo is planned first, and done only as it was planned.
async function showChanges(box, its, undone) {
  const { checkpoints = [] } = await call("SessionService/ListCheckpoints", its).catch(() => ({}));
  const [c] = checkpoints;
  if (!c?.files?.length && !c?.not_kept?.length) return;
  const more = [c.more_files && `${c.more_files} more files that it changed are not listed here; the button leaves them as they are.`,
    c.more_not_kept && `${c.more_not_kept} more changes were not kept.`].filter(Boolean);
  const plan = el("div");
  const undo = button("Undo …", async () => {
    const request = { session_id: its.session_id, tool_use_id: its.tool_use_id, call_turn: its.turn, paths: (c.files ?? []).map((f) => f.path) };
    const p = await call("SessionService/Restore", { ...request, dry_run: true });
    show(plan, el("div", { class: "panel" },
      el("p", {}, `Puts back ${plural(p.restored?.length ?? 0, "file")} to before this call`, (p.undone_calls ?? 1) > 1 ? `, which also undoes ${plural(p.undone_calls - 1, "later call")}.` : "."),
      p.conflict_reasons?.length ? [el("p", { class: "warn" }, "Changed since by something else:"), el("ul", {}, p.conflict_reasons.map((r) => el("li", {}, el("code", {}, r.path), " ", r.reason)))] : null,
      (p.files ?? []).map((f) => f.diff && diff(f.diff)),
      button(p.conflicts?.length ? "Put back all the same" : "Put back", async () => {
        const done = await call("SessionService/Restore", { ...request, plan_digest: p.plan_digest, force: Boolean(p.conflicts?.length) });
        undone(`${plural(done.restored?.length ?? 0, "file was", "files were")} put back.`);
      }, "danger")));
  }, "danger");
  show(box, el("h3", {}, "Changed files"), c.undone && el("p", { class: "ok" }, "All of it has been put back."),
    (c.files ?? []).map((f) => [el("p", {}, el("code", {}, f.path), ` ${word(f.kind, "FILE_CHANGE_KIND_")} +${f.added ?? 0} −${f.removed ?? 0} ${f.note ?? ""}`), f.diff && diff(f.diff)]),
    c.not_kept?.length ? el("ul", {}, c.not_kept.map((n) => el("li", {}, el("code", {}, n.path), " ", n.reason))) : null,
    more.map((text) => el("p", { class: "warn" }, text)), !c.undone && c.files?.length > 0 && el("div", { class: "bar" }, undo), plan);
}
