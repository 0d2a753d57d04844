package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// While a question stands, the calls beside it go on being shown, and the question stays where it is.
func TestLiveViewBesideAQuestion(t *testing.T) {
	environ, ws := home(t)
	put(t, filepath.Join(ws, "turn.jsonl"), bashLine(t, "a", "until test -e go; do sleep 0.02; done")+bashLine(t, "b", "touch made"))
	x := onTerminal(t, environ, ws, "run", "turn.jsonl")
	x.expect(`\? Bash\(touch made\)`)
	x.expect(`Run it\?`)
	x.expect(`\x1b7\x1b\[H[^\n]*until test[^\n]*running`)
	put(t, filepath.Join(ws, "go"), "go")
	x.expect(`\x1b7\x1b\[H[^\n]*until test[^\n]*ok[^\n]*\n[^\n]*touch made[^\n]*asking`)
	x.typed("y\n")
	x.ends(cli.ExitOK)
}

// However long a diff is, title, reason and keys fit on the screen with it; the rest is shown when it is asked for.
func TestLongQuestion(t *testing.T) {
	environ, ws := home(t)
	file := filepath.Join(ws, "long.txt")
	x := onTerminal(t, environ, ws, "call", "Write", writeCall(t, file, strings.Repeat("a line of the file\n", 500)))
	from := len(x.screen.String())
	x.expect(`Run it\?[^:]*\[d\]etails`)
	screen := x.screen.String()[from:]
	screen = screen[strings.LastIndex(screen, "? Write"):]
	holds(t, "the screen", screen, "No rule allows it", "more lines: d shows all", "Run it?")
	if rows := strings.Count(screen, "\n"); rows >= 29 { // of 30, and one is the prompt's
		t.Errorf("the question has %d rows:\n%s", rows, screen)
	}
	x.typed("d\n")
	x.expect(`(?s)(a line of the file.*){500}`)
	x.expect(`\? Write`)
	x.expect(`Run it\?`)
	x.typed("n\n")
	x.ends(cli.ExitFailed)
}
