package grep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	os.Exit(tooltest.Main(m))
}

// newEnv makes what a call gets: a workspace with the one root dir. There is no Runner yet.
func newEnv(t testing.TB, dir string, hidden ...string) *tools.Env {
	t.Helper()
	return tooltest.NewFiles(t, dir, hidden...).Env()
}

// own is Grep without rg.
func own() tools.Tool { return newTool(engines{}) }

// onlyRipgrep is Grep that leaves everything to rg, and the Runner that it needs.
func onlyRipgrep(t testing.TB) (tools.Tool, *sandbox.Runner) {
	t.Helper()
	rg := findRipgrep()
	if rg == "" {
		t.Skip("rg is not on PATH; the engines cannot be compared")
	}
	runner, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Close(); err != nil {
			t.Errorf("closing the runner: %v", err)
		}
	})
	return newTool(engines{rg, func(*expression) bool { return false }}), runner
}

// call runs the tool as the pipeline would. Errors of all steps come back alike.
func call(ctx context.Context, tool tools.Tool, env *tools.Env, input string) (string, Found, error) {
	action, err := tool.Parse(json.RawMessage(input))
	if err != nil {
		return "", Found{}, err
	}
	result, err := action.Run(ctx, env)
	if result.Content == nil {
		return "", Found{}, err
	}
	found, _ := result.Structured.(Found)
	return result.Content[0].Text, found, err
}

// plant makes the files of an archive in dir, each a second newer than the one before. "\0" in a file is a NUL byte,
// "\r" a carriage return, "\xNN" a byte; a last line of "\c" takes the line break before it away.
func plant(t testing.TB, dir string, files []section) {
	t.Helper()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(f.data, "-> "); ok {
			if err := os.Symlink(strings.TrimSpace(target), path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, unescape([]byte(f.data)), 0o644); err != nil {
			t.Fatal(err)
		}
		at := began.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

var escapes = regexp.MustCompile(`\n?\\(0|r|c\n|x[0-9a-f]{2})`)

func unescape(data []byte) []byte {
	return escapes.ReplaceAllFunc(data, func(m []byte) []byte {
		text := strings.TrimPrefix(string(m), "\n")
		before := strings.TrimSuffix(string(m), text)
		var b byte
		switch text[1] {
		case '0':
		case 'r':
			b = '\r'
		case 'c':
			return nil
		default:
			fmt.Sscanf(text[2:], "%x", &b)
		}
		return append([]byte(before), b)
	})
}

// A section of an archive: "-- name --" on a line, and what follows.
type section struct{ name, data string }

var heading = regexp.MustCompile(`(?m)^-- (.+) --\n`)

func readArchive(path string) ([]section, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	marks := heading.FindAllSubmatchIndex(text, -1)
	sections := make([]section, len(marks))
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		sections[i] = section{string(text[m[2]:m[3]]), string(text[m[1]:end])}
	}
	return sections, nil
}

// TestCases runs the archives of testdata. The comment says what it is about; files named "call N" hold an input, "want
// N" what comes of it with $DIR for the directory, everything else is the tree. Each runs on both engines.
func TestCases(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in testdata: %v", err)
	}
	for _, path := range archives {
		archive, err := readArchive(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name+"/own", func(t *testing.T) { runArchive(t, archive, own(), nil) })
		t.Run(name+"/rg", func(t *testing.T) {
			tool, runner := onlyRipgrep(t)
			runArchive(t, archive, tool, runner)
		})
	}
}

func runArchive(t *testing.T, archive []section, tool tools.Tool, runner *sandbox.Runner) {
	dir := t.TempDir()
	var tree, script []section
	for _, f := range archive {
		if strings.HasPrefix(f.name, "call ") || strings.HasPrefix(f.name, "want ") {
			script = append(script, f)
		} else {
			tree = append(tree, f)
		}
	}
	plant(t, dir, tree)
	env := newEnv(t, dir)
	env.Box = &sandbox.Box{Runner: runner}
	for i := 0; i+1 < len(script); i += 2 {
		input := strings.ReplaceAll(script[i].data, "$DIR", dir)
		text, _, err := call(context.Background(), tool, env, input)
		if err != nil {
			text = "error " + fault.From(err).Error()
		}
		got := strings.TrimRight(strings.ReplaceAll(text, dir, "$DIR"), "\n") + "\n"
		if diff := cmp.Diff(script[i+1].data, got); diff != "" {
			t.Errorf("%s: %s\nwant (-), got (+):\n%s", script[i].name, strings.TrimSpace(input), diff)
		}
	}
}

// The daemon's own directory lies in the root, and is not there for a tool.
func TestHiddenIsNotSearched(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		files := tooltest.NewFiles(t, dir)
		files.Put("a/state/token", "secret")
		files.Put("a/seen", "no secret")
		env.Files = tooltest.NewFiles(t, dir, filepath.Join(dir, "a/state")).View()
		for _, path := range []string{".", "a"} {
			text, found, err := call(context.Background(), tool, env, `{"pattern": "secret", "path": "`+path+`"}`)
			if err != nil || !slices.Equal(found.Files, []string{filepath.Join(dir, "a/seen")}) {
				t.Errorf("%v:\n%s", err, text)
			}
		}
	})
}
