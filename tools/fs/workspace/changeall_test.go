package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// Another program gets in the way of the last of several changes, in different ways: all files are as before, also those
// that were changed or removed already, and nothing is left beside them.
func TestChangeAllPutsBack(t *testing.T) {
	names := []string{"changed", "linked", "new/deep/file", "gone", "last", "made"}
	for _, c := range []struct {
		name  string
		upset func(root string) error // just before the changes are made
		code  string
	}{
		{"the last file is changed", func(root string) error { return os.WriteFile(root+"/last", []byte("theirs\n"), 0o600) }, "stale_file"},
		{"the last file is removed", func(root string) error { return os.Remove(root + "/last") }, "stale_file"},
		{"the last file is made", func(root string) error { return os.WriteFile(root+"/made", []byte("theirs\n"), 0o600) }, "stale_file"},
		{"a removed file is changed", func(root string) error { return os.WriteFile(root+"/gone", []byte("theirs\n"), 0o600) }, "stale_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := tooltest.NewFiles(t, t.TempDir())
			for _, name := range []string{"changed", "linked", "gone", "last"} {
				f.Put(name, "old "+name+"\n")
			}
			if err := os.Link(f.Root+"/linked", f.Root+"/other"); err != nil {
				t.Fatal(err)
			}
			v := f.View()
			for _, name := range names {
				if _, err := v.Look(name); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.Stat(f.Root + "/changed")
			if err != nil {
				t.Fatal(err)
			}
			var now map[string]string
			_, err = v.ChangeAll(t.Context(), names, func(old []*workspace.Content) ([]workspace.Update, error) {
				if err := c.upset(f.Root); err != nil {
					t.Error(err)
				}
				now = contents(t, f.Root)
				next := make([]workspace.Update, len(old))
				for i, name := range names {
					next[i] = workspace.Update{Data: []byte("new " + name + "\n"), Remove: name == "gone" || name == "last"}
				}
				return next, nil
			})
			if tooltest.Code(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			for name, want := range now {
				if got, _ := os.ReadFile(filepath.Join(f.Root, name)); string(got) != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if got := contents(t, f.Root); len(got) != len(now) {
				t.Errorf("there are %q, want %q", got, now)
			}
			if after, err := os.Stat(f.Root + "/changed"); err != nil || !os.SameFile(before, after) {
				t.Errorf("the file that was put back is another one: %v", err)
			}
			if len(v.ReadState()) != 0 {
				t.Errorf("the read state is %v", v.ReadState())
			}
		})
	}
}

// contents returns the files below root, and the empty directories.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel := strings.TrimPrefix(path, root+"/")
		if entry.IsDir() {
			found[rel] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		found[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// An error of how changes nothing, and is returned as it is.
func TestChangeAllRefused(t *testing.T) {
	f := tooltest.NewFiles(t, t.TempDir())
	f.Put("a", "x\n")
	enough := errors.New("enough")
	_, err := f.View().ChangeAll(t.Context(), []string{"a", "n/b"}, func([]*workspace.Content) ([]workspace.Update, error) { return nil, enough })
	if !errors.Is(err, enough) || len(contents(t, f.Root)) != 1 {
		t.Errorf("%v, %q", err, contents(t, f.Root))
	}
}

// Changes of the same files in any order of their names wait for each other, and none is lost.
func TestChangeAllAtOnce(t *testing.T) {
	f := tooltest.NewFiles(t, t.TempDir())
	f.Put("a", "")
	f.Put("b", "")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			names := [][]string{{"a", "b"}, {"b", "a"}, {"a"}, {"b"}}[i%4]
			for range 10 {
				_, err := f.View().ChangeAll(t.Context(), names, func(old []*workspace.Content) ([]workspace.Update, error) {
					next := make([]workspace.Update, len(old))
					for i, c := range old {
						next[i].Data = append(append([]byte{}, c.Data...), 'x')
					}
					return next, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for name, text := range contents(t, f.Root) {
		if len(text) != 60 {
			t.Errorf("%s has %d characters, want 60", name, len(text))
		}
	}
}
