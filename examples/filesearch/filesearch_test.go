package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) { os.Exit(tooltest.Main(m)) }

func TestTool(t *testing.T) {
	files := map[string]string{"a.go": "old := 1\n", "b/c.txt": "old\r\nold\r\n"}
	tooltest.Check(t, Tool(),
		tooltest.Case{Name: "search", Input: `{"pattern": "old", "path": "$ROOT"}`, Files: files},
		tooltest.Case{Name: "preview", Input: `{"pattern": "old", "replace_with": "new", "path": "$ROOT"}`, Files: files},
		tooltest.Case{Name: "write", Input: `{"pattern": "old", "replace_with": "new", "path": "$ROOT", "preview_only": false}`, Files: files},
		tooltest.Case{Name: "one file", Input: `{"pattern": "old", "replace_with": "new", "path": "$ROOT/a.go", "preview_only": false}`, Files: files},
	)
}

// TestReplace: which bytes of which files change.
func TestReplace(t *testing.T) {
	files := map[string]string{
		"a.go": "func Old(x int) {\n\tOld(x)\n}\n", "b.txt": "Old\r\nbold\r\n\ufeffOld", "sub/c.go": "// Old\n", ".hidden/d.go": "Old\n",
		"ignored/e.go": "Old\n", ".gitignore": "ignored/\n", "bin.go": "Old\x00Old", "latin.go": "Old caf\xe9\n", "large.go": strings.Repeat("Old\n", 2<<20),
	}
	for _, c := range []struct {
		name, input, text string
		want              map[string]string // what differs from files
	}{
		{"words", `"pattern": "\\bOld\\b", "replace_with": "New", "preview_only": false`, "Replaced 5 matches in 3 files", map[string]string{
			"a.go": "func New(x int) {\n\tNew(x)\n}\n", "b.txt": "New\r\nbold\r\n\ufeffNew", "sub/c.go": "// New\n",
		}},
		{"groups", `"pattern": "Old\\((\\w+)", "replace_with": "New(ctx, ${1}", "preview_only": false, "file_glob": "*.go"`, "Replaced 2 matches in 1 file", map[string]string{
			"a.go": "func New(ctx, x int) {\n\tNew(ctx, x)\n}\n",
		}},
		{"across lines", `"pattern": "\\{.*\\}\\n", "replace_with": "", "multiline": true, "preview_only": false`, "Replaced 1 match in 1 file", map[string]string{"a.go": "func Old(x int) "}},
		{"globs", `"pattern": "Old", "replace_with": "New", "preview_only": false, "file_glob": "*.{go,txt}", "exclude": ["sub/", "/a.go"]`, "Replaced 2 matches in 1 file", map[string]string{"b.txt": "New\r\nbold\r\n\ufeffNew"}},
		{"preview", `"pattern": "// Old", "replace_with": "// $$1"`, "+// $1", nil},
		{"search", `"pattern": "Old"`, "sub/c.go:1:// Old", nil},
		{"nothing", `"pattern": "none such"`, "No matches in 3 files", nil},
		{"the same", `"pattern": "Old", "replace_with": "Old", "preview_only": false`, "No matches", nil},
		{"left out", `"pattern": "Old"`, "1 file (larger than 4 MiB), 2 files (no UTF-8 text)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := tooltest.NewRoom(t)
			for name, content := range files {
				room.Put(name, content)
			}
			result, err := call(t, room, `{`+c.input+`, "path": `+quote(room.Root)+`}`)
			if err != nil || !strings.Contains(result.Content[0].Text, c.text) {
				t.Errorf("%v, want %q in:\n%.2000s", err, c.text, result.Content[0].Text)
			}
			for name, was := range files {
				want, changed := c.want[name]
				if !changed {
					want = was
				}
				if now, err := os.ReadFile(filepath.Join(room.Root, name)); err != nil || string(now) != want {
					t.Errorf("%s holds %.100q, %v; want %.100q", name, now, err, want)
				}
			}
		})
	}
}

// TestEditor: what is unsaved in an editor is what counts, and the change is made there.
func TestEditor(t *testing.T) {
	room := tooltest.NewRoom(t)
	room.Put("a.txt", "old\n")
	path, editor := filepath.Join(room.Root, "a.txt"), room.Editor()
	editor.Type(path, "old and unsaved\n")
	result, err := call(t, room, `{"pattern": "old", "replace_with": "new", "preview_only": false, "path": `+quote(room.Root)+`}`)
	if err != nil || editor.Text(path) != "new and unsaved\n" || !strings.Contains(result.Content[0].Text, "once it is saved") {
		t.Errorf("the editor holds %q, %v\n%s", editor.Text(path), err, result.Content[0].Text)
	}
	if disk, err := os.ReadFile(path); string(disk) != "old\n" {
		t.Errorf("the file holds %q, %v", disk, err)
	}
}

// TestProgress: each file is reported before it is changed.
func TestProgress(t *testing.T) {
	room := tooltest.NewRoom(t)
	for _, name := range []string{"a", "b", "c"} {
		room.Put(name, "old")
	}
	action, err := Tool().Parse(json.RawMessage(`{"pattern": "old", "replace_with": "new", "preview_only": false, "path": ` + quote(room.Root) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	env := room.Env(action)
	var steps []tools.Step
	env.Report = func(s tools.Step) { steps = append(steps, s) }
	if _, err := action.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; len(steps) != 3 || last.Done != 2 || last.Total != 3 || filepath.Base(last.Message) != "c" {
		t.Errorf("the steps were %+v", steps)
	}
}

func TestBadInput(t *testing.T) {
	for input, code := range map[string]string{
		`{"pattern": "("}`:                                 "bad_pattern",
		`{"pattern": "a", "preview_only": false}`:          "invalid_input",
		`{"pattern": "a", "file_glob": " "}`:               "bad_pattern",
		`{"pattern": "a", "exclude": ["!b"]}`:              "bad_pattern",
		`{"pattern": "a(?=b)", "replace_with": "lookups"}`: "bad_pattern",
	} {
		if _, err := Tool().Parse(json.RawMessage(input)); err == nil || fault.From(err).Code != code {
			t.Errorf("%s: %v, want %s", input, err, code)
		}
	}
}

func call(t *testing.T, room *tooltest.Room, input string) (tools.Result, error) {
	t.Helper()
	action, err := Tool().Parse(json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	return action.Run(t.Context(), room.Env(action))
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
