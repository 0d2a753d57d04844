package glob

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

func newEnv(t testing.TB, dir string, hidden ...string) *tools.Env {
	t.Helper()
	return tooltest.NewFiles(t, dir, hidden...).Env()
}

// call runs the tool as the pipeline would. Errors of all steps come back alike.
func call(ctx context.Context, env *tools.Env, in Input) (string, Found, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return "", Found{}, err
	}
	action, err := Tool().Parse(input)
	if err != nil {
		return "", Found{}, err
	}
	result, err := action.Run(ctx, env)
	if result.Content == nil {
		return "", Found{}, err
	}
	return result.Content[0].Text, result.Structured.(Found), err
}

// plant makes files, each a second older than the one before. "a -> b" is a link, a name that ends in "/" a directory.
func plant(t testing.TB, dir string, names []string) {
	t.Helper()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range names {
		name, target, link := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		at := began.Add(-time.Duration(i) * time.Second)
		switch {
		case link:
			err = os.Symlink(target, path)
		case !strings.HasSuffix(name, "/"):
			err = errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, at, at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A matchCase is one line of testdata/matches.jsonl: a tree, ignore files, and what a pattern finds in it, newest first.
type matchCase struct {
	Note    string            `json:"note"`
	Tree    []string          `json:"tree"`
	Ignore  map[string]string `json:"ignore"`
	Pattern string            `json:"pattern"`
	Path    string            `json:"path"`
	Want    []string          `json:"want"`
	Remarks string            `json:"remarks"` // what follows the paths, with $DIR
}

func TestMatches(t *testing.T) {
	f, err := os.Open("testdata/matches.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tree []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c matchCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if c.Tree == nil {
			c.Tree = tree // the one before
		}
		tree = c.Tree
		t.Run(c.Note, func(t *testing.T) { checkMatches(t, c) })
	}
}

func checkMatches(t *testing.T, c matchCase) {
	dir := t.TempDir()
	plant(t, dir, c.Tree)
	for name, content := range c.Ignore {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, found, err := call(context.Background(), newEnv(t, dir), Input{strings.ReplaceAll(c.Pattern, "$DIR", dir), strings.ReplaceAll(c.Path, "$DIR", dir)})
	if err != nil {
		text = "error " + fault.From(err).Error()
	}
	var got []string
	for _, path := range found.Files {
		got = append(got, strings.TrimPrefix(path, dir+"/"))
	}
	if diff := cmp.Diff(c.Want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: want (-), got (+):\n%s%s", c.Pattern, diff, text)
	}
	remarks := text
	if len(found.Files) > 0 {
		remarks = strings.TrimPrefix(text, strings.Join(found.Files, "\n"))
		remarks = strings.TrimLeft(remarks, "\n")
	}
	remarks = strings.ReplaceAll(remarks, dir, "$DIR")
	if c.Remarks != "" && c.Remarks != remarks {
		t.Errorf("%s: remarks\nwant %s\ngot  %s", c.Pattern, c.Remarks, remarks)
	}
}

func TestBadPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		position int
		part     string
	}{
		{"", 1, "empty"},
		{"src/[a-", 5, "never closed"},
		{"é/[]x]", 3, "empty set"},
		{"a[b/c]", 2, "before the next slash"},
		{"{a,{b}", 1, "never closed"},
		{"{a,b}}", 6, "closes nothing"},
		{`a\`, 2, "backslash"},
		{`a/\/b`, 3, "cannot be escaped"},
		{"a/../b", 3, "cannot be followed"},
		{"/tmp/x/../*.go", 8, "cannot be followed"},
		{"{1,2,3,4,5,6,7,8,9,0}{1,2,3,4,5,6,7,8,9,0}{1,2,3,4,5,6,7,8,9,0}{a,b}", 1, "more than 1000"},
		{strings.Repeat("a/", 64) + "b", 1, "more than 63"},
		{strings.Repeat("a", 5000), 1, "longer than 4096"},
		{"a\x00", 1, "NUL"},
	} {
		input, _ := json.Marshal(Input{Pattern: c.pattern})
		_, err := Tool().Parse(input)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "bad_pattern" || f.Field != "/pattern" || !strings.Contains(f.Message, c.part) {
			t.Errorf("%.40q: got %v; want bad_pattern at /pattern that says %q", c.pattern, err, c.part)
			continue
		}
		if f.Details != (BadPattern{Position: c.position}) {
			t.Errorf("%.40q: got %+v; want position %d", c.pattern, f.Details, c.position)
		}
	}
}

func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 2_345 {
		names = append(names, fmt.Sprintf("d%d/f%04d", i%7, i))
	}
	plant(t, dir, names)
	text, found, err := call(context.Background(), newEnv(t, dir), Input{Pattern: "**/f*"})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, 1_000)
	for i := range want {
		want[i] = filepath.Join(dir, names[i])
	}
	if diff := cmp.Diff(want, found.Files); diff != "" || found.Total != 2_345 {
		t.Errorf("total %d, want 2345; the thousand newest (-) and what came (+):\n%s", found.Total, diff)
	}
	if !strings.HasSuffix(text, "\n\nThese are the 1000 newest of 2345 files. Narrow the pattern or path to see others.") {
		t.Errorf("the text ends in %q", text[len(text)-200:])
	}
}

func TestPathMustBeADirectory(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, []string{"file.go"})
	for path, code := range map[string]string{"nowhere": "path_not_found", "file.go": "not_a_directory", "/etc": "undeclared"} {
		_, _, err := call(context.Background(), newEnv(t, dir), Input{"*", path})
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != code {
			t.Errorf("path %s: got %v, want %s", path, err, code)
		}
	}
}

func TestEndOfContext(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, []string{"a.go"})
	cause := errors.New("the user broke in")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	text, found, err := call(ctx, newEnv(t, dir), Input{Pattern: "*.go"})
	if !errors.Is(err, cause) || !found.Incomplete {
		t.Errorf("error %v, incomplete %v; want the cause and true", err, found.Incomplete)
	}
	if strings.Contains(text, "No file in") || !strings.Contains(text, "the user broke in") {
		t.Errorf("text %q", text)
	}
}

func TestEffectsNameTheTree(t *testing.T) {
	for in, want := range map[Input]string{
		{"*.go", ""}: ".", {"*.go", "src"}: "src", {"/srv/a b/**/*.go", ""}: "/srv/a b", {`/srv/\[x\]/y`, "/srv"}: "/srv/[x]", {"/*", ""}: "/", {"/srv/{a,b}/c", ""}: "/srv",
	} {
		if got := effects(in).Reads; !slices.Equal(got, []tools.Path{{Name: want, Tree: true}}) {
			t.Errorf("%+v: reads %+v, want the tree %s", in, got, want)
		}
	}
}

func TestUnreadableDirectoryIsNamed(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, []string{"shut/a.go"})
	for name, mode := range map[string]os.FileMode{"shut": 0, ".": 0o755, "..": 0o755} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	tooltest.Unprivileged(t)
	text, found, err := call(context.Background(), newEnv(t, dir), Input{Pattern: "**/*.go"})
	want := "No file that matches **/*.go was found in " + dir + " so far, but the search is incomplete.\nIncomplete: could not read shut: permission denied."
	if err != nil || text != want || !found.Incomplete {
		t.Errorf("error %v, incomplete %v, text\n%s\nwant\n%s", err, found.Incomplete, text, want)
	}
}

// The daemon's own directory lies in the root, and is not there for a tool.
func TestHiddenIsNotFound(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, []string{"a/seen.go", "a/state/token.go"})
	for path, pattern := range map[string]string{".": "**/*.go", "a": "state/*", dir: "a/state/token.go"} {
		_, found, err := call(context.Background(), newEnv(t, dir, dir+"/a/state"), Input{Pattern: pattern, Path: path})
		if want := strings.Count(pattern, "**"); err != nil || len(found.Files) != want {
			t.Errorf("%s in %s: %v, %v, want %d", pattern, path, found.Files, err, want)
		}
	}
}

// A pattern that names hidden files finds them, ignored ones too.
func TestNamedFilesAreFound(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, []string{".env", ".env.local", "sub/.env", ".config/x", "seen"})
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(".env*\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{
		".env*": {".env", ".env.local"}, "**/.env": {".env", "sub/.env"}, ".config/*": {".config/x"}, "*": {"seen"},
	} {
		text, found, err := call(context.Background(), newEnv(t, dir), Input{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, path := range found.Files {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s%s", pattern, diff, text)
		}
	}
}
