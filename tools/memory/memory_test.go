package memory_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/memory"
)

// An outcome is what a command has returned: one of the two.
type outcome struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// call makes a call as the pipeline does. The check must return the same error as the run, and change nothing.
func call(t testing.TB, store memstore.Store, input string) (result outcome, code string) {
	t.Helper()
	action, err := memory.Tool().Parse(json.RawMessage(input))
	if err != nil {
		return outcome{Error: fault.From(err).Message}, fault.From(err).Code
	}
	env := &tools.Env{Memory: store}
	action = action.(tools.Situated).At(env)
	_, checked := action.Check(t.Context(), env)
	ran, err := action.Run(t.Context(), env)
	if (checked == nil) != (err == nil) && fault.From(err).Code != "memory_full" {
		t.Errorf("%.200s: the check returned %v, the run %v", input, checked, err)
	}
	if err != nil {
		return outcome{Error: fault.From(err).Message}, fault.From(err).Code
	}
	return outcome{Text: ran.Content[0].Text}, ""
}

func newStore(t testing.TB) memstore.Store {
	return memstore.NewSet(filepath.Join(t.TempDir(), "memory")).Of("somebody", "/work/app")
}

// commands is run by toold and by the SDK, one after the other.
const commands = `
{"command": "view", "path": "/memories"}
{"command": "view", "path": "/memories/"}
{"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\nthree\n"}
{"command": "create", "path": "/memories/a.md", "file_text": "again"}
{"command": "create", "path": "/memories", "file_text": "x"}
{"command": "create", "path": "/memories/d/e/f/deep.md", "file_text": "deep"}
{"command": "create", "path": "/memories/d/empty", "file_text": ""}
{"command": "create", "path": "/memories/.hidden", "file_text": "x"}
{"command": "create", "path": "/memories/node_modules/x", "file_text": "x"}
{"command": "create", "path": "/memories/size", "file_text": "$1536"}
{"command": "create", "path": "/memories/quarter", "file_text": "$1280"}
{"command": "create", "path": "/memories/ä ö.md", "file_text": "größe"}
{"command": "create", "path": "/memories//x/../y.md", "file_text": "clean"}
{"command": "create", "path": "/memories/slash.md/", "file_text": "clean"}
{"command": "view", "path": "/memories"}
{"command": "view", "path": "/memories/d"}
{"command": "view", "path": "/memories/d/"}
{"command": "view", "path": "/memories/d/e/f/deep.md"}
{"command": "view", "path": "/memories/d/empty"}
{"command": "view", "path": "/memories/no"}
{"command": "view", "path": "/memories/a.md"}
{"command": "view", "path": "/memories/a.md", "view_range": [2, 3]}
{"command": "view", "path": "/memories/a.md", "view_range": [2, -1]}
{"command": "view", "path": "/memories/a.md", "view_range": [0, 1]}
{"command": "view", "path": "/memories/a.md", "view_range": [-5, -2]}
{"command": "view", "path": "/memories/a.md", "view_range": [3, 2]}
{"command": "view", "path": "/memories/a.md", "view_range": [1, 999]}
{"command": "view", "path": "/memories/a.md", "view_range": [50, 60]}
{"command": "view", "path": "/memories/a.md", "view_range": []}
{"command": "view", "path": "/etc/passwd"}
{"command": "view", "path": "memories/a.md"}
{"command": "view", "path": "/memories/../../etc/passwd"}
{"command": "view", "path": "/memories/../memories/a.md"}
{"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "$& 2 \\1"}
{"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "x"}
{"command": "str_replace", "path": "/memories/a.md", "old_str": "e", "new_str": "x"}
{"command": "str_replace", "path": "/memories/a.md", "old_str": "three", "new_str": "3\n4\n5\n6\n7"}
{"command": "str_replace", "path": "/memories/d", "old_str": "x", "new_str": "y"}
{"command": "str_replace", "path": "/memories/no", "old_str": "x", "new_str": "y"}
{"command": "str_replace", "path": "/memories/d/e/f/deep.md", "old_str": "", "new_str": "very "}
{"command": "str_replace", "path": "/memories/a.md", "old_str": "", "new_str": "x"}
{"command": "view", "path": "/memories/a.md"}
{"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "first\n"}
{"command": "insert", "path": "/memories/a.md", "insert_line": 2, "insert_text": "a\nb\n\n"}
{"command": "insert", "path": "/memories/a.md", "insert_line": 99, "insert_text": "x"}
{"command": "insert", "path": "/memories/a.md", "insert_line": -1, "insert_text": "x"}
{"command": "insert", "path": "/memories/d/empty", "insert_line": 1, "insert_text": "x"}
{"command": "insert", "path": "/memories/d", "insert_line": 0, "insert_text": "x"}
{"command": "insert", "path": "/memories/no", "insert_line": 0, "insert_text": "x"}
{"command": "view", "path": "/memories/a.md"}
{"command": "view", "path": "/memories/d/empty"}
{"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/n/b.md"}
{"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/c.md"}
{"command": "rename", "old_path": "/memories/d", "new_path": "/memories/n/b.md"}
{"command": "rename", "old_path": "/memories", "new_path": "/memories/m"}
{"command": "rename", "old_path": "/memories/d", "new_path": "/memories"}
{"command": "rename", "old_path": "/memories/d", "new_path": "/tmp/d"}
{"command": "rename", "old_path": "/memories/d", "new_path": "/memories/n/d"}
{"command": "view", "path": "/memories"}
{"command": "delete", "path": "/memories/n/b.md"}
{"command": "delete", "path": "/memories/n/b.md"}
{"command": "delete", "path": "/memories"}
{"command": "delete", "path": "/memories/x/.."}
{"command": "delete", "path": "/memories/n"}
{"command": "view", "path": "/memories"}`

func inputs() (list []string) {
	for line := range strings.Lines(strings.TrimSpace(commands)) {
		for _, size := range []int{1536, 1280} {
			line = strings.ReplaceAll(line, fmt.Sprintf("$%d", size), strings.Repeat("x", size))
		}
		list = append(list, strings.TrimSpace(line))
	}
	return list
}

// TestTextsOfTheSDK runs the commands with the SDK's own implementation beside this one: what a model reads is the same.
func TestTextsOfTheSDK(t *testing.T) {
	if _, err := os.Stat("testdata/sdk/node_modules/@anthropic-ai/sdk"); err != nil {
		if os.Getenv("TOOLD_CI") != "" {
			t.Fatal("this test needs \"make clients\"")
		}
		t.Skip("this test needs \"make clients\"")
	}
	list := inputs()
	node := exec.CommandContext(t.Context(), "node", "memory.js", filepath.Join(t.TempDir(), "sdk"))
	node.Dir, node.Stdin, node.Stderr = "testdata/sdk", strings.NewReader("["+strings.Join(list, ",")+"]"), new(bytes.Buffer)
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, node.Stderr)
	}
	var wanted []outcome
	if err := json.Unmarshal(out, &wanted); err != nil || len(wanted) != len(list) {
		t.Fatalf("%d results for %d commands, %v", len(wanted), len(list), err)
	}
	store := newStore(t)
	for i, input := range list {
		if got, _ := call(t, store, input); got != wanted[i] {
			t.Errorf("%.200s\n toold %.500q\n SDK   %.500q", input, got, wanted[i])
		}
	}
}

// TestBeyondTheSDK: what the SDK refuses, or would do at the wrong place.
func TestBeyondTheSDK(t *testing.T) {
	store := newStore(t)
	for _, c := range []struct{ input, text, code string }{
		{`{"command": "create", "path": "/memories/a", "file_text": "one\ntwo\ntwo two\n"}`, "File created successfully at: /memories/a", ""},
		{`{"command": "str_replace", "path": "/memories/a", "old_str": "one\ntwo\n", "new_str": "1\n"}`, "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\t1\n     2\ttwo two\n     3\t", ""},
		{`{"command": "str_replace", "path": "/memories/a", "old_str": "two", "new_str": "2"}`, "No replacement was performed. Multiple occurrences of old_str `two` in lines: 2. Please ensure it is unique", "multiple_matches"},
		{`{"command": "view", "path": "/memoriesa"}`, "Path must start with /memories, got: /memoriesa", "invalid_input"},
		{`{"command": "create", "path": "/memories/a/b", "file_text": "x"}`, "There can be no such path as /memories/a/b: not a directory.", "memory_path"},
		{`{"command": "view", "path": "/memories/` + strings.Repeat("x", 300) + `"}`, "", "memory_path"},
		{`{"command": "create", "path": "/memories/d/x", "file_text": "x"}`, "File created successfully at: /memories/d/x", ""},
		{`{"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e/f"}`, "The directory /memories/d cannot be moved to /memories/d/e/f, which is in it.", "memory_path"},
		{`{"command": "view", "path": "/memories/a\u0000"}`, "A path cannot have a zero byte in it.", "invalid_input"},
		{`{"command": "insert", "path": "/memories/a", "insert_text": "x"}`, "Invalid input for Memory:\n- /insert_line: the command insert needs it", "invalid_input"},
		{`{"command": "forget", "path": "/memories/a"}`, "Invalid input for Memory:\n- /command: value must be one of 'view', 'create', 'str_replace', 'insert', 'delete', 'rename'", "invalid_input"},
		{`{"command": "view", "path": "/memories/a", "view_range": [1]}`, "Invalid input for Memory:\n- /view_range: it has 1 numbers; send the first and the last line", "invalid_input"},
		{`{"command": "str_replace", "path": "/memories/a", "old_str": "1\n"}`, "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\ttwo two\n     2\t", ""},
	} {
		got, code := call(t, store, c.input)
		if text := got.Text + got.Error; code != c.code || c.text != "" && text != c.text {
			t.Errorf("%.100s\n got  %s %q\n want %s %q", c.input, code, text, c.code, c.text)
		}
	}
}

// TestQuota: the folder holds what it may, however that is divided, and a change that is refused has no effect.
func TestQuota(t *testing.T) {
	store := newStore(t)
	half := strings.Repeat("x", memstore.Limit/2)
	create := func(name, text string) string {
		_, code := call(t, store, fmt.Sprintf(`{"command": "create", "path": "/memories/%s", "file_text": %q}`, name, text))
		return code
	}
	if code := create("a", half); code != "" {
		t.Fatal(code)
	}
	if code := create("d/b", half); code != "memory_full" {
		t.Errorf("more than the limit: %q", code)
	}
	if got, _ := call(t, store, `{"command": "view", "path": "/memories/d"}`); got.Error == "" {
		t.Errorf("what was refused has left %q", got.Text)
	}
	if _, code := call(t, store, fmt.Sprintf(`{"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": %q}`, half)); code != "memory_full" {
		t.Errorf("an edit to more than the limit: %q", code)
	}
	if _, code := call(t, store, `{"command": "delete", "path": "/memories/a"}`); code != "" {
		t.Error(code)
	}
	if code := create("d/b", half); code != "" {
		t.Errorf("after a deletion: %q", code)
	}
}

// TestSessionsAtOnce: sessions that change the same files lose nothing, and read whole files.
func TestSessionsAtOnce(t *testing.T) {
	set := memstore.NewSet(t.TempDir())
	store := func() memstore.Store { return set.Of("somebody", "/work/app") }
	call(t, store(), `{"command": "create", "path": "/memories/log", "file_text": ""}`)
	var wait sync.WaitGroup
	const sessions, each = 4, 25
	for s := range sessions {
		wait.Go(func() {
			for i := range each {
				_, code := call(t, store(), fmt.Sprintf(`{"command": "insert", "path": "/memories/log", "insert_line": 0, "insert_text": "%d-%d"}`, s, i))
				if code != "" {
					t.Errorf("insert: %s", code)
				}
				if got, _ := call(t, store(), `{"command": "view", "path": "/memories/log"}`); !strings.Contains(got.Text, fmt.Sprintf("%d-%d", s, i)) {
					t.Errorf("%d-%d is not in %q", s, i, got.Text)
				}
			}
		})
	}
	wait.Wait()
	got, _ := call(t, store(), `{"command": "view", "path": "/memories/log"}`)
	if lines := strings.Count(got.Text, "\n"); lines != sessions*each+1 { // the head, and the empty end of the file
		t.Errorf("%d lines of %d", lines, sessions*each+1)
	}
}

// FuzzPaths: nothing outside of the folder changes or is read, whatever the path.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{"/memories/a", "/memories/../x", "/memories/link/secret", "/memories/./..", "/memories/a/../../..", "/memories/\x00", "//memories/a", "/memories/link/../../secret"} {
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		dir := t.TempDir()
		secret := filepath.Join(dir, "secret")
		store := memstore.NewSet(filepath.Join(dir, "memory")).Of("somebody", "/work/app")
		folder := filepath.Join(store.Dir(), "memories")
		for _, err := range []error{os.MkdirAll(folder, 0o700), os.WriteFile(secret, []byte("secret words"), 0o600), os.Symlink(dir, filepath.Join(folder, "link"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, fields := range []map[string]any{
			{"command": "create", "path": one, "file_text": "x"},
			{"command": "view", "path": one},
			{"command": "str_replace", "path": one, "old_str": "secret", "new_str": "y"},
			{"command": "insert", "path": other, "insert_line": 0, "insert_text": "z"},
			{"command": "rename", "old_path": one, "new_path": other},
			{"command": "delete", "path": other},
		} {
			input, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := call(t, store, string(input)); strings.Contains(got.Text, "secret words") {
				t.Errorf("%s has read what is outside", input)
			}
		}
		entries, err := os.ReadDir(dir)
		text, readErr := os.ReadFile(secret)
		if err != nil || readErr != nil || len(entries) != 2 || string(text) != "secret words" {
			t.Errorf("outside there is %v, and %q, %v %v", entries, text, err, readErr)
		}
	})
}
