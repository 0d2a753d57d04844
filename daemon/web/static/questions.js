// Questions that wait, each with what it is about and the rules that would answer similar ones.

import { call } from "./api.js";
import { button, el, keyed, show } from "./dom.js";
import { diff, grounds, json, word } from "./format.js";
import { changed, store } from "./store.js";

export function questionsPage(main) {
  const none = el("p", { class: "quiet" }), cards = questionCards("");
  show(main, el("h2", {}, "Questions"), none, cards.box);
  const draw = () => { cards.draw(); none.textContent = cards.box.children.length ? "" : "Nothing waits for an answer."; };
  draw();
  return changed(draw);
}

// questionCards shows the open questions of a session; of all for an empty name. A card stays as it is while its question does.
export function questionCards(name) {
  const box = el("div");
  return { box, draw() {
    const open = [];
    for (const [session, state] of store.sessions) if (!name || session === name) for (const q of state.open_questions ?? []) open.push({ session, q });
    keyed(box, open, ({ session, q }) => `${session} ${q.question_id}`, card);
  } };
}

const scopes = [["SCOPE_SESSION", "in this session"], ["SCOPE_LOCAL", "in this project, for me"], ["SCOPE_USER", "everywhere, for me"]];

function card({ session, q }) {
  const rules = (q.suggestions ?? []).map((s, i) => ({ s, box: el("input", { type: "checkbox", id: `${q.question_id}-${i}` }) }));
  const scope = el("select", { "aria-label": "Where to remember" }, scopes.map(([value, text]) => el("option", { value }, text)));
  const message = el("input", { type: "text", placeholder: "Why not (for the model)", "aria-label": "Why not, for the model" });
  const form = q.form_schema_json && q.form_schema_json !== "{}" ? formOf(JSON.parse(q.form_schema_json)) : null;
  const hidden = q.secret && el("input", { type: "password", autocomplete: "off", placeholder: "Not shown, not stored", "aria-label": "What the program reads; it is not shown and not stored" });
  const answer = (decision) => call("SessionService/Answer", { session_id: session, answer: {
    question_id: q.question_id, input_digest: q.input_digest, decision, message: decision === "DECISION_DENY" ? message.value : "",
    secret: hidden && decision === "DECISION_ALLOW" ? hidden.value : undefined,
    updated_input_json: form && decision === "DECISION_ALLOW" ? JSON.stringify(form.value()) : "",
    remember: decision === "DECISION_ALLOW" ? rules.filter((r) => r.box.checked).map(({ s }) => ({ rule: s.rule, list: s.list, scope: scope.value })) : [],
  } });
  return el("section", { class: "panel question", "aria-label": q.title },
    el("h3", {}, q.title),
    el("p", { class: "quiet" }, el("a", { href: `#/session/${encodeURIComponent(session)}` }, session), ` · ${q.tool_name ?? ""} · ${word(q.level, "LEVEL_")}`),
    q.reason && el("p", {}, q.reason), grounds(q.grounds, q.reason),
    q.effects?.length ? [el("p", {}, "Allow permits:"), el("ul", {}, q.effects.map((e) => el("li", {}, el("code", {}, e))))] : null,
    q.diff && diff(q.diff),
    !q.diff && q.input_json && q.input_json !== "{}" && el("pre", { tabIndex: 0, "aria-label": "Input" }, json(q.input_json)),
    form?.box, hidden,
    rules.length ? el("div", { class: "bar" }, "Always: ", rules.map(({ s, box }) => el("label", { htmlFor: box.id }, box, " ", el("code", {}, `${s.list} ${s.rule}`))), scope) : null,
    el("div", { class: "bar" }, button("Allow", () => answer("DECISION_ALLOW"), "first"), button("Deny", () => answer("DECISION_DENY"), "danger"), message));
}

// formOf makes fields of a JSON Schema of plain values; other schemas are filled in as JSON.
function formOf(schema) {
  const fields = Object.entries(schema.properties ?? {});
  if (!fields.length || fields.some(([, f]) => !["string", "boolean", "number", "integer"].includes(f.type))) {
    const text = el("textarea", { "aria-label": "The answer, as JSON" }, "{}");
    return { box: el("div", {}, el("p", { class: "quiet" }, schema.description ?? "The answer, as JSON:"), text), value: () => JSON.parse(text.value) };
  }
  const choice = (name, f) => el("select", {}, schema.required?.includes(name) ? null : el("option", { value: "" }),
    f.enum.map((v) => el("option", { value: v, selected: v === f.default }, v)));
  const inputs = fields.map(([name, f]) => [name, f, f.enum ? choice(name, f)
    : el("input", { type: { boolean: "checkbox", number: "number", integer: "number" }[f.type] ?? "text", checked: f.default === true, value: f.type === "boolean" ? undefined : f.default ?? "" })]);
  return {
    box: el("dl", {}, inputs.map(([name, f, input], i) => { input.id = `form-${name}-${i}`; return [el("dt", {}, el("label", { htmlFor: input.id }, f.title ?? name)), el("dd", {}, input, f.description && el("span", { class: "quiet" }, " " + f.description))]; })),
    value: () => Object.fromEntries(inputs.filter(([, f, input]) => f.type === "boolean" || input.value !== "")
      .map(([name, f, input]) => [name, f.type === "boolean" ? input.checked : f.type === "string" ? input.value : Number(input.value)])),
  };
}
