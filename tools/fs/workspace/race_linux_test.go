package workspace_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// An attacker who may write in a directory swaps files, directories and links in it, all the time, while files are read
// and written through several views. Nothing outside may be read, written, made or taken away; what is outside says so
// in every file.
func TestRacingAttacker(t *testing.T) {
	t.Parallel()
	for name, rooted := range map[string]bool{"in a root": true, "outside of the roots": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race(t, newRace(t, rooted))
		})
	}
}

// A racing is one attack under way. Everything happens below dir, which is held open: whoever swaps it for a link works
// on the directory itself, not on what the link leads to.
type racing struct {
	*site
	t             *testing.T
	all           []workspace.Grantee
	top, dir      int // descriptors of the root and of "dir"
	reads, writes atomic.Int64
	refusals      atomic.Int64
}

const (
	ours   = "inside"
	theirs = "OUTSIDE"
)

// outsiders are the files that lie outside.
var outsiders = []string{"file", "filx", "sub/deep", "new0/file"}

// memoryDir is a folder of the test's own in memory, if that can be: a disk would let few rounds through.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "toold-race-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func newRace(t *testing.T, rooted bool) *racing {
	t.Helper()
	r := &racing{site: newSiteIn(t, memoryDir(t)), t: t}
	put(t, r.root+"/dir/file", ours)
	put(t, r.root+"/dir/sub/deep", ours)
	put(t, r.root+"/other/file", ours)
	for _, name := range outsiders {
		put(t, r.outside+"/"+name, theirs)
		old := time.Now().AddDate(0, 0, -2) // so that any reading shows in the time of the last one
		if err := os.Chtimes(r.outside+"/"+name, old, old.AddDate(0, 0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	r.all = []workspace.Grantee{{Real: r.root, Tree: true}}
	for fd, path := range map[*int]string{&r.top: r.root, &r.dir: r.root + "/dir"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		*fd = int(f.Fd())
	}
	if rooted {
		// Nothing is even opened.
		tooltest.Unopened(t, r.outside, r.outside+"/sub", r.outside+"/new0")
		return r
	}
	elsewhere := filepath.Join(filepath.Dir(r.root), "elsewhere")
	mkdir(t, elsewhere)
	ws, err := workspace.Open([]string{elsewhere}, workspace.NewLocks())
	if err != nil {
		t.Fatal(err)
	}
	r.ws = ws
	return r
}

func race(t *testing.T, r *racing) {
	t.Helper()
	length := 3 * time.Second
	if testing.Short() {
		length = time.Second
	}
	before := r.canary()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	for _, work := range []func(round int){
		r.swapDirectories, r.swapFiles, r.turnLink,
		r.readOne, r.readTree, r.list, r.walk, r.ask, r.writeOne, r.writeNew,
	} {
		all.Go(func() {
			for round := 0; ctx.Err() == nil && !t.Failed(); round++ {
				work(round)
			}
		})
	}
	all.Wait()
	t.Logf("%d reads, %d writes, %d refused", r.reads.Load(), r.writes.Load(), r.refusals.Load())
	if r.reads.Load() == 0 || r.writes.Load() == 0 || r.refusals.Load() == 0 {
		t.Error("one side never got through: nothing was tried")
	}
	if diff := cmp.Diff(before, r.canary()); diff != "" {
		t.Errorf("outside, before (-) and after (+):\n%s", diff)
	}
	r.checkInside()
}

// canary describes everything outside that the kernel shows without opening it. What is made or taken away there
// shows in the times of its directory.
func (r *racing) canary() map[string]string {
	r.t.Helper()
	found := map[string]string{}
	for _, name := range append([]string{"", "sub", "new0"}, outsiders...) {
		var s unix.Stat_t
		if err := unix.Lstat(filepath.Join(r.outside, name), &s); err != nil {
			r.t.Fatal(err)
		}
		found[name] = fmt.Sprintf("%+v", s)
	}
	return found
}

// checkInside: what lies inside is whole and ours, and no half-made file was left.
func (r *racing) checkInside() {
	r.t.Helper()
	err := filepath.WalkDir(r.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if !strings.HasPrefix(string(data), ours) || strings.HasSuffix(path, ".tmp") {
			r.t.Errorf("%s holds %q", path, data)
		}
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}

// What the attacker does. Its system calls fail where somebody was faster; that is as good.

// swapDirectories exchanges the directory with a link to outside, absolute or not, or with another directory.
func (r *racing) swapDirectories(round int) {
	with := []string{r.outside, "../outside", "other"}[round%3]
	_ = unix.Symlinkat(with, r.top, "swap")
	_ = unix.Renameat2(r.top, "dir", r.top, "swap", unix.RENAME_EXCHANGE)
	_ = unix.Renameat2(r.top, "dir", r.top, "swap", unix.RENAME_EXCHANGE)
	_ = unix.Unlinkat(r.top, "swap", 0)
	if round%4 == 0 { // the slow way, with a moment in which there is nothing
		_ = unix.Renameat(r.top, "dir", r.top, "aside")
		_ = unix.Symlinkat(with, r.top, "dir")
		_ = unix.Unlinkat(r.top, "dir", 0)
		_ = unix.Renameat(r.top, "aside", r.top, "dir")
	}
}

// swapFiles exchanges, in the directory wherever that is, files and directories with links and with a pipe.
func (r *racing) swapFiles(round int) {
	_ = unix.Symlinkat([]string{r.outside + "/file", "../../outside/file"}[round%2], r.dir, "link")
	_ = unix.Symlinkat([]string{r.outside + "/sub", "../../outside/sub"}[round%2], r.dir, "away")
	_ = unix.Mknodat(r.dir, "pipe", unix.S_IFIFO|0o644, 0)
	for _, pair := range [][2]string{{"file", "link"}, {"sub", "away"}, {"file", "pipe"}} {
		_ = unix.Renameat2(r.dir, pair[0], r.dir, pair[1], unix.RENAME_EXCHANGE)
		_ = unix.Renameat2(r.dir, pair[0], r.dir, pair[1], unix.RENAME_EXCHANGE)
		_ = unix.Unlinkat(r.dir, pair[1], 0)
	}
	// What is made new is taken away, so that it can be made again, through a link next time.
	name := fmt.Sprintf("new%d", round%4)
	_ = unix.Unlinkat(r.dir, name+"/file", 0)
	_ = unix.Unlinkat(r.dir, name, unix.AT_REMOVEDIR)
	_ = unix.Symlinkat(r.outside+"/"+name, r.dir, name)
	_ = unix.Unlinkat(r.dir, name, 0)
}

// turnLink turns a link from the directory to outside and back.
func (r *racing) turnLink(round int) {
	_ = unix.Symlinkat([]string{"dir", r.outside, "../outside"}[round%3], r.top, "turning")
	_ = unix.Renameat(r.top, "turning", r.top, "hop")
}

// What the session does meanwhile.

func (r *racing) view(list []workspace.Grantee) *workspace.View {
	return r.ws.View(workspace.Grant{Dir: r.root, Reads: list, Writes: list}, r.memory)
}

// took notes what was read, or why nothing was.
func (r *racing) took(data []byte, err error) {
	switch {
	case err != nil && code(err) == "internal":
		r.t.Errorf("an error without words: %v", err)
	case err != nil:
		r.refusals.Add(1)
	case !strings.HasPrefix(string(data), ours):
		r.t.Errorf("read %q", data)
	default:
		r.reads.Add(1)
	}
}

func (r *racing) open(v *workspace.View, name string) {
	f, err := v.Open(name)
	var data []byte
	if err == nil {
		data, _ = io.ReadAll(f)
		f.Close()
	}
	r.took(data, err)
}

func (r *racing) look(v *workspace.View, name string) {
	c, err := v.Look(name)
	if err == nil && c.Path.Exists {
		r.took(c.Data, nil)
	}
}

// readOne may reach the one file alone.
func (r *racing) readOne(int) {
	v := r.view([]workspace.Grantee{{Real: r.root + "/dir/file"}})
	r.open(v, "dir/file")
	r.look(v, "hop/file")
}

func (r *racing) readTree(int) {
	v := r.view(r.all)
	r.open(v, "hop/file")
	r.open(v, "dir/sub/deep")
	r.look(v, "hop/sub/deep")
	tree, err := v.Tree("dir/sub")
	if err != nil {
		return
	}
	defer tree.Close()
	if f, err := tree.Root.Open("deep"); err == nil {
		data, _ := io.ReadAll(f)
		f.Close()
		r.took(data, nil)
	}
}

func (r *racing) list(int) {
	dir, err := r.view(r.all).OpenDir("dir")
	if err != nil {
		r.took(nil, err)
		return
	}
	defer dir.Close()
	err = dir.Each(func(name string, _ fs.FileMode) bool {
		if name == "filx" || dir.Size(name) == int64(len(theirs)) {
			r.t.Errorf("%s was listed", name)
		}
		return true
	})
	if err != nil {
		r.t.Error(err)
	}
}

func (r *racing) walk(int) {
	tree, err := r.view(r.all).Tree(".")
	if err != nil {
		r.took(nil, err)
		return
	}
	defer tree.Close()
	_, err = walk.Files(context.Background(), tree.Root, walk.Options{Dir: tree.Real, Visit: func(f *walk.File) {
		if strings.Contains(f.Path(), "filx") {
			r.t.Errorf("%s was met", f.Path())
		}
		if in, err := f.Open(); err == nil {
			data, _ := io.ReadAll(in)
			in.Close()
			if strings.Contains(string(data), theirs) {
				r.t.Errorf("%s: read %q", f.Path(), data)
			}
		}
	}})
	if err != nil {
		r.t.Error(err)
	}
}

// ask reads what does not exist: the answer names what is similar, but nothing outside.
func (r *racing) ask(int) {
	if _, err := r.view(r.all).Open("dir/filu"); err == nil || strings.Contains(err.Error(), "filx") {
		r.t.Errorf("names of files outside are told: %v", err)
	}
}

func (r *racing) change(v *workspace.View, name string, round int) {
	_, err := v.Change(context.Background(), name, func(c *workspace.Content) (workspace.Update, error) {
		if c.Path.Exists {
			r.took(c.Data, nil)
		}
		return workspace.Update{Data: fmt.Appendf(nil, "%s %d", ours, round)}, nil
	})
	switch code(err) {
	case "":
		r.writes.Add(1)
	case "internal":
		r.t.Errorf("an error without words: %v", err)
	default:
		r.refusals.Add(1)
	}
}

// writeOne may reach the one file alone.
func (r *racing) writeOne(round int) {
	v := r.view([]workspace.Grantee{{Real: r.root + "/dir/file"}})
	r.change(v, "dir/file", round)
	r.change(v, "hop/file", round)
}

func (r *racing) writeNew(round int) {
	v := r.view(r.all)
	r.change(v, fmt.Sprintf("dir/new%d/file", round%4), round)
	r.change(v, fmt.Sprintf("hop/fresh%d", round%4), round)
	r.change(v, "hop/sub/deep", round)
}
