// The glue between the editor and the window's part.
import * as vscode from "vscode";
import { Buffers, type Document } from "./buffers";
import type { Call } from "./session";
import { Window, type Desk, type Listed } from "./window";
import { Texts } from "./texts";

type Item = { listed: Listed } | { call: Call };

export function activate(context: vscode.ExtensionContext): Window {
  const texts = new Texts();
  const redrawn = new vscode.EventEmitter<undefined>();
  const bar = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
  bar.command = "toold.answer";
  const setting = <T>(name: string, otherwise: T): T => vscode.workspace.getConfiguration("toold").get<T>(name, otherwise);
  const files = () => vscode.workspace.textDocuments.filter((d) => d.uri.scheme === "file").map(asDocument);

  const desk: Desk = {
    command: () => setting("command", ["toold"]),
    roots: () => (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
    saves: () => setting("save", true),
    tell: (text) => void vscode.window.showInformationMessage(`toold: ${text}`),
    message: (text, ...buttons) => vscode.window.showInformationMessage(text, ...buttons),
    pick: (title, choices) => vscode.window.showQuickPick(choices, { title }),
    input: (title, value) => vscode.window.showInputBox({ title, value, ignoreFocusOut: true }),
    diff: (title, left, right) => texts.diff(title, left, right),
    show: (title, text, language) => texts.show(title, text, language),
    propose: (path, content, signal) => texts.propose(path, content, signal),
    diagnostics: (path) => vscode.languages.getDiagnostics().filter(([uri]) => !path || uri.fsPath === path).flatMap(([uri, found]) => found.map((d) => ({
      path: uri.fsPath, line: d.range.start.line + 1, column: d.range.start.character + 1, severity: (["error", "warning", "info", "hint"] as const)[d.severity], message: d.message, source: d.source,
    }))),
    selection: () => {
      const editor = vscode.window.activeTextEditor;
      return editor && { path: editor.document.uri.fsPath, from: editor.selection.start.line + 1, to: editor.selection.end.line + 1, text: editor.document.getText(editor.selection) };
    },
    redraw: () => {
      redrawn.fire(undefined);
      bar.text = window?.status ?? "";
      bar[bar.text ? "show" : "hide"]();
    },
  };

  let window: Window | undefined;
  const here = (window = new Window(desk, new Buffers(files, async (document, changes) => {
    const { document: its } = document as Document & { document: vscode.TextDocument };
    const edit = new vscode.WorkspaceEdit();
    for (const { from, to, text } of changes) edit.replace(its.uri, new vscode.Range(its.positionAt(from), its.positionAt(to)), text);
    return vscode.workspace.applyEdit(edit);
  })));

  const touch = (document: vscode.TextDocument) => document.uri.scheme === "file" && here.buffers.touch(asDocument(document));
  const run = (name: string, act: (...args: any[]) => unknown) => vscode.commands.registerCommand(`toold.${name}`, async (...args) => {
    try {
      await act(...args);
    } catch (error) {
      void vscode.window.showErrorMessage(`toold: ${error instanceof Error ? error.message : error}`);
    }
  });
  const tree: vscode.TreeDataProvider<Item> = {
    onDidChangeTreeData: redrawn.event,
    getChildren: async (item) => item ? here.calls.map((call) => ({ call })) : (await here.sessions().catch(() => [])).map((listed) => ({ listed })),
    getTreeItem: (item) => {
      if ("listed" in item) {
        const ours = item.listed.id === here.session?.id;
        const shown = new vscode.TreeItem(item.listed.id, ours ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.None);
        return Object.assign(shown, { description: item.listed.client, command: ours ? undefined : { command: "toold.attach", title: "Attach", arguments: [item.listed.id] } });
      }
      const { title, state, outcome } = item.call;
      const icon = state === "running" ? "loading~spin" : state === "waiting" ? "clock" : outcome === "OUTCOME_OK" ? "check" : "error";
      return Object.assign(new vscode.TreeItem(title), { iconPath: new vscode.ThemeIcon(icon), contextValue: state === "ended" ? "toold.ended" : "toold.running", description: outcome?.replace("OUTCOME_", "").toLowerCase() });
    },
  };
  context.subscriptions.push(
    texts, redrawn, bar, { dispose: () => here.detach() },
    vscode.workspace.onDidChangeTextDocument((event) => touch(event.document)), vscode.workspace.onDidSaveTextDocument(touch), vscode.workspace.onDidCloseTextDocument(touch),
    vscode.window.registerTreeDataProvider("toold.sessions", tree),
    vscode.lm.registerMcpServerDefinitionProvider("toold", {
      provideMcpServerDefinitions: () => desk.roots().slice(0, 1).map((root) => new vscode.McpStdioServerDefinition("toold", desk.command()[0]!, [...desk.command().slice(1), "mcp", "--root", root])),
    }),
    run("attach", (name?: string) => (name ? here.join(name) : here.attach())), run("detach", () => here.detach()), run("answer", () => here.answer()),
    run("cancel", () => here.cancel()), run("cancelCall", ({ call }) => here.cancel(call)), run("diff", () => here.diff()), run("callDiff", ({ call }) => here.diff(call.id)),
    run("undo", () => here.undo()), run("log", () => here.log()), run("tasks", () => here.tasks()), run("refresh", () => redrawn.fire(undefined)),
  );
  if (setting("attachOnStart", false)) here.attach(true).catch(() => {}); // no daemon, so no session
  return here;
}

function asDocument(document: vscode.TextDocument): Document & { document: vscode.TextDocument } {
  return {
    document, path: document.uri.fsPath, getText: () => document.getText(), save: () => document.save(),
    get version() { return document.version; }, get isDirty() { return document.isDirty; }, get isClosed() { return document.isClosed; },
  };
}
