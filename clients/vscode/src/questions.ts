// Questions: the words of one, the two sides of its diff, and what an answer comes to.
import type { Message } from "./bridge";
import type { Session } from "./session";

/** How a person is asked. What is dismissed is undefined. */
export interface Asker {
  /** A message that takes no focus, with buttons. */
  message(text: string, ...buttons: string[]): PromiseLike<string | undefined>;
  pick(title: string, choices: string[]): PromiseLike<string | undefined>;
  input(title: string, value?: string): PromiseLike<string | undefined>;
  /** Two texts beside each other. */
  diff(title: string, left: string, right: string): PromiseLike<unknown>;
}

const scopes: { [words: string]: string } = {
  "for this session": "SCOPE_SESSION", "for this project, for me": "SCOPE_LOCAL", "for this project, for everybody": "SCOPE_PROJECT", "for all my projects": "SCOPE_USER",
};

type Open = { session: Session; question: Message; asking: boolean };

/** The open questions, the oldest first. */
export class Questions {
  private readonly open = new Map<string, Open>();

  constructor(private readonly asker: Asker, private readonly changed: () => void) {}

  get count(): number { return this.open.size; }

  /** Takes a question in, and asks it. One that is asked again by the daemon is not put twice. */
  add(session: Session, question: Message): void {
    const before = this.open.get(question.question_id);
    this.open.set(question.question_id, { session, question, asking: before?.asking ?? false });
    this.changed();
    void this.ask(question.question_id);
  }

  /** Takes a question back. What is still on the screen of it has no effect. */
  withdraw(id: string): void {
    this.open.delete(id);
    this.changed();
  }

  withdrawAll(): void {
    this.open.clear();
    this.changed();
  }

  /** Asks the oldest question once more, which was dismissed. */
  async again(): Promise<boolean> {
    const [id] = this.open.keys();
    if (id === undefined) return false;
    await this.ask(id);
    return true;
  }

  private async ask(id: string): Promise<void> {
    const entry = this.open.get(id);
    if (!entry || entry.asking) return;
    entry.asking = true;
    const { question } = entry;
    const rules: Message[] = question.suggestions ?? [];
    let answer: Message | undefined;
    for (;;) {
      const choice = await this.asker.message(wordsOf(question), "Allow", "Deny", ...(question.diff ? ["Show Diff"] : []), "More…");
      if (choice !== "Show Diff") {
        answer = choice === undefined ? undefined : await this.answerOf(choice, question, rules);
        break;
      }
      await this.asker.diff(question.title ?? question.tool_name, ...sides(question.diff));
    }
    const now = this.open.get(id);
    if (!now) return; // answered elsewhere meanwhile
    now.asking = false;
    if (now.question.input_digest !== question.input_digest) return this.ask(id); // it is about something else by now
    if (!answer) return; // stays open
    this.open.delete(id);
    now.session.send({ answer: { question_id: id, input_digest: question.input_digest, ...answer } });
    this.changed();
  }

  private async answerOf(choice: string, question: Message, rules: Message[]): Promise<Message | undefined> {
    if (choice === "Deny") return { decision: "DECISION_DENY" };
    if (choice === "Allow") return this.allow(question);
    const say = "Deny, and tell the model why";
    const lines = rules.map(({ list, rule }) => `Always ${list} ${rule}`);
    const picked = await this.asker.pick(question.title ?? question.tool_name, [...lines, say]);
    if (picked === say) {
      const message = await this.asker.input("To the model");
      return message === undefined ? undefined : { decision: "DECISION_DENY", message };
    }
    const rule = picked === undefined ? undefined : rules[lines.indexOf(picked)];
    const scope = rule && (await this.asker.pick(picked!, Object.keys(scopes)));
    if (!rule || !scope) return undefined;
    return { decision: rule.list === "deny" ? "DECISION_DENY" : "DECISION_ALLOW", remember: [{ rule: rule.rule, list: rule.list, scope: scopes[scope] }] };
  }

  /** A yes, with what a form asks for. */
  private async allow(question: Message): Promise<Message | undefined> {
    if (!question.form_schema_json) return { decision: "DECISION_ALLOW" };
    const fields: { [name: string]: Message } = JSON.parse(question.form_schema_json).properties ?? {};
    const values: Message = {};
    for (const [name, field] of Object.entries(fields)) {
      const title = field.title ?? field.description ?? name;
      const choices: string[] | undefined = field.type === "boolean" ? ["yes", "no"] : field.enum;
      const value = choices ? await this.asker.pick(title, choices) : await this.asker.input(title, field.default?.toString());
      if (value === undefined) return undefined;
      values[name] = field.type === "boolean" ? value === "yes" : field.type === "integer" || field.type === "number" ? Number(value) : value;
    }
    return { decision: "DECISION_ALLOW", updated_input_json: JSON.stringify(values) };
  }
}

/** What a question says on its one message. */
function wordsOf(question: Message): string {
  return [`${question.title ?? question.tool_name}: ${question.reason ?? ""}`, ...(question.effects ?? [])].join(" · ");
}

/** The two texts of a unified diff: what its lines were, and what they become. */
export function sides(diff: string): [left: string, right: string] {
  const left: string[] = [], right: string[] = [];
  let old = 0, fresh = 0; // lines of the hunk that are still to come
  for (const line of diff.split("\n")) {
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (old <= 0 && fresh <= 0) {
      if (!hunk && !line.startsWith("+++ ")) continue;
      left.push(line);
      right.push(line);
      if (hunk) [old, fresh] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    } else if (!line.startsWith("\\")) {
      if (!line.startsWith("+")) {
        left.push(line.slice(1));
        old--;
      }
      if (!line.startsWith("-")) {
        right.push(line.slice(1));
        fresh--;
      }
    }
  }
  return [left.join("\n"), right.join("\n")];
}
