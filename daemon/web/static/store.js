// What the page knows: the sessions, and the calls of the one that is looked at. One stream brings all of it; a hidden tab holds none.

import { stream } from "./api.js";
import { seconds } from "./format.js";

export const store = { sessions: new Map(), problem: "", ...nothingOf("") };

// nothingOf is what is known of a session before its first record.
function nothingOf(session) { return { session, calls: new Map(), order: [], turns: new Map(), last: 0, ended: null }; }

const listeners = new Set();
// changed calls f soon after anything has changed, until the function that it returns is called.
export function changed(f) { listeners.add(f); return () => listeners.delete(f); }

let due = false;
function touch() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; for (const f of listeners) f(); });
}

let control = null;

// look watches a session's calls as well, from its first record; empty: none.
export function look(name) {
  if (store.session !== name || !control) begin(name);
}

function begin(name) {
  Object.assign(store, nothingOf(name));
  connect();
}

document.addEventListener("visibilitychange", () => { if (document.hidden) { control?.abort(); control = null; } else connect(); });
// A hidden tab looks once a minute: for its title, and so that its person still counts as one who can be asked.
setInterval(() => { if (document.hidden) { control?.abort(); control = new AbortController(); connect(control); } }, 60_000);

// connect keeps a stream, in place of the one before; once: only until all sessions are known.
async function connect(once) {
  if (!once) control?.abort();
  const mine = control = once ?? new AbortController();
  for (let wait = 500; !mine.signal.aborted; wait = Math.min(wait * 2, 8000)) {
    const seen = new Set();
    const request = store.session ? { session_id: store.session, after_seq: String(store.last), answers: true } : { answers: true };
    try {
      await stream("SessionService/WatchSessions", request, (message) => {
        store.problem = "";
        wait = 500;
        take(message, seen);
        touch();
        if (once && message.all_sent) once.abort();
      }, mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      store.problem = error.message;
      touch();
      if (error.code === 16) return; // the token is not good any more
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function take(message, seen) {
  if (message.session) {
    const name = message.session.session.session_id, begins = !store.sessions.has(name);
    store.sessions.set(name, message.session);
    seen.add(name);
    if (begins && store.ended && name === store.session) begin(name); // there was none of that name, or it was closed
  } else if (message.closed_session_id) {
    store.sessions.delete(message.closed_session_id);
  } else if (message.all_sent) {
    for (const name of store.sessions.keys()) if (!seen.has(name)) store.sessions.delete(name);
  } else if (message.events_ended) {
    store.ended = message.events_ended;
  } else if (message.event) {
    event(message.event);
  }
}

function callOf(id, turn, time) {
  const key = `${turn}/${id}`;
  let c = store.calls.get(key);
  if (!c) {
    c = { key, id, turn, name: "", title: id, batch: 0, accepted: time, wait: 0, ask: 0, run: 0, questions: 0 };
    store.calls.set(key, c);
    store.order.push(c);
    if (!store.turns.has(turn)) store.turns.set(turn, { turn, began: time, last: time, open: 0, ended: null });
    store.turns.get(turn).open++;
  }
  return c;
}

// event takes one event of the session. Calls are kept by turn and id, since an id may be used in several turns.
function event(e) {
  const seq = Number(e.seq ?? 0), turn = Number(e.turn ?? 0), time = Date.parse(e.time ?? "");
  if (seq) {
    if (seq <= store.last) return;
    store.last = seq;
  }
  if (e.accepted) {
    const c = callOf(e.accepted.tool_use_id, turn, time);
    Object.assign(c, { name: e.accepted.name, title: e.accepted.title || e.accepted.name, batch: e.accepted.batch ?? 0, parent: e.accepted.parent_tool_use_id });
  } else if (e.question?.tool_use_id) {
    Object.assign(callOf(e.question.tool_use_id, turn, time), { asked: time, asking: true });
  } else if (e.question_withdrawn?.tool_use_id) {
    callOf(e.question_withdrawn.tool_use_id, turn, time).asking = false;
  } else if (e.started) {
    Object.assign(callOf(e.started.tool_use_id, turn, time), { started: time, asking: false });
  } else if (e.tool_result) {
    const r = e.tool_result, c = callOf(r.tool_use_id, turn, time), t = store.turns.get(turn);
    if (!c.ended) t.open--;
    t.last = Math.max(t.last, time);
    Object.assign(c, { outcome: r.outcome, error: r.error, ended: time, asking: false, wait: seconds(r.usage?.waited),
      ask: seconds(r.usage?.asked), run: seconds(r.usage?.ran), by: r.outcome === "OUTCOME_ABORTED" ? store.calls.get(`${turn}/${r.error?.details?.tool_use_id}`) : undefined });
  } else if (e.turn_ended) {
    const t = store.turns.get(turn);
    if (t) t.ended = e.turn_ended;
  }
}
