package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/daemon"
)

// TestRealPath: a path leads where filepath.EvalSymlinks says as far as it exists, and the rest is added.
func TestRealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("a/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"a/up": "..", "to-b": at("a/b"), "twice": "to-b", "nowhere": at("not/there"), "loop": "loop"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"": "", "a": "a", "a/b": "a/b", "a/file": "a/file", "a/file/below": "a/file/below", "a/none/of/it": "a/none/of/it",
		"to-b": "a/b", "to-b/new/name": "a/b/new/name", "twice": "a/b", "twice/new": "a/b/new", "a/up/to-b/x": "a/b/x", "a/up/a/up": "",
		"nowhere": "nowhere", "nowhere/x": "nowhere/x", "loop/x": "loop/x",
		"to-b/../file": "a/file", "a/./b/": "a/b", "to-b//x": "a/b/x",
	} {
		if got := daemon.RealPath(dir + "/" + name); got != filepath.Clean(at(want)) {
			t.Errorf("%q leads to %s, want %s", name, got, at(want))
		}
	}
	if got := daemon.RealPath("/"); got != "/" {
		t.Errorf("/ leads to %s", got)
	}
}
