package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/tools/tooltest"
)

// A tool in the list without a case here fails, so none gets by without the checks.
func TestTools(t *testing.T) {
	text := map[string]string{"a.txt": "one\ntwo\nthree\n"}
	book := map[string]string{"a.ipynb": `{"cells":[{"cell_type":"code","metadata":{},"execution_count":1,"outputs":[],"source":"1"}],"metadata":{},"nbformat":4,"nbformat_minor":4}`}
	cases := map[string][]tooltest.Case{
		"Read": {
			{Name: "whole", Input: `{"file_path":"$ROOT/a.txt"}`, Files: text},
			{Name: "range", Input: `{"file_path":"$ROOT/a.txt","offset":2.0,"limit":1}`, Files: text},
			{Name: "empty", Input: `{"file_path":"$ROOT/e.txt"}`, Files: map[string]string{"e.txt": ""}},
			{Name: "notebook", Input: `{"file_path":"$ROOT/a.ipynb"}`, Files: book},
		},
		"Write": {
			{Name: "new", Input: `{"file_path":"$ROOT/d/new.txt","content":"x"}`},
			{Name: "over", Input: `{"file_path":"$ROOT/a.txt","content":"x"}`, Files: text, Seen: []string{"a.txt"}},
		},
		"Edit": {{Name: "one", Input: `{"file_path":"$ROOT/a.txt","old_string":"two","new_string":"2"}`, Files: text, Seen: []string{"a.txt"}}},
		"MultiEdit": {{
			Name: "two", Files: text, Seen: []string{"a.txt"},
			Input: `{"file_path":"$ROOT/a.txt","edits":[{"old_string":"two","new_string":"2"},{"old_string":"2","new_string":"II"}]}`,
		}},
		"ApplyPatch": {{
			Name: "three files", Files: map[string]string{"a.txt": text["a.txt"], "b.txt": "b\n"},
			Input: `{"patch":"*** Begin Patch\n*** Update File: a.txt\n*** Move to: c.txt\n@@\n one\n-two\n+2\n*** Delete File: b.txt\n*** Add File: $ROOT/d/e.txt\n+e\n*** End Patch"}`,
		}},
		"NotebookEdit": {
			{Name: "replace", Input: `{"notebook_path":"$ROOT/a.ipynb","cell_id":"cell-0","new_source":"2"}`, Files: book, Seen: []string{"a.ipynb"}},
			{Name: "insert", Input: `{"notebook_path":"$ROOT/a.ipynb","new_source":"2","cell_type":"code","edit_mode":"insert"}`, Files: book, Seen: []string{"a.ipynb"}},
		},
		"Glob": {
			{Name: "some", Input: `{"pattern":"**/*.txt"}`, Files: text},
			{Name: "none", Input: `{"pattern":"*.go","path":"$ROOT"}`, Files: text},
		},
		"Grep": {
			{Name: "files", Input: `{"pattern":"two"}`, Files: text},
			{Name: "content", Input: `{"pattern":"t.","output_mode":"content","-n":true,"-C":1}`, Files: text},
			{Name: "none", Input: `{"pattern":"four"}`, Files: text},
		},
		"LS": {{Name: "one level", Input: `{"path":"$ROOT","ignore":["b*"]}`, Files: text}},
		"Bash": {
			{Name: "read-only", Input: `{"command":"cat a.txt"}`, Files: text},
			{Name: "silent", Input: `{"command":"touch b","timeout":5000,"description":"Makes a file."}`},
		},
		"Shell":      {{Name: "two", Input: `{"commands":["ls","pwd"],"timeout_ms":1000}`}},
		"BashOutput": {{Name: "running", Task: "echo one; sleep 600", Input: `{"bash_id":"$TASK","filter":"o.e"}`}},
		"KillShell":  {{Name: "running", Task: "sleep 600", Input: `{"shell_id":"$TASK"}`}},
		"Memory": {
			{Name: "list", Input: `{"command":"view","path":"/memories"}`},
			{Name: "new", Input: `{"command":"create","path":"/memories/a/b.md","file_text":"x"}`},
		},
		"TodoWrite": {
			{Name: "list", Input: `{"todos":[{"content":"Look","status":"in_progress","activeForm":"Looking"}]}`},
			{Name: "empty", Input: `{"todos":[]}`},
		},
	}
	files := settingsFiles{user: filepath.Join(t.TempDir(), "settings.json")}
	web := site(t, files.user)
	cases["WebFetch"] = []tooltest.Case{{Name: "page", Input: fmt.Sprintf(`{"url":%q,"prompt":"What does it say?"}`, web+"/page")}}
	cases["WebSearch"] = []tooltest.Case{{Name: "query", Input: `{"query":"three words"}`}}
	cases["ToolSearch"] = []tooltest.Case{{Name: "words", Input: `{"query":"issue"}`}}
	for _, tool := range toolset(files) {
		name := tool.Spec().Name
		if name == "LSP" || name == "BashInput" {
			continue // they need a language server, and a program in a terminal: tools/lsp and daemon have their checks
		}
		t.Run(name, func(t *testing.T) {
			listed, ok := cases[name]
			if !ok {
				t.Fatalf("no case for %s", name)
			}
			tooltest.Check(t, tool, listed...)
		})
	}
}

// site serves a page and a search engine on loopback, and writes settings that let both be reached.
func site(t *testing.T, settings string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/search" {
			_, _ = w.Write([]byte(`{"results":[{"url":"https://a.example/","title":"A"}]}`))
			return
		}
		_, _ = w.Write([]byte("<title>T</title><p>Hello"))
	}))
	t.Cleanup(server.Close)
	text := fmt.Sprintf(`{"sandbox":{"network":{"allowedDomains":["127.0.0.1"]}},"webSearch":{"backend":"searxng","url":%q}}`, server.URL)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL
}
