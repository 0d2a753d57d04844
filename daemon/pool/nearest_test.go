package pool

import (
	"strings"
	"testing"

	"github.com/toold/toold/tools"
)

// TestNearest: a name of another agent's tool leads to the tool of the same use, a misspelt one to its own.
func TestNearest(t *testing.T) {
	var list []tools.Tool
	for _, name := range []string{"Bash", "BashOutput", "Edit", "Glob", "Grep", "KillShell", "LS", "LSP", "MultiEdit", "NotebookEdit", "Read", "TodoWrite", "WebFetch", "WebSearch", "Write"} {
		list = append(list, tool(tools.BuiltIn, name))
	}
	list = append(list, tool(tools.MCP, "mcp__github__create_issue"), tool(tools.MCP, "mcp__db__query"), tool(tools.Client, "AskUser"))
	p := Assemble(entries(list...), Deferral{Above: 30})
	for asked, want := range map[string]string{
		"bash": "Bash", "run_terminal_cmd": "Bash", "execute_command": "Bash", "runInTerminal": "Bash", "shell": "Bash", "local_shell": "Bash", "python": "Bash",
		"str_replace_editor": "Edit", "str_replace_based_edit_tool": "Edit", "apply_patch": "Edit", "replace_in_file": "Edit", "Edti": "Edit",
		"read_file": "Read", "view": "Read", "cat": "Read", "ReadFile": "Read", "open_file": "Read", "Raed": "Read",
		"write_to_file": "Write", "create_file": "Write", "save_file": "Write", "list_dir": "LS", "list_directory": "LS", "ls": "LS",
		"grep_search": "Grep", "codebase_search": "Grep", "ripgrep": "Grep", "file_search": "Grep", "find_files": "Glob", "glob_file_search": "Glob", "Globb": "Glob",
		"browse_web": "WebFetch", "fetch_url": "WebFetch", "curl": "WebFetch", "web_search": "WebSearch", "google": "WebSearch",
		"update_plan": "TodoWrite", "todo": "TodoWrite", "kill_process": "KillShell", "goto_definition": "LSP", "edit_notebook": "NotebookEdit",
		"create_issue": "mcp__github__create_issue", "GithubCreateIssue": "mcp__github__create_issue", "ask_user": "AskUser", "askUserQuestion": "AskUser", "sql_query": "mcp__db__query",
	} {
		got := p.Nearest(asked)
		if len(got) != 3 || got[0] != want {
			t.Errorf("%s: %v, want %s first", asked, got, want)
		}
	}
	if got := p.Nearest(strings.Repeat("x", 1<<20)); len(got) != 3 {
		t.Errorf("a long name: %v", got)
	}
	if got := Assemble(nil, Deferral{}).Nearest("Read"); len(got) != 0 {
		t.Errorf("of no tools: %v", got)
	}
}

func FuzzWords(f *testing.F) {
	for _, name := range []string{"runInTerminal", "HTTPGet", "a__b", "Ünï_code", "\xff\xfeA", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, word := range words(name) {
			if word == "" || strings.ContainsAny(word, "_- ") {
				t.Errorf("%q has the word %q", name, word)
			}
		}
	})
}
