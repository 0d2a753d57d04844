// Texts that are no files: the sides of a diff, what the program has printed, a proposal.
import * as vscode from "vscode";

const scheme = "toold";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly held = new Map<string, string>();
  private readonly subscriptions: vscode.Disposable[];
  private last = 0;

  constructor() {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(scheme, this),
      vscode.workspace.onDidCloseTextDocument((document) => this.held.delete(document.uri.toString())),
    ];
  }

  dispose(): void { for (const s of this.subscriptions) s.dispose(); }

  provideTextDocumentContent(uri: vscode.Uri): string { return this.held.get(uri.toString()) ?? ""; }

  private hold(title: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme, path: `/${++this.last}/${title}` });
    this.held.set(uri.toString(), text);
    return uri;
  }

  async show(title: string, text: string, language: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.hold(title, text));
    await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  async diff(title: string, left: string, right: string): Promise<void> {
    await vscode.commands.executeCommand("vscode.diff", this.hold("before", left), this.hold("after", right), title);
  }

  /** Shows a file beside a proposal that the user may change, and asks. */
  async propose(path: string, content: string, signal: AbortSignal): Promise<string | undefined> {
    const file = vscode.Uri.file(path);
    const exists = await vscode.workspace.fs.stat(file).then(() => true, () => false);
    const proposal = await vscode.workspace.openTextDocument({ content });
    await vscode.commands.executeCommand("vscode.diff", exists ? file : this.hold("nothing", ""), proposal.uri, `${path} (proposed)`);
    const stopped = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
    const choice = await Promise.race([stopped, vscode.window.showInformationMessage(`The agent proposes this text of ${path}.`, "Accept", "Reject")]);
    const accepted = choice === "Accept" ? proposal.getText() : undefined;
    if (vscode.window.activeTextEditor?.document === proposal) await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    return accepted;
  }
}
