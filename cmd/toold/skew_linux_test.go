package main

// Programs of two versions: each goes on with what the other has left, and talks to the other's daemon.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// firstUpgradable is the oldest commit whose daemon this one can go on with, and which can go on with this one.
const firstUpgradable = "6b193d658fd482113f5c36bc3e0d24e98eae459b"

// earlier builds the program of a commit.
func earlier(t *testing.T, commit string) string {
	t.Helper()
	if exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
		t.Skip("clone the whole history: the commit " + commit + " is not in this one")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "toold")
	build := exec.Command("sh", "-ec", `git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"; cd "$2"; go build -buildvcs=false -ldflags=-X=main.version=v0.0.1 -o "$3" ./cmd/toold`, "sh", commit, dir, path)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestSkew: upgrades between this program and an earlier one, both ways, in the middle of a turn, and clients of each at the other's daemon.
func TestSkew(t *testing.T) {
	if os.Getenv("TOOLD_ALL") == "" {
		t.Skip(`"make world" tries this`)
	}
	t.Parallel()
	old := earlier(t, firstUpgradable)
	u := newUpgradable(t)
	root := u.room(t, "skew", nil)
	c := u.attach(t, in(root, nil))
	c.run("zero", "export KEPT=zero; mkdir sub; cd sub")
	client, err := exec.LookPath("toold")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []struct{ file, was, is, log string }{
		{old, "dev", "v0.0.1", "v0.0.1"},
		{tested(t), "v0.0.1", "dev", "v0.0.1\ndev"},
	} {
		ask, after := "asks"+version.is, "after"+version.is
		c.bash(ask, "echo "+version.is+" >> log")
		q := c.question(ask)
		u.install(t, version.file)
		holds(t, "what is said", u.upgrade(t, cli.ExitOK), version.was+" has become "+version.is)
		c = u.again(c, in(root, nil))
		c.answer(answer(q, yes))
		c.bash(after, "echo $KEPT; pwd; cat log")
		if got := strings.TrimSpace(textIn(c.finish(after, no))); got != "zero\n"+root+"/sub\n"+version.log {
			t.Errorf("%s: the call has printed %q", version.is, got)
		}
		for _, program := range []string{old, client} {
			read := exec.Command(program, "call", "Read", "file_path="+filepath.Join(root, "sub", "log"), "--root", root)
			read.Env, read.Dir = u.environ, root
			out, err := read.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "v0.0.1") {
				t.Errorf("%s at the daemon %s: %v\n%s", program, version.is, err, out)
			}
		}
	}
}
