package lsp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) { os.Exit(tooltest.Main(m)) }

// onPath puts gopls, as make builds it, into PATH.
func onPath(t *testing.T) {
	t.Helper()
	built, err := filepath.Abs("../../.bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", built+":"+os.Getenv("PATH"))
	if _, err := exec.LookPath("gopls"); err == nil {
		return
	}
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(`this test needs gopls: run "make servers"`)
	}
	t.Skip(`this test needs gopls: run "make servers"`)
}

var project = map[string]string{
	"go.mod":     "module example.com/m\n\ngo 1.24\n",
	"main.go":    "package m\n\nfunc use() string {\n\treturn greet() + greet()\n}\n",
	"greet.go":   "package m\n\nimport \"strings\"\n\n// greet greets.\nfunc greet() string { return strings.ToUpper(\"hello\") }\n\n// A speaker speaks.\ntype speaker interface{ speak() }\n\ntype dog struct{}\n\nfunc (dog) speak() {}\n",
	"secret.go":  "package m\n\nvar secret = greet()\n",
	"broken.go":  "package m\n\nvar broken int = \"text\"\n",
	"other.text": "no language\n",
}

func TestContract(t *testing.T) {
	onPath(t)
	input := func(operation, more string) string {
		return `{"operation": "` + operation + `", "file_path": "$ROOT/greet.go"` + more + `}`
	}
	const place = `, "line": 6, "character": 7`
	var cases []tooltest.Case
	for _, c := range []struct{ operation, more string }{
		{"definition", place},
		{"references", place},
		{"hover", place},
		{"implementation", `, "line": 9, "character": 6`},
		{"document_symbols", ""},
		{"workspace_symbols", `, "query": "greet"`},
		{"call_hierarchy", place},
		{"diagnostics", ""},
		{"rename_preview", place + `, "query": "salute"`},
	} {
		cases = append(cases, tooltest.Case{Name: c.operation, Input: input(c.operation, c.more), Files: project})
	}
	tooltest.Check(t, Tool(), cases...)
}

// A caller calls the tool in one room.
type caller struct {
	*testing.T
	room *tooltest.Room
}

func (c caller) call(input string) (string, Found, error) {
	c.Helper()
	action, err := Tool().Parse(json.RawMessage(strings.ReplaceAll(input, "$ROOT", c.room.Root)))
	if err != nil {
		return "", Found{}, err
	}
	result, err := action.Run(c.Context(), c.room.Env(action))
	if err != nil {
		return "", Found{}, err
	}
	return strings.ReplaceAll(result.Content[0].Text, c.room.Root, "$ROOT"), result.Structured.(Found), nil
}

func newCaller(t *testing.T) caller {
	t.Helper()
	onPath(t)
	room := tooltest.NewRoom(t)
	for name, text := range project {
		room.Put(name, text)
	}
	return caller{t, room}
}

func TestAnswers(t *testing.T) {
	c := newCaller(t)
	for _, q := range []struct{ name, input, want string }{
		{"definition", `{"operation": "definition", "file_path": "$ROOT/main.go", "line": 4, "character": 10}`, `$ROOT/greet.go:6:6: func greet() string { return strings.ToUpper("hello") }`},
		{"references", `{"operation": "references", "file_path": "$ROOT/greet.go", "line": 6, "character": 6}`, `$ROOT/greet.go:6:6: func greet() string { return strings.ToUpper("hello") }
$ROOT/main.go:4:9: return greet() + greet()
$ROOT/main.go:4:19: return greet() + greet()
$ROOT/secret.go:3:14: var secret = greet()`},
		{"implementation", `{"operation": "implementation", "file_path": "$ROOT/greet.go", "line": 9, "character": 6}`, `$ROOT/greet.go:11:6: type dog struct{}`},
		{"outline", `{"operation": "document_symbols", "file_path": "$ROOT/greet.go"}`, `6:6: function greet func() string
9:6: interface speaker interface{...}
  9:25: method speak func()
11:6: struct dog struct{}
13:12: method (dog).speak func()`},
		{"search", `{"operation": "workspace_symbols", "file_path": "$ROOT/main.go", "query": "broken"}`, `$ROOT/broken.go:3:5: variable broken (in example.com/m)`},
		{"hierarchy", `{"operation": "call_hierarchy", "file_path": "$ROOT/main.go", "line": 3, "character": 6}`, `function use example.com/m • main.go at $ROOT/main.go:3:6: func use() string {
Called by: nothing.
Calls:
  $ROOT/greet.go:6:6: function greet example.com/m • greet.go; the call is at 4:9, 4:19`},
		{"diagnostics", `{"operation": "diagnostics", "file_path": "$ROOT/broken.go"}`, `$ROOT/broken.go:3:18: error: cannot use "text" (untyped string constant) as int value in variable declaration (compiler IncompatibleAssign)`},
		{"no diagnostics", `{"operation": "diagnostics", "file_path": "$ROOT/secret.go"}`, `No errors or warnings.`},
		{"rename", `{"operation": "rename_preview", "file_path": "$ROOT/broken.go", "line": 3, "character": 5, "query": "fixed"}`, `--- $ROOT/broken.go
+++ $ROOT/broken.go
@@ -1,3 +1,3 @@
 package m
 
-var broken int = "text"
+var fixed int = "text"`},
	} {
		got, _, err := c.call(q.input)
		if err != nil || got != q.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", q.name, err, got, q.want)
		}
	}
	got, found, err := c.call(`{"operation": "hover", "file_path": "$ROOT/greet.go", "line": 6, "character": 6}`)
	if err != nil || !strings.Contains(got, "greet greets.") || found.Hover != got {
		t.Errorf("hover: %q, %v", got, err)
	}
	got, found, err = c.call(`{"operation": "definition", "file_path": "$ROOT/greet.go", "line": 6, "character": 40}`)
	if err != nil || !strings.Contains(got, "/strings.go:") || !strings.Contains(got, "The text of 1 entry is not shown") || found.Elsewhere != 1 {
		t.Errorf("outside: %q, %+v, %v", got, found, err)
	}
}

// What a rule denies reading is not shown, whatever the server says of it, and is counted.
func TestDenied(t *testing.T) {
	c := newCaller(t)
	c.room.Bar("secret.go")
	got, found, err := c.call(`{"operation": "references", "file_path": "$ROOT/greet.go", "line": 6, "character": 6}`)
	if err != nil || strings.Contains(got, "secret") || found.Denied != 1 || found.Total != 3 || !strings.Contains(got, "Left out: 1 entry in files that a rule denies reading.") {
		t.Errorf("references: %+v, %v\n%s", found, err, got)
	}
	got, found, err = c.call(`{"operation": "rename_preview", "file_path": "$ROOT/greet.go", "line": 6, "character": 6, "query": "salute"}`)
	if err != nil || strings.Contains(got, "secret") || found.Denied != 1 || len(found.Changes) != 2 {
		t.Errorf("rename: %+v, %v\n%s", found, err, got)
	}
	got, found, err = c.call(`{"operation": "workspace_symbols", "file_path": "$ROOT/greet.go", "query": "secret"}`)
	if err != nil || strings.Contains(got, "secret.go") || found.Denied == 0 {
		t.Errorf("search: %+v, %v\n%s", found, err, got)
	}
	if _, _, err = c.call(`{"operation": "diagnostics", "file_path": "$ROOT/secret.go"}`); tooltest.Code(err) != "rule_denied" {
		t.Errorf("the file itself: %v", err)
	}
}

func TestRefused(t *testing.T) {
	c := newCaller(t)
	c.room.Put("large.go", "package m\n//"+strings.Repeat("x", maxText))
	for _, q := range []struct{ input, code, words string }{
		{`{"operation": "fly", "file_path": "$ROOT/main.go", "line": -1}`, "invalid_input", "/line"},
		{`{"operation": "hover", "file_path": "$ROOT/main.go"}`, "invalid_input", "/character"},
		{`{"operation": "rename_preview", "file_path": "$ROOT/main.go", "line": 1, "character": 1}`, "invalid_input", "/query"},
		{`{"operation": "workspace_symbols", "file_path": "$ROOT/main.go", "query": "` + strings.Repeat("x", maxQuery+1) + `"}`, "invalid_input", "the limit is 1000"},
		{`{"operation": "hover", "file_path": "main.go", "line": 1, "character": 1}`, "invalid_input", "absolute"},
		{`{"operation": "hover", "file_path": "$ROOT/main.go", "line": 99, "character": 1}`, "invalid_input", "the file has 5"},
		{`{"operation": "hover", "file_path": "$ROOT/main.go", "line": 1, "character": 99}`, "invalid_input", "line 1 has 9"},
		{`{"operation": "hover", "file_path": "$ROOT/none.go", "line": 1, "character": 1}`, "file_not_found", "none.go"},
		{`{"operation": "document_symbols", "file_path": "$ROOT/other.text"}`, "no_language_server", "other.text"},
		{`{"operation": "document_symbols", "file_path": "$ROOT"}`, "is_directory", ""},
		{`{"operation": "document_symbols", "file_path": "$ROOT/large.go"}`, "file_too_large", "8 MiB"},
		{`{"operation": "rename_preview", "file_path": "$ROOT/main.go", "line": 3, "character": 6, "query": "not a name"}`, "language_server_refused", "gopls answered"},
	} {
		if got, _, err := c.call(q.input); tooltest.Code(err) != q.code || !strings.Contains(err.Error(), q.words) {
			t.Errorf("%.100s: %q, %v, want %s: %s", q.input, got, err, q.code, q.words)
		}
	}
}

// Where no server is to be had the tool says so, and so does a call.
func TestUnavailable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	room := tooltest.NewRoom(t)
	room.Put("main.go", "package m\n")
	c := caller{t, room}
	action, err := Tool().Parse(json.RawMessage(`{"operation": "diagnostics", "file_path": "` + room.Root + `/main.go"}`))
	if err != nil {
		t.Fatal(err)
	}
	if why := Tool().Spec().Available(room.Env(action)); !strings.Contains(why, "gopls") {
		t.Errorf("available: %q", why)
	}
	if why := Tool().Spec().Available(&tools.Env{}); why == "" {
		t.Error("available without language servers")
	}
	if _, _, err := c.call(`{"operation": "diagnostics", "file_path": "$ROOT/main.go"}`); tooltest.Code(err) != "program_not_found" || !strings.Contains(err.Error(), `"lsp"`) {
		t.Error(err)
	}
}

// What an editor has not saved is what the server sees, of the file and of others, until it is closed.
func TestUnsaved(t *testing.T) {
	c := newCaller(t)
	editor := c.room.Editor()
	const ask = `{"operation": "diagnostics", "file_path": "$ROOT/main.go"}`
	say := func(what, want string) {
		t.Helper()
		if got, _, err := c.call(ask); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v, want %s", what, got, err, want)
		}
	}
	say("saved", "No errors")
	main, greet := c.room.Root+"/main.go", c.room.Root+"/greet.go"
	editor.Type(greet, strings.ReplaceAll(project["greet.go"], "greet", "salute"))
	say("another file", "undefined: greet")
	editor.Type(main, strings.ReplaceAll(project["main.go"], "greet()", "1"))
	say("the file", "cannot use 1 + 1")
	editor.Close(main)
	editor.Close(greet)
	say("closed", "No errors")
}
