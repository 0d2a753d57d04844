// Undoing as a whole, on real files: what commands do to a directory is put back, and brought back again.

package checkpoint_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/tools/fs/workspace"
)

// A desk is a root with a store beside it, on which calls are made and undone.
type desk struct {
	root    string
	ws      *workspace.Workspace
	store   *checkpoint.Store
	history checkpoint.History
	changes []workspace.Change // nil: all
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	top := memoryDir(t)
	root, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(root, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &desk{root: root}
	if d.ws, err = workspace.Open([]string{root}, workspace.NewLocks()); err != nil {
		t.Fatal(err)
	}
	if d.store, err = checkpoint.Open(filepath.Join(top, "store")); err != nil {
		t.Fatal(err)
	}
	return d
}

// memoryDir is a folder of the test's own in memory, if that can be: a disk would let few rounds through.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "toold-undo-")
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

func (d *desk) view() *workspace.View {
	grant := workspace.Grant{Dir: d.root, Writes: []workspace.Grantee{{Real: d.root, Tree: true}}, Changes: d.changes}
	if d.changes == nil {
		grant.Changes = []workspace.Change{{Real: d.root, Tree: true}}
	}
	return d.ws.View(grant, workspace.NewReadState())
}

// call runs what a call does between two looks.
func (d *desk) call(t fataler, act func()) {
	t.Helper()
	hold := d.store.Hold()
	defer hold.Release()
	snapshotter := workspace.Snapshotter{Keep: hold.Keep, Refuse: checkpoint.Credential, Entries: 2000, Bytes: 1 << 20}
	found, err := d.view().TakeSnapshots(context.Background(), snapshotter, nil)
	if err != nil {
		t.Fatalf("before: %v", err)
	}
	key := fmt.Sprint(len(d.history))
	row := &checkpoint.Row{Key: key, ID: "call-" + key, Turn: uint64(len(d.history)) + 1, Start: time.Unix(int64(len(d.history)), 0)}
	row.Begin(found)
	act()
	left, err := d.view().TakeSnapshots(context.Background(), snapshotter, &found)
	if err != nil {
		t.Fatalf("after: %v", err)
	}
	if row.End(left, false) {
		d.history = append(d.history, checkpoint.Past{Session: "s", Row: row})
	}
}

func (d *desk) plan(t fataler, from int, paths ...string) *checkpoint.Plan {
	t.Helper()
	plan, err := d.history.Plan(from, paths, func(real string) (workspace.Snapshot, error) {
		return d.view().Snapshot(workspace.Snapshotter{Refuse: checkpoint.Credential, Bytes: 1 << 20, Each: true}, real)
	}, d.store.Whole)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return plan
}

// undo puts everything back, as a call of its own.
func (d *desk) undo(t fataler, from int, paths ...string) []workspace.RestoreStep {
	t.Helper()
	plan := d.plan(t, from, paths...)
	puts := []workspace.Put{}
	for _, step := range plan.Steps {
		puts = append(puts, step.Put)
	}
	var told []workspace.RestoreStep
	d.call(t, func() {
		var err error
		if told, err = d.view().Restore(context.Background(), puts, d.store.Read); err != nil {
			t.Fatalf("put back: %v", err)
		}
	})
	return told
}

func (d *desk) shell(t fataler, script string) {
	t.Helper()
	d.call(t, func() {
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir = d.root
		_ = cmd.Run() // many fail, which is all right
	})
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// picture describes everything below a directory: kinds, modes, contents, targets, and which names are of one file.
func picture(t fataler, root string) map[string]string {
	t.Helper()
	told, first := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case info.IsDir():
			told[rel] = "directory " + info.Mode().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			told[rel] = "link to " + target
			return err
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			told[rel] = fmt.Sprintf("file %s %q", info.Mode(), data)
			if sys := info.Sys().(*syscall.Stat_t); sys.Nlink > 1 {
				if first[sys.Ino] == "" {
					first[sys.Ino] = rel
				}
				told[rel] += " is " + first[sys.Ino]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return told
}

// scripts draws what a command could be, about a handful of names so that they meet.
func scripts() *rapid.Generator[string] {
	file := rapid.SampledFrom([]string{"a", "b", "c", "d/a", "d/b", "d/e/a", "d/e/b", "f/a", "f/c"})
	dir := rapid.SampledFrom([]string{"d", "d/e", "f"})
	return rapid.Custom(func(t *rapid.T) string {
		word := func(g *rapid.Generator[string]) string { return g.Draw(t, "name") }
		text := rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "text")
		switch rapid.IntRange(0, 18).Draw(t, "command") {
		case 0, 1:
			return "echo " + text + " > " + word(file)
		case 2, 3:
			return "echo " + text + " >> " + word(file)
		case 4:
			return "rm " + word(file)
		case 5:
			return "mv " + word(file) + " " + word(file)
		case 6:
			return "mv " + word(file) + " " + word(dir)
		case 7:
			return "cp " + word(file) + " " + word(file)
		case 8:
			return "cp " + word(file) + " " + word(dir)
		case 9:
			return "ln -s " + word(file) + " " + word(file)
		case 10, 11:
			return "ln " + word(file) + " " + word(file)
		case 12:
			return "chmod " + rapid.SampledFrom([]string{"600", "644", "755", "4711"}).Draw(t, "mode") + " " + word(file)
		case 13, 14:
			return "mkdir -p " + word(dir)
		case 15:
			return "rm -r " + word(dir)
		case 16:
			return "sed -i s/./x/ " + word(file)
		case 17:
			return "mv " + word(dir) + " " + word(dir)
		default:
			return "cp -r " + word(dir) + " " + word(dir)
		}
	})
}

// TestUndoOfAnything: whatever a sequence of commands did, undoing all of it gives what was there, byte by byte, with
// modes, links and the names that files share; undoing that gives the end again; and so it does from any point on.
func TestUndoOfAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		setUp := exec.Command("bash", "-c", "mkdir -p d/e; echo one > a; echo two > b; ln b d/b; ln -s ../a d/a; echo run > d/e/a; chmod 750 d/e/a")
		setUp.Dir = d.root
		if out, err := setUp.CombinedOutput(); err != nil {
			rt.Fatalf("%v: %s", err, out)
		}
		pictures := []map[string]string{picture(rt, d.root)}
		var done []string
		for _, script := range rapid.SliceOfN(scripts(), 1, 25).Draw(rt, "scripts") {
			before := len(d.history)
			d.shell(rt, script)
			if len(d.history) > before {
				done = append(done, script)
				pictures = append(pictures, picture(rt, d.root))
			}
		}
		compare := func(what string, want map[string]string) {
			if diff := cmp.Diff(want, picture(rt, d.root)); diff != "" {
				rt.Fatalf("%s (-want +got):\n%s\nafter\n%s", what, diff, strings.Join(done, "\n"))
			}
		}
		end := len(d.history)
		if end == 0 {
			return
		}
		from := rapid.IntRange(0, end-1).Draw(rt, "from")
		d.undo(rt, from)
		compare(fmt.Sprintf("undone from %d", from), pictures[from])
		if len(d.history) > end {
			d.undo(rt, end)
			compare("brought back", pictures[end])
		}
		d.undo(rt, 0)
		compare("undone from the beginning", pictures[0])
	})
}

// TestUndoOfSharedFile: names of one file are names of one file again, also where a command has replaced the last of them by a
// file with the same content, which leaves no row.
func TestUndoOfSharedFile(t *testing.T) {
	t.Parallel()
	for _, scripts := range [][]string{
		{"echo >> b", "rm -r d", "sed -i s/./x/ b", "ln d/b f/a", "cp -r f d"},
		{"rm d/b", "cp -p b c; mv c b", "echo more >> b"},
		{"rm d/b", "cp -p b c; mv c b", "chmod 600 b"},
		{"ln b c", "rm d/b c", "cp -p b c; mv c b"},
		{"rm d/b", "cp -p b c; mv c b", "ln b d/b", "rm d/b"},
	} {
		for from := range scripts {
			undoneFrom(t, scripts, from)
		}
	}
}

// undoneFrom runs scripts, takes back those from one on, brings them back, and takes all back.
func undoneFrom(t *testing.T, scripts []string, from int) {
	t.Helper()
	d := newDesk(t)
	setUp := exec.Command("bash", "-c", "mkdir d; printf '\\n' > b; ln b d/b")
	setUp.Dir = d.root
	if out, err := setUp.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pictures := []map[string]string{picture(t, d.root)}
	for _, script := range scripts {
		before := len(d.history)
		if d.shell(t, script); len(d.history) > before {
			pictures = append(pictures, picture(t, d.root))
		}
	}
	end := len(d.history)
	from = min(from, end-1)
	for _, step := range []struct{ from, want int }{{from, from}, {end, end}, {0, 0}} {
		if step.from == len(d.history) {
			continue
		}
		d.undo(t, step.from)
		if diff := cmp.Diff(pictures[step.want], picture(t, d.root)); diff != "" {
			t.Errorf("undone from %d of %d (-want +got):\n%s\nafter\n%s", step.from, end, diff, strings.Join(scripts, "\n"))
		}
	}
}

// TestConflicts: what another program has done since is found, path by path, and nothing of it is touched by the plan's own
// account.
func TestConflicts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.shell(t, "mkdir d; for f in changed removed linked moded same d/new; do echo one > $f; done")
	d.shell(t, "for f in changed removed linked moded same d/new; do echo two > $f; done")
	outside := filepath.Join(t.TempDir(), "outside")
	for _, script := range []string{
		"echo three > changed", "rm removed", "rm linked; ln -s " + outside + " linked", "chmod 600 moded", "echo one > same",
	} {
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir = d.root
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	}
	plan := d.plan(t, 1)
	var conflicts []string
	for _, path := range plan.Conflicts() {
		rel, _ := filepath.Rel(d.root, path)
		conflicts = append(conflicts, rel)
	}
	if want := []string{"changed", "linked", "moded", "removed"}; !slices.Equal(conflicts, want) {
		t.Errorf("conflicts %q, want %q", conflicts, want)
	}
	d.undo(t, 1)
	for name, told := range picture(t, d.root) {
		if !strings.HasPrefix(told, "directory") && told != `file -rw-r--r-- "one\n"` {
			t.Errorf("%s is %s, want the first content", name, told)
		}
	}
	if _, err := os.Lstat(outside); !os.IsNotExist(err) {
		t.Errorf("something was written through a link: %v", err)
	}
}
