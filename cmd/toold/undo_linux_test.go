package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// undone runs a script that names nothing of what it changes, beside a write that is named, and takes both back. told is in
// its result, shown in the diff, and left is what the root holds then.
func undone(t *testing.T, h *house, told, shown, left string) {
	t.Helper()
	root := h.room(t, "undone", map[string]string{
		"a.txt": "one\n", "gone/b.txt": "two\n", ".gitignore": "out\n", "out/x": "built\n",
		"change.sh": "echo changed > a.txt; rm -r gone out; mkdir new; echo n > new/n\n",
	})
	h.inShell(t, root, "git init -q")
	c := h.attach(t, in(root, editing(madeRules)))
	c.calls(strings.NewReplacer("ROOT", root), []tempCall{{"Bash", "sh change.sh; echo literal > literal", told}})
	holds(t, "the diff", h.toold(t, root, cli.ExitOK, "diff"), shown)
	h.toold(t, root, cli.ExitOK, "undo", "--yes")
	data, err := os.ReadFile(filepath.Join(root, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for _, name := range []string{"gone/b.txt", "out/x", "new", "literal"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			got += name + " "
		}
	}
	if got != left {
		t.Errorf("undone, there is %q, want %q", got, left)
	}
}

// TestUndoUnnamed: what a program changes without naming it is undone, and what is not kept is named.
func TestUndoUnnamed(t *testing.T) {
	undone(t, ordinary(t), "1 not kept: ROOT/out (git ignores it, and the call does not name it)", "Git ignores it", "one\ngone/b.txt ")
}

func TestUndoUnnamedAsNobody(t *testing.T) { asNobody(t, "testdata/ordinary", "^TestUndoUnnamed$") }

// TestUndoWithoutNamespaces: what programs change is not reported there, and what the command names is undone as ever.
func TestUndoWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	undone(t, ordinary(t), "", "literal", "changed\nnew ")
}
