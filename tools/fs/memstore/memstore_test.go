package memstore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/memstore"
)

func write(t *testing.T, s memstore.Store, name, text string) {
	t.Helper()
	if err := s.Change(func(f *memstore.Files) error { return f.Write(name, []byte(text)) }); err != nil {
		t.Fatalf("writing %s: %v", name, err)
	}
}

func read(s memstore.Store, name string) (text string, err error) {
	err = s.Read(func(f *memstore.Files) error {
		raw, err := f.ReadFile(name)
		text = string(raw)
		return err
	})
	return text, err
}

// TestFolders: each principal has its own in each workspace, which nobody else can open.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	set := memstore.NewSet(filepath.Join(dir, "memory"))
	write(t, set.Of("a", "/work/app"), "/memories/x", "of a")
	for _, other := range []memstore.Store{set.Of("b", "/work/app"), set.Of("a", "/work/other"), set.Of("a/work", "/app"), {}} {
		if text, err := read(other, "/memories/x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("another folder has %q, %v", text, err)
		}
	}
	if name := filepath.Base(set.Of("a", "/work/..my app!").Dir()); !strings.HasPrefix(name, "my_app_-") {
		t.Errorf("the name %q", name)
	}
	err := filepath.WalkDir(filepath.Join(dir, "memory"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCrash: what a daemon has left that was killed in the middle of a change is not seen, and goes with the next change.
func TestCrash(t *testing.T) {
	s := memstore.NewSet(t.TempDir()).Of("a", "/work/app")
	write(t, s, "/memories/x", "old")
	leftover := filepath.Join(s.Dir(), "new-HALF")
	if err := os.WriteFile(leftover, []byte(strings.Repeat("x", memstore.Limit)), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := read(s, "/memories/x"); text != "old" || err != nil {
		t.Errorf("after the crash it has %q, %v", text, err)
	}
	write(t, s, "/memories/x", "new")
	if _, err := os.Lstat(leftover); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	if text, err := read(s, "/memories/x"); text != "new" || err != nil {
		t.Errorf("after the next change it has %q, %v", text, err)
	}
}

// TestLinks: a symbolic link is not followed, wherever it leads and whatever is asked for.
func TestLinks(t *testing.T) {
	s := memstore.NewSet(t.TempDir()).Of("a", "/work/app")
	write(t, s, "/memories/d/x", "x")
	for name, target := range map[string]string{"in": "d", "out": t.TempDir(), "none": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(s.Dir(), "memories", name)); err != nil {
			t.Fatal(err)
		}
		for what, do := range map[string]func(f *memstore.Files) error{
			"read":   func(f *memstore.Files) error { _, err := f.ReadFile("/memories/" + name + "/x"); return err },
			"list":   func(f *memstore.Files) error { _, err := f.ReadDir("/memories/" + name); return err },
			"write":  func(f *memstore.Files) error { return f.Write("/memories/"+name+"/y", nil) },
			"remove": func(f *memstore.Files) error { return f.Remove("/memories/" + name + "/x") },
			"from":   func(f *memstore.Files) error { return f.Rename("/memories/"+name+"/x", "/memories/z") },
			"to":     func(f *memstore.Files) error { return f.Rename("/memories/d/x", "/memories/"+name+"/z") },
		} {
			if err := s.Change(do); !errors.Is(err, memstore.ErrLink) {
				t.Errorf("%s through the link %s: %v", what, name, err)
			}
		}
	}
}
