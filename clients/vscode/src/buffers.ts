// The unsaved texts: the daemon's tools see what the editor shows, and change it there instead of behind the editor's back.
import type { Message } from "./bridge";

/** What is needed of an open file. `version` grows with every change. */
export interface Document {
  readonly path: string;
  readonly version: number;
  readonly isDirty: boolean;
  readonly isClosed: boolean;
  getText(): string;
  save(): PromiseLike<boolean>;
}

/** What is to be replaced, counted in UTF-16 units of the text. */
export type Change = { from: number; to: number; text: string };

/** Offers the texts of modified files to one session after another. */
export class Buffers {
  private readonly sent = new Map<string, number>();
  private readonly changing = new Set<string>();
  private send?: (message: Message) => void;

  constructor(private readonly documents: () => readonly Document[], private readonly apply: (document: Document, changes: Change[]) => PromiseLike<boolean>) {}

  /** Offers all of them to a session, which has none of them. */
  start(send: (message: Message) => void): void {
    this.send = send;
    this.sent.clear();
    for (const document of this.documents()) this.touch(document);
  }

  /** Offers nothing any more. The daemon drops the texts with the stream. */
  stop(): void { this.send = undefined; }

  /** Takes note that a document was changed, saved or closed. */
  touch(document: Document): void {
    if (!this.send || this.changing.has(document.path)) return;
    const before = this.sent.get(document.path);
    if (document.isClosed || !document.isDirty) {
      if (before === undefined) return;
      this.sent.delete(document.path);
      this.send({ buffer_closed: { path: document.path } });
    } else if (before !== document.version) {
      this.sent.set(document.path, document.version);
      this.send({ buffer_changed: { path: document.path, version: document.version, content: document.getText() } });
    }
  }

  /** Makes an edit that a call asks for, if the text is as the daemon has it, and returns the version after it. */
  async edit({ path, version, edits = [] }: Message): Promise<number> {
    const document = this.documents().find((d) => d.path === path);
    if (!document || document.isClosed) throw new Error("The editor does not have the file open.");
    if (document.version !== Number(version)) throw new Error("The text has changed in the editor since it was read.");
    const { changes, text } = changesOf(document.getText(), edits);
    this.changing.add(path);
    try {
      if (!(await this.apply(document, changes))) throw new Error("The editor does not let the text be changed.");
      if (document.getText() !== text) throw new Error("The text was changed by something else at the same time.");
      this.sent.set(path, document.version);
      return document.version;
    } catch (error) {
      this.sent.set(path, -1); // what it holds now is told again
      throw error;
    } finally {
      this.changing.delete(path);
      if (this.sent.get(path) === -1) setImmediate(() => this.touch(document)); // behind the answer
    }
  }

  /** Saves files, and returns those that stay unsaved. */
  async save(paths: string[]): Promise<string[]> {
    const unsaved: string[] = [];
    for (const path of paths) {
      const document = this.documents().find((d) => d.path === path);
      if (document?.isDirty && !(await document.save())) unsaved.push(path);
      if (document) this.touch(document);
    }
    return unsaved;
  }
}

/** What edits, which count bytes of UTF-8 and are made one after the other, come to: changes of the text as it was. */
function changesOf(before: string, edits: Message[]): { changes: Change[]; text: string } {
  let bytes = Buffer.from(before);
  for (const { offset = 0, length = 0, text = "" } of edits) {
    const from = Number(offset);
    bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(text), bytes.subarray(from + Number(length))]);
  }
  const text = bytes.toString();
  let head = 0, tail = 0;
  const least = Math.min(before.length, text.length);
  while (head < least && before[head] === text[head]) head++;
  while (tail < least - head && before[before.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
  return { changes: [{ from: head, to: before.length - tail, text: text.slice(head, text.length - tail) }], text };
}
