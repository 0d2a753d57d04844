package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// newGitWatch makes a repository with a script of git commands, and watches what a process that does not end leaves in it.
func newGitWatch(t *testing.T, script string) (root string, w *gitWatch) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		ownspace.Lacks(t, "install git")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for name, value := range map[string]string{"HOME": root, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": filepath.Join(root, "global")} {
		t.Setenv(name, value)
	}
	git(t, "git config --global user.name x; git config --global user.email x@example.com; git config --global protocol.file.allow always")
	git(t, script)
	var finder repo.Finder
	guard := finder.Guard([]string{root}, root, root)
	w = &gitWatch{
		watch: finder.Watch(guard, append(guard.Firm, guard.Loose...), repo.Allowed{}), open: func(string) bool { return false }, roots: []string{root},
	}
	w.began(new(sandbox.Process))
	return root, w
}

// waits returns how many paths will be examined again.
func (w *gitWatch) waits() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.recent)
}

// git runs a script of git commands in the working directory.
func git(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// set adds a setting to a file of settings that the process has opened.
func set(t *testing.T, path, setting string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(setting); err != nil {
		t.Fatal(err)
	}
}

// TestGitDelays: a file is examined again and again after it was opened, so that what is written into it later is found; and
// what git writes in several steps only once nothing has followed for a while.
func TestGitDelays(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		written time.Duration // after the file was opened
		found   time.Duration // the look that finds it
	}{
		"at once":             {"[core]\n\tfsmonitor = x\n", 0, 20 * time.Millisecond},
		"after half a second": {"[core]\n\tfsmonitor = x\n", 500 * time.Millisecond, 1220 * time.Millisecond},
		"after a minute":      {"[core]\n\tfsmonitor = x\n", time.Minute, 0},
		"in several steps":    {"[core]\n\tworktree = ../..\n", 0, 6220 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			root, w := newGitWatch(t, "git init -q .")
			config := filepath.Join(root, ".git/config")
			setting := func() bool {
				text, err := os.ReadFile(config)
				return err == nil && strings.Contains(string(text), strings.Fields(c.setting)[1])
			}
			synctest.Test(t, func(t *testing.T) {
				w.altered(sandbox.Alteration{Path: config})
				time.Sleep(c.written)
				set(t, config, c.setting)
				time.Sleep(c.found - c.written - time.Millisecond)
				if synctest.Wait(); !setting() {
					t.Errorf("it is gone before %v", c.found)
				}
				time.Sleep(2 * time.Millisecond)
				if synctest.Wait(); setting() != (c.found == 0) {
					t.Errorf("it is still there after %v: %t", c.found, setting())
				}
				time.Sleep(time.Hour)
				if n := w.waits(); n > 0 {
					t.Errorf("%d paths are examined an hour later", n)
				}
			})
			if found := len(w.end()) > 0; found != (c.found == 0) {
				t.Errorf("found at the end: %t", found)
			}
		})
	}
}

// TestGitLeavesAlone: what git makes in several steps stays, however long it is examined.
func TestGitLeavesAlone(t *testing.T) {
	root, w := newGitWatch(t, "git init -q main && git -C main commit -q --allow-empty -m 1 && git -C main commit -q --allow-empty -m 2")
	synctest.Test(t, func(t *testing.T) {
		git(t, `git clone -q main copy && git -C copy checkout -q -b topic --track origin/main && git -C copy remote add o x
			git -C main worktree add -q ../tree && git -C main worktree add -q -b y ../tree2 && git -C main worktree move ../tree2 ../tree3
			git -C copy submodule --quiet add "$PWD/main" nested/one && git -C copy commit -qm submodule
			git clone -q --recurse-submodules copy again && git -C again submodule --quiet deinit -f nested/one && git -C again submodule --quiet update --init
			cd copy && GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -i --keep-empty HEAD~1`)
		_ = filepath.WalkDir(root, func(path string, _ os.DirEntry, _ error) error {
			w.altered(sandbox.Alteration{Path: path})
			return nil
		})
		if n := w.waits(); n < 10 {
			t.Errorf("examined are only %d", n)
		}
		time.Sleep(time.Hour)
		if n := w.waits(); n > 0 || w.noticed > 0 {
			t.Errorf("%d moved aside, still examined are %d", w.noticed, n)
		}
	})
	if denials := w.end(); len(denials) > 0 {
		t.Errorf("moved aside at the end: %+v", denials)
	}
}
