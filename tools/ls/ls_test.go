package ls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/tooltest"
)

func newEnv(t *testing.T, dir string, hidden ...string) *tools.Env {
	t.Helper()
	return tooltest.NewFiles(t, dir, hidden...).Env()
}

func call(ctx context.Context, env *tools.Env, input string) (string, Listing, error) {
	action, err := Tool().Parse(json.RawMessage(input))
	if err != nil {
		return "", Listing{}, err
	}
	result, err := action.Run(ctx, env)
	if result.Content == nil {
		return "", Listing{}, err
	}
	return result.Content[0].Text, result.Structured.(Listing), err
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestListings(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(in("zdir"), 0o755), os.Mkdir(in(".git"), 0o755), os.Mkdir(in("empty"), 0o755),
		os.WriteFile(in("b.go"), []byte("12345"), 0o644), os.WriteFile(in("one.o"), []byte("1"), 0o644), os.WriteFile(in(".env"), nil, 0o644),
		os.WriteFile(in("line\nbreak"), nil, 0o644), os.WriteFile(in("#x"), nil, 0o644), os.WriteFile(in("zdir/inner.o"), nil, 0o644),
		os.Symlink("zdir", in("to-dir")), os.Symlink("/no/where", in("dangling")), syscall.Mkfifo(in("fifo"), 0o644))
	for _, c := range []struct{ name, input, want string }{
		{"all", `{"path": "."}`, `$DIR/
  .git/
  empty/
  zdir/
  #x (0 bytes)
  .env (0 bytes)
  b.go (5 bytes)
  dangling -> /no/where
  fifo (neither file, directory nor link)
  base64:bGluZQpicmVhaw== (0 bytes)
  one.o (1 byte)
  to-dir -> zdir`},
		{"ignore", `{"path": "$DIR", "ignore": [".*", "*.{o,go}", "#x", "fifo", "/zdir", "line*"]}`, `$DIR/
  empty/
  dangling -> /no/where
  to-dir -> zdir
(8 left out by ignore)`},
		{"a directory by a link", `{"path": "to-dir/"}`, "$DIR/to-dir/\n  inner.o (0 bytes)"},
		{"nothing", `{"path": "empty"}`, "$DIR/empty/\n(empty)"},
		{"everything ignored", `{"path": "zdir", "ignore": ["*"]}`, "$DIR/zdir/\n(empty)\n(1 left out by ignore)"},
		{"a file", `{"path": "b.go"}`, "error not_a_directory: $DIR/b.go is not a directory. Open it with Read, or list $DIR."},
		{
			"too many braces", `{"path": ".", "ignore": ["` + strings.Repeat("{1,2,3,4,5,6,7,8,9,0}", 4) + `"]}`,
			"error bad_pattern: The braces of \"" + strings.Repeat("{1,2,3,4,5,6,7,8,9,0}", 4) + "\" stand for more than 1000 globs. Use fewer.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, _, err := call(context.Background(), newEnv(t, dir), strings.ReplaceAll(c.input, "$DIR", dir))
			if err != nil {
				text = "error " + fault.From(err).Error()
			}
			if diff := cmp.Diff(c.want, strings.ReplaceAll(text, dir, "$DIR")); diff != "" {
				t.Errorf("%s: want (-), got (+):\n%s", c.input, diff)
			}
		})
	}
	_, _, err := call(context.Background(), newEnv(t, dir), `{"path": "nowhere"}`)
	if f := fault.From(err); f.Code != "path_not_found" {
		t.Errorf("a path that does not exist: %v", err)
	}
}

func TestManyEntries(t *testing.T) {
	dir := t.TempDir()
	for i := range 5_001 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", i)), nil, 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "zz"), 0o755))
	text, listing, err := call(context.Background(), newEnv(t, dir), `{"path": "."}`)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(text, "\n(4002 more entries of 5002; use Glob to find files by name)") || listing.Total != 5_002 {
		t.Errorf("total %d, text ends in %q", listing.Total, text[len(text)-100:])
	}
	if n := len(listing.Entries); n != 1_000 || listing.Entries[0].Name != "zz" || listing.Entries[999].Name != "f0998" {
		t.Errorf("%d entries, from %+v to %+v; want 1000, from zz to f0998", n, listing.Entries[0], listing.Entries[n-1])
	}
}

func TestEndOfContext(t *testing.T) {
	cause := errors.New("the user broke in")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	text, listing, err := call(ctx, newEnv(t, t.TempDir()), `{"path": "."}`)
	if !errors.Is(err, cause) || !listing.Incomplete || strings.Contains(text, "empty") {
		t.Errorf("error %v, incomplete %v, text %q; want the cause, true, and nothing said of an empty directory", err, listing.Incomplete, text)
	}
}

// The daemon's own directory lies in the root, and is not there for a tool.
func TestHiddenIsNotListed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "state"), 0o755), os.Mkdir(filepath.Join(dir, "seen"), 0o755))
	env := newEnv(t, dir, dir+"/state")
	text, listing, err := call(context.Background(), env, `{"path": "."}`)
	if err != nil || listing.Total != 1 || len(listing.Entries) != 1 || listing.Entries[0].Name != "seen" {
		t.Errorf("%v:\n%s", err, text)
	}
	if _, _, err := call(context.Background(), env, `{"path": "state"}`); fault.From(err).Code != "hidden_path" {
		t.Errorf("the directory itself: %v", err)
	}
}

// What a rule denies reading is not listed, nor a link to it, and is counted.
func TestDeniedIsNotListed(t *testing.T) {
	files := tooltest.NewFiles(t, t.TempDir())
	for _, name := range []string{"seen", ".env", "skipped", "secret/a", "secret/b", "only/one"} {
		files.Put(name, "x")
	}
	must(t, os.Symlink(".env", filepath.Join(files.Root, "to-env")), os.Symlink("seen", filepath.Join(files.Root, "to-seen")))
	files.Bar(".env", "secret", "only/one")
	tooltest.Unopened(t, files.Root+"/.env", files.Root+"/secret")
	for _, c := range []struct{ input, want string }{
		{`{"path": ".", "ignore": ["skipped"]}`, "$DIR/\n  only/\n  seen (1 byte)\n  to-seen -> seen\n(1 left out by ignore)\n(3 left out because a rule denies reading them)"},
		{`{"path": "only"}`, "$DIR/only/\n(empty)\n(1 left out because a rule denies reading it)"},
	} {
		text, listing, err := call(t.Context(), files.Env(), c.input)
		if want := strings.ReplaceAll(c.want, "$DIR", files.Root); err != nil || text != want || listing.Denied == 0 {
			t.Errorf("%s: %v, %d denied; want\n%s\ngot\n%s", c.input, err, listing.Denied, want, text)
		}
	}
	for _, path := range []string{"secret", ".env"} {
		_, _, err := call(t.Context(), files.Env(), `{"path": "`+path+`"}`)
		if tooltest.Code(err) != "rule_denied" || !strings.Contains(err.Error(), tooltest.Rule) {
			t.Errorf("%s: %v, want rule_denied with the rule", path, err)
		}
	}
}

// TestRememberedEntries lists a directory whose entries an index knows after they have changed.
func TestRememberedEntries(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	set := index.NewSet(1 << 20)
	t.Cleanup(func() { _ = set.Close() })
	set.Settle = 20 * time.Millisecond
	env := newEnv(t, dir)
	env.Index = set.Of("one")
	list := func() string {
		text, _, err := call(context.Background(), env, `{"path": "."}`)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(text, dir, "$DIR")
	}
	must(t, os.WriteFile(in("b"), []byte("12345"), 0o644), os.Mkdir(in("d"), 0o755), os.Symlink("b", in("a")))
	for until := time.Now().Add(time.Second); set.Held().Directories == 0 && time.Now().Before(until); { // until it has settled, if the file system tells of changes
		list()
	}
	for _, step := range []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, "\n  d/\n  a -> b\n  b (5 bytes)"},
		{func() error { return os.WriteFile(in("b"), []byte("123"), 0o644) }, "\n  d/\n  a -> b\n  b (3 bytes)"},
		{func() error { return os.Mkdir(in("c"), 0o755) }, "\n  c/\n  d/\n  a -> b\n  b (3 bytes)"},
		{func() error { return errors.Join(os.Remove(in("d")), os.WriteFile(in("d"), nil, 0o644)) }, "\n  c/\n  a -> b\n  b (3 bytes)\n  d (0 bytes)"},
		{func() error { return os.Rename(in("b"), in("e")) }, "\n  c/\n  a -> b\n  d (0 bytes)\n  e (3 bytes)"},
	} {
		must(t, step.change())
		for range 2 {
			if diff := cmp.Diff("$DIR/"+step.want, list()); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		}
	}
}
