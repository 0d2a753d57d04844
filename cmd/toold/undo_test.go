package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestUndoAsks: at a terminal the diff is shown in colour and asked about; without a yes nothing is put back.
func TestUndoAsks(t *testing.T) {
	environ, ws := home(t)
	file := filepath.Join(ws, "new.txt")
	if out, err := self(t, context.Background(), environ, ws, "call", "Write", writeCall(t, file, "one\x1b[2J\n"), "--mode", "acceptEdits").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, answer := range []string{"n\r", "\r", "yesterday\r"} {
		x := onlyTerminal(t, environ, ws, "undo")
		x.expect(`deleted file mode`)
		x.expect("\x1b\\[[0-9;]*m-one␛\\[2J")
		x.expect(`Put back 1 file\? \[y\]es, \[n\]o: `)
		x.typed(answer)
		x.expect(`nothing was put back`)
		x.ends(cli.ExitFailed)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("it was put back: %v", err)
	}
	x := onlyTerminal(t, environ, ws, "undo")
	x.expect(`Put back 1 file\?`)
	x.typed("y\r")
	x.expect(`To bring the changes back: toold undo restore-`)
	x.ends(cli.ExitOK)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestPaintDiff: elsewhere than on a terminal a diff stays as it is, to the byte.
func TestPaintDiff(t *testing.T) {
	diff := "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\r\n+two\r\n"
	files := []*tooldv1.FileChange{{Path: "/w/f", Diff: diff}}
	if got := terminal.DiffsText(files, terminal.Terminal{}); got != diff {
		t.Errorf("%q, want it unchanged", got)
	}
	if got := terminal.DiffsText(files, terminal.Terminal{Terminal: true, Ink: terminal.Colours()}); !strings.Contains(got, "two␍") || !strings.Contains(got, "\x1b[") {
		t.Errorf("%q, want colours and no carriage return", got)
	}
	text := terminal.StatText([]*tooldv1.FileChange{
		{Path: "/w/a", Kind: tooldv1.FileChangeKind_FILE_CHANGE_KIND_CHANGED, Added: 12, Removed: 3},
		{Path: "/w/b", Kind: tooldv1.FileChangeKind_FILE_CHANGE_KIND_MODE, Note: "Its mode has changed from 0644 to 0755."},
	}, terminal.Ink{})
	want := "   +12 -3     /w/a  changed.\n    +0 -0     /w/b  Its mode has changed from 0644 to 0755.\n2 files, 12 lines added, 3 removed\n"
	if text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
