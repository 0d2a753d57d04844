// A stand-in for the module "vscode", as small as the extension needs: documents, commands, and answers that a test gives.
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");
const Module = require("node:module");

class EventEmitter {
  constructor() {
    this.listeners = new Set();
    this.event = (listener) => (this.listeners.add(listener), { dispose: () => this.listeners.delete(listener) });
  }
  fire(value) { for (const listener of this.listeners) listener(value); }
  dispose() { this.listeners.clear(); }
}

class Uri {
  constructor(scheme, path) { Object.assign(this, { scheme, path, fsPath: path }); }
  static file(path) { return new Uri("file", path); }
  static from({ scheme, path }) { return new Uri(scheme, path); }
  toString() { return `${this.scheme}:${this.path}`; }
}

const changed = new EventEmitter(), saved = new EventEmitter(), closed = new EventEmitter();

/** An open document. `type` is what a user does: the text becomes another one, unsaved. */
class TextDocument {
  constructor(uri, text) { Object.assign(this, { uri, text, version: 1, isDirty: false, isClosed: false }); }
  getText(range) { return range ? this.text.slice(range.start.offset, range.end.offset) : this.text; }
  positionAt(offset) {
    const before = this.text.slice(0, offset).split("\n");
    return { offset, line: before.length - 1, character: before.at(-1).length };
  }
  type(text) {
    this.text = text;
    this.version++;
    this.isDirty = true;
    changed.fire({ document: this });
  }
  async save() {
    if (fake.refuseSave) return false;
    writeFileSync(this.uri.fsPath, this.text);
    this.isDirty = false;
    saved.fire(this);
    return true;
  }
  close() {
    this.isClosed = true;
    fake.documents.splice(fake.documents.indexOf(this), 1);
    closed.fire(this);
  }
}

/** What a test sets and sees. */
const fake = {
  documents: [], roots: [], settings: {}, said: [], commands: new Map(), executed: [], diagnostics: [], providers: new Map(), refuseSave: false,
  /** Answers messages with buttons, picks and inputs. Without one they are dismissed. */
  answer: async () => undefined,
  open(path) {
    const document = new TextDocument(Uri.file(path), readFileSync(path, "utf8"));
    fake.documents.push(document);
    return document;
  },
  run: (name, ...args) => fake.commands.get(name)(...args),
};

const ask = async (text, ...buttons) => {
  fake.said.push(text);
  return buttons.length > 0 ? fake.answer(text, buttons) : undefined;
};

const vscode = {
  EventEmitter, Uri,
  Range: class { constructor(start, end) { Object.assign(this, { start, end }); } },
  WorkspaceEdit: class {
    constructor() { this.changes = []; }
    replace(uri, range, text) { this.changes.push({ uri, range, text }); }
  },
  TreeItem: class { constructor(label, collapsibleState) { Object.assign(this, { label, collapsibleState }); } },
  ThemeIcon: class { constructor(id) { this.id = id; } },
  McpStdioServerDefinition: class { constructor(label, command, args) { Object.assign(this, { label, command, args }); } },
  StatusBarAlignment: { Left: 1 },
  TreeItemCollapsibleState: { None: 0, Expanded: 2 },
  workspace: {
    get textDocuments() { return fake.documents; },
    get workspaceFolders() { return fake.roots.map((root) => ({ uri: Uri.file(root) })); },
    getConfiguration: () => ({ get: (name, otherwise) => fake.settings[name] ?? otherwise }),
    onDidChangeTextDocument: changed.event, onDidSaveTextDocument: saved.event, onDidCloseTextDocument: closed.event,
    registerTextDocumentContentProvider: (scheme, provider) => (fake.providers.set(scheme, provider), { dispose() {} }),
    openTextDocument: async (what) => what instanceof Uri
      ? new TextDocument(what, fake.providers.get(what.scheme).provideTextDocumentContent(what)) : (fake.proposal = new TextDocument(new Uri("untitled", "1"), what.content)),
    applyEdit: async ({ changes }) => {
      for (const { uri, range, text } of changes) {
        const document = fake.documents.find((d) => d.uri.fsPath === uri.fsPath);
        document.type(document.text.slice(0, range.start.offset) + text + document.text.slice(range.end.offset));
      }
      return true;
    },
    fs: { stat: async (uri) => readFileSync(uri.fsPath) },
  },
  window: {
    createStatusBarItem: () => (fake.bar = { show() {}, hide() {}, dispose() {} }),
    showInformationMessage: ask, showErrorMessage: ask,
    showQuickPick: async (choices, { title }) => fake.answer(title, choices),
    showInputBox: async ({ title }) => fake.answer(title, undefined),
    showTextDocument: async (document) => (fake.shown = document),
    registerTreeDataProvider: (_, tree) => ((fake.tree = tree), { dispose() {} }),
  },
  languages: { getDiagnostics: () => fake.diagnostics, setTextDocumentLanguage: async () => {} },
  commands: {
    registerCommand: (name, act) => (fake.commands.set(name, act), { dispose: () => fake.commands.delete(name) }),
    executeCommand: async (...args) => void fake.executed.push(args),
  },
  lm: { registerMcpServerDefinitionProvider: (_, provider) => ((fake.mcp = provider), { dispose() {} }) },
};

const load = Module._load;
Module._load = (request, ...rest) => (request === "vscode" ? vscode : load(request, ...rest));

module.exports = fake;
