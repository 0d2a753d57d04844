package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/workspace"
)

// become writes the file's content, whatever it held.
func become(content string) func(*workspace.Content) (workspace.Update, error) {
	return func(*workspace.Content) (workspace.Update, error) {
		return workspace.Update{Data: []byte(content)}, nil
	}
}

func change(t *testing.T, v *workspace.View, name, content string) workspace.Written {
	t.Helper()
	w, err := v.Change(t.Context(), name, become(content))
	if err != nil {
		t.Fatalf("Change(%q): %v", name, err)
	}
	return w
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %.40q (%v), want %.40q", path, got, err, want)
	}
}

// alone checks that no temporary file stayed behind.
func alone(t *testing.T, dir string, names int) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != names {
		t.Errorf("%s holds %v (%v), want %d names", dir, list, err, names)
	}
}

func TestChangeCreates(t *testing.T) {
	s := newSite(t)
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	w := change(t, s.view(), "a/b/c.txt", "hello")
	holds(t, s.root+"/a/b/c.txt", "hello")
	alone(t, s.root+"/a/b", 1)
	if !w.Created {
		t.Error("not reported as created")
	}
	if info, err := os.Stat(s.root + "/a/b/c.txt"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := s.view().Change(t.Context(), "a/b/c.txt/d", become("x")); code(err) != "not_a_directory" {
		t.Errorf("below a file: %v", err)
	}
}

func TestChangeKeepsModeAndAttributes(t *testing.T) {
	s := newSite(t)
	path := s.root + "/script"
	put(t, path, "old")
	if err := os.Chmod(path, 0o754|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	attributed := unix.Setxattr(path, "user.note", []byte("kept"), 0) == nil
	owned := os.Geteuid() == 0 && os.Chown(path, 1234, 4321) == nil && os.Chmod(path, 0o754|os.ModeSetuid) == nil
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	change(t, s.view(), "script", "new")
	holds(t, path, "new")
	alone(t, s.root, 1)
	after, err := os.Stat(path)
	if err != nil || after.Mode() != before.Mode() {
		t.Errorf("mode %v, was %v (%v)", after.Mode(), before.Mode(), err)
	}
	if os.SameFile(before, after) {
		t.Error("written in place: a crash could have left half of it")
	}
	if sys := after.Sys().(*syscall.Stat_t); owned && (sys.Uid != 1234 || sys.Gid != 4321) {
		t.Errorf("owner %d:%d", sys.Uid, sys.Gid)
	}
	value := make([]byte, 10)
	if n, err := unix.Getxattr(path, "user.note", value); attributed && (err != nil || string(value[:n]) != "kept") {
		t.Errorf("attribute %q, %v", value[:max(n, 0)], err)
	}
}

func TestChangeKeepsLinks(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/real/file", "old content")
	link(t, "real/file", s.root+"/soft")
	change(t, s.view(), "soft", "new")
	holds(t, s.root+"/real/file", "new")
	if target, err := os.Readlink(s.root + "/soft"); err != nil || target != "real/file" {
		t.Errorf("the link is now %q (%v)", target, err)
	}
	if err := os.Link(s.root+"/real/file", s.root+"/hard"); err != nil {
		t.Fatal(err)
	}
	v := s.view()
	if _, err := v.Look("hard"); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"longer than before", "", "x"} {
		change(t, v, "hard", content)
		holds(t, s.root+"/real/file", content)
		holds(t, s.root+"/hard", content)
	}
	c, err := s.view().Look("hard")
	if err != nil || c.Links != 2 || c.OtherNames() == "" {
		t.Errorf("links %d, %v", c.Links, err)
	}
	link(t, s.root+"/later", s.root+"/dangling")
	change(t, s.view(), "dangling", "made")
	holds(t, s.root+"/later", "made")
}

func TestContentDecidesWhatIsStale(t *testing.T) {
	s := newSite(t)
	path := s.root + "/file"
	put(t, path, "one")
	look := func(v *workspace.View) *workspace.Content {
		t.Helper()
		c, err := v.Look("file")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	v := s.view()
	c := look(v)
	if err := c.Current(); code(err) != "not_read" {
		t.Errorf("never read: %v", err)
	}
	v.Record(c.Path.Real, c.State)
	s.memory.Merge(v.ReadState())
	put(t, path, "two")
	put(t, path, "one") // another time, maybe another inode, but the same content
	if err := look(s.view()).Current(); err != nil {
		t.Errorf("equal content: %v", err)
	}
	put(t, path, "two")
	if err := look(s.view()).Current(); code(err) != "stale_file" {
		t.Errorf("another content of the same size: %v", err)
	}
	change(t, v, "file", "three")
	if err := look(v).Current(); err != nil {
		t.Errorf("after a change of its own: %v", err)
	}
}

// Another program writes while the new content is being worked out.
func TestChangeComparesAndSwaps(t *testing.T) {
	s := newSite(t)
	path := s.root + "/file"
	for name, meddle := range map[string]func(){
		"in place": func() { put(t, path, "theirs") },
		"replaced": func() {
			put(t, s.root+"/new", "theirs")
			if err := os.Rename(s.root+"/new", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		put(t, path, "before")
		_, err := s.view().Change(t.Context(), "file", func(*workspace.Content) (workspace.Update, error) {
			meddle()
			return workspace.Update{Data: []byte("ours")}, nil
		})
		if code(err) != "stale_file" {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, path, "theirs")
		alone(t, s.root, 1)
	}
	_, err := s.view().Change(t.Context(), "new", func(*workspace.Content) (workspace.Update, error) {
		put(t, s.root+"/new", "theirs")
		return workspace.Update{Data: []byte("ours")}, nil
	})
	if code(err) != "stale_file" {
		t.Errorf("created meanwhile: %v", err)
	}
	holds(t, s.root+"/new", "theirs")
	// A touch changes times only.
	_, err = s.view().Change(t.Context(), "file", func(c *workspace.Content) (workspace.Update, error) {
		return workspace.Update{Data: []byte("ours")}, os.Chtimes(path, c.State.Mtime.AddDate(1, 0, 0), c.State.Mtime.AddDate(1, 0, 0))
	})
	if err != nil {
		t.Errorf("touched: %v", err)
	}
	holds(t, path, "ours")
}

func TestConcurrentChangesLoseNothing(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/count", "0")
	if err := os.Link(s.root+"/count", s.root+"/other"); err != nil {
		t.Fatal(err)
	}
	link(t, "count", s.root+"/soft")
	var all sync.WaitGroup
	for _, name := range []string{"count", "other", "soft", "count"} {
		all.Go(func() {
			v := s.view()
			if _, err := v.Look(name); err != nil {
				t.Error(err)
			}
			for range 25 {
				_, err := v.Change(context.Background(), name, func(c *workspace.Content) (workspace.Update, error) {
					n, err := strconv.Atoi(string(c.Data))
					return workspace.Update{Data: strconv.AppendInt(nil, int64(n+1), 10)}, err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	holds(t, s.root+"/other", "100")
}

func TestChangeWaitsNoLongerThanItsContext(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/file", "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	_, err := s.view().Change(t.Context(), "file", func(*workspace.Content) (workspace.Update, error) {
		cancel(why)
		_, err := s.view().Change(ctx, "file", never(t))
		return workspace.Update{}, err
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	change(t, s.view(), "file", "y")
}

func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write read-only files")
	}
	s := newSite(t)
	put(t, s.root+"/file", "old")
	if err := os.Chmod(s.root+"/file", 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := s.view().Change(t.Context(), "file", never(t)); code(err) != "permission_denied" {
		t.Errorf("a read-only file: %v", err)
	}
	put(t, s.root+"/shut/file", "old")
	if err := os.Chmod(s.root+"/shut", 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.root+"/shut", 0o755)
	change(t, s.view(), "shut/file", "new")
	holds(t, s.root+"/shut/file", "new")
	if _, err := s.view().Change(t.Context(), "shut/more", become("x")); code(err) != "permission_denied" {
		t.Errorf("a directory that takes no file: %v", err)
	}
}

func TestSeenMovesWithAChange(t *testing.T) {
	s := newSite(t)
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("line %d\n", i+1))
	}
	old := strings.Join(lines, "")
	put(t, s.root+"/file", old)
	v := s.view()
	c, err := v.Look("file")
	if err != nil {
		t.Fatal(err)
	}
	read := c.State
	read.Lines, read.Seen = 100, []workspace.Range{{First: 1, Last: 10}, {First: 40, Last: 59}}
	v.Record(c.Path.Real, read)
	change(t, v, "file", strings.Replace(old, "line 50\n", "a\nb\nc\n", 1))
	got := v.ReadState()[c.Path.Real]
	if got.Lines != 102 || got.Unseen() != 70 || len(got.Seen) != 2 || got.Seen[1].Last != 61 {
		t.Errorf("lines %d, unseen %d, seen %v", got.Lines, got.Unseen(), got.Seen)
	}
}

func BenchmarkChange4KiB(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "file")
	content := [2][]byte{bytes.Repeat([]byte("a"), 4096), bytes.Repeat([]byte("b"), 4096)}
	b.Run("workspace", func(b *testing.B) {
		ws, err := workspace.Open([]string{dir}, workspace.NewLocks())
		if err != nil {
			b.Fatal(err)
		}
		all := []workspace.Grantee{{Real: ws.Roots()[0], Tree: true}}
		v := ws.View(workspace.Grant{Dir: dir, Writes: all}, workspace.NewReadState())
		for i := 0; b.Loop(); i++ {
			if _, err := v.Change(b.Context(), path, func(*workspace.Content) (workspace.Update, error) {
				return workspace.Update{Data: content[i%2]}, nil
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by hand", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			f, err := os.CreateTemp(dir, "x")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.Write(content[i%2]); err != nil {
				b.Fatal(err)
			}
			if err := errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), path)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestWhatADeadDaemonWasWriting: its temporary files go, and nothing that only looks like one.
func TestWhatADeadDaemonWasWriting(t *testing.T) {
	dir, notes := t.TempDir(), filepath.Join(t.TempDir(), "writing")
	if _, err := workspace.OpenLocks(notes); err != nil {
		t.Fatal(err)
	}
	for name, noted := range map[string]string{".toold-A.tmp": ".toold-A.tmp", "mine": ".toold-B.tmp", ".toold-C.tmp": "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(notes, noted)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := workspace.OpenLocks(notes); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{".toold-A.tmp": false, "mine": true, ".toold-C.tmp": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
	if left, err := os.ReadDir(notes); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are noted still", left, err)
	}
}
