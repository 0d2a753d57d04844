// What undoing leaves alone.

package checkpoint_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/tools/fs/workspace"
)

// TestSpared: what cannot be kept, and what may be the only copy of what was not, stays; all else is put back.
func TestSpared(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 2<<20)
	for name, test := range map[string]struct {
		before map[string]string
		script string
		want   []string // that are not put back
		left   map[string]string
	}{
		"a credential that was moved to another name": {
			map[string]string{".env": "TOKEN=1", "f": "one"},
			"mv .env conf.txt; echo two > f",
			[]string{".env", "conf.txt"},
			map[string]string{"conf.txt": "TOKEN=1", "f": "one"},
		},
		"one that was copied there": {
			map[string]string{".env": "TOKEN=1"},
			"cp .env conf.txt; rm .env",
			[]string{".env", "conf.txt"},
			map[string]string{"conf.txt": "TOKEN=1"},
		},
		"one that was moved over a file": {
			map[string]string{".env": "TOKEN=1", "conf.txt": "old"},
			"mv .env conf.txt",
			[]string{".env", "conf.txt"},
			map[string]string{"conf.txt": "TOKEN=1"},
		},
		"one that was made": {
			map[string]string{"f": "one"},
			"echo TOKEN > .env; echo two > f",
			[]string{".env"},
			map[string]string{".env": "TOKEN\n", "f": "one"},
		},
		"a large file that was moved": {
			map[string]string{"large": large, "f": "one"},
			"mv large other; echo two > f",
			[]string{"large", "other"},
			map[string]string{"other": large, "f": "one"},
		},
		"a directory in the place of one": {
			map[string]string{"d/f": "one", "g": "one"},
			"rm -r d; echo TOKEN > .env; mv .env d.env; ln -s x d; rm d; mv d.env d; truncate -s 2M d; echo two > g",
			[]string{"d", "d/f"},
			map[string]string{"g": "one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			for name, content := range test.before {
				path := filepath.Join(d.root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{".env", "conf.txt", "d", "d/f", "f", "g", "large", "other"} {
				d.changes = append(d.changes, workspace.Change{Real: filepath.Join(d.root, name)})
			}
			d.shell(t, test.script)
			var missing []string
			for _, gap := range d.plan(t, 0).Missing {
				rel, _ := filepath.Rel(d.root, gap.Real)
				missing = append(missing, rel)
			}
			if !slices.Equal(missing, test.want) {
				t.Errorf("%q are left alone, want %q", missing, test.want)
			}
			d.undo(t, 0)
			for name, content := range test.left {
				if data, err := os.ReadFile(filepath.Join(d.root, name)); err != nil || string(data) != content {
					t.Errorf("%s has %d bytes (%v), want %d", name, len(data), err, len(content))
				}
			}
		})
	}
}

// TestSparedIfOlder: of a directory that was too large to be kept files were moved out. They stay.
func TestSparedIfOlder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.shell(t, "echo one > f; echo kept > g")
	now, err := d.view().Snapshot(workspace.Snapshotter{Keep: d.store.Hold().Keep}, d.root+"/f")
	if err != nil || !now.ID.Known() {
		t.Skipf("no births here (%v)", err)
	}
	row := d.history[0].Row
	row.Gaps = []workspace.Gap{{Real: d.root + "/big", Why: "it is large"}}
	for at, spared := range map[time.Time]bool{time.Unix(0, now.ID.Born): false, time.Unix(0, now.ID.Born).Add(time.Second): true} {
		row.Start = at
		var missing []string
		for _, gap := range d.plan(t, 0).Missing {
			missing = append(missing, filepath.Base(gap.Real))
		}
		if slices.Contains(missing, "f") != spared {
			t.Errorf("a call that began at %v: %q are left alone", at, missing)
		}
	}
}

// TestInterruptedRestore: what an interrupted restoring did not get done is not undone, and the next one does it.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.shell(t, "echo one > a; echo one > b")
	plan := d.plan(t, 0)
	hold := d.store.Hold()
	snapshotter := workspace.Snapshotter{Keep: hold.Keep, Entries: 2000, Bytes: 1 << 20}
	found, err := d.view().TakeSnapshots(context.Background(), snapshotter, nil)
	if err != nil {
		t.Fatal(err)
	}
	undoing := &checkpoint.Row{Key: "r", Turn: 9, Start: time.Unix(9, 0), Restored: &checkpoint.Restored{
		Session: "s", Calls: []checkpoint.Call{{Session: "s", Key: "0"}}, Wants: plan.Wants(),
	}}
	undoing.Begin(found)
	if err := os.Remove(d.root + "/a"); err != nil { // and then the power went
		t.Fatal(err)
	}
	left, err := d.view().TakeSnapshots(context.Background(), snapshotter, &found)
	if err != nil || !undoing.End(left, true) {
		t.Fatalf("nothing has changed (%v)", err)
	}
	d.history = append(d.history, checkpoint.Past{Session: "s", Row: undoing})
	if undone := d.history.Undone(); undone[0] {
		t.Error("it is taken to be undone")
	}
	rest := d.plan(t, 0)
	if len(rest.Steps) != 1 || rest.Steps[0].Real != d.root+"/b" || rest.Steps[0].Conflict != "" || len(rest.Takes) != 1 {
		t.Errorf("the rest is %+v", rest)
	}
}
