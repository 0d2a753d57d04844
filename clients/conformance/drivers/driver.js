// Does with the TypeScript library what lines of JSON ask for: see cases.txt.
import { writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { TooldError, connect as dial, resultText, v1 } from "toold";

/** What a session has seen and was asked. */
class Seen {
  counts = { asked: 0, ran: 0, stopped: 0, resumed: 0 };
  events = [];
  epochs = new Set();
  answers = [];
  texts = [];
  waiting = [];

  note(change) {
    change();
    this.waiting = this.waiting.filter(({ condition, resolve }) => !condition() || resolve());
  }

  count(what) {
    this.note(() => this.counts[what]++);
  }

  until(condition) {
    return new Promise((resolve) => this.note(() => this.waiting.push({ condition, resolve })));
  }

  event({ event }) {
    const kind = event.case.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());
    this.note(() => this.events.push([kind, event.value.toolUseId ?? ""]));
  }

  async ask() {
    this.count("asked");
    await this.until(() => this.answers.length > 0);
    const said = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    if (said === "fails") throw new Error("there is no terminal");
    return { decision: decisions[said] };
  }

  async hold(_, { signal }) {
    this.count("ran");
    signal.addEventListener("abort", () => this.texts.length === 0 && this.count("stopped"));
    await this.until(() => this.texts.length > 0);
    return this.texts[0];
  }

  double({ n }) {
    this.count("ran");
    return String(2 * n);
  }

  fail() {
    this.count("ran");
    throw new Error("out of order");
  }
}

const [clients, sessions, seen, things] = [new Map(), new Map(), new Map(), new Map()];
const decisions = { yes: "allow", no: "deny" };
const number = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

const verbs = {
  async connect(name, address) {
    clients.set(name, await dial({ address }));
  },
  async session(name, client, { questions, tools = [], buffers, saves, address, format, ...options }) {
    if (!clients.has(client)) await verbs.connect(client, address);
    const s = new Seen();
    if (questions) {
      if (questions !== "held") s.answers.push(questions);
      options.onQuestion = () => s.ask();
    }
    if (format) options.format = format.replace(/_./g, (part) => part[1].toUpperCase());
    if (buffers) options.onEdit = (_, text) => s.note(() => s.texts.push(text));
    if (saves) options.onSave = saves === "yes" ? writeFile : () => Promise.reject(new Error("there is no file"));
    const own = tools.map((t) => ({ name: t, description: "A tool.", schema: t === "double" ? number : undefined, readOnly: true, run: (...given) => s[t](...given) }));
    const session = await clients.get(client).session({ ...options, tools: own });
    session.on("event", (event) => s.event(event));
    session.on("resumed", () => s.count("resumed"));
    s.epochs.add("first");
    session.on("epoch", (epoch) => s.epochs.add(epoch));
    sessions.set(name, session);
    seen.set(name, s);
  },
  call: (of, name, tool, { value }) => void things.set(name, sessions.get(of).call(tool, value, { id: name })),
  sees: (of, kind, id) => seen.get(of).until(() => seen.get(of).events.some(([k, about]) => k === kind && about === id)),
  events: (of, id) => seen.get(of).events.filter(([kind, about]) => about === id && kind !== "progress").map(([kind]) => kind).join(" "),
  async result(name) {
    const result = await things.get(name).result();
    return `${v1.Outcome[result.outcome]} ${result.error?.code || resultText(result)}`;
  },
  run: (of, { value }) => sessions.get(of).run(value),
  turn: (of, name) => void things.set(name, sessions.get(of).turn()),
  feed: (name, { value }) => value.forEach((event) => things.get(name).feed(event)),
  end: (name) => things.get(name).end(),
  discard: (name) => things.get(name).discard(),
  cancel: (name) => things.get(name).cancel("enough"),
  interrupt: (of) => sessions.get(of).interrupt("enough"),
  async count(of, what, number) {
    const s = seen.get(of);
    await s.until(() => s.counts[what] >= Number(number));
    return String(s.counts[what]);
  },
  epochs: (of) => String(seen.get(of).epochs.size),
  answer: (of, said) => seen.get(of).note(() => seen.get(of).answers.push(said)),
  finish: (of, text) => seen.get(of).note(() => seen.get(of).texts.push(text)),
  buffer: (of, path, text) => sessions.get(of).buffer(path, text),
  async edited(of) {
    await seen.get(of).until(() => seen.get(of).texts.length > 0);
    return seen.get(of).texts.shift();
  },
  async output(of, id) {
    let all = "";
    for await (const bytes of clients.get("main").output(sessions.get(of), id)) all += Buffer.from(bytes);
    return all;
  },
  undo: (of, call) => sessions.get(of).undo({ call }).then(() => ""),
  close: (of) => sessions.get(of).close(),
  id_of: (of) => sessions.get(of).id,
  async reset() {
    await Promise.all([...clients.values()].map((client) => client.close()));
    for (const kept of [clients, sessions, seen, things]) kept.clear();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: verb, args = [], with: more } = JSON.parse(line);
  let answer;
  try {
    answer = (await verbs[verb](...args, ...(more ? [more] : []))) ?? "";
  } catch (error) {
    if (!(error instanceof TooldError)) throw error;
    answer = `error ${error.code} ${error.reason}`.trim();
  }
  console.log(JSON.stringify({ answer }));
}
process.exit(0);
