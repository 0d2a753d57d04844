package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// An interrupted demo leaves nothing behind either: home checks for processes, and the folder is checked here.
func TestDemoInterrupted(t *testing.T) {
	environ, ws := home(t)
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	cmd := self(t, ctx, environ, ws, "demo")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := bufio.NewScanner(out)
	for shown.Scan() {
		if strings.Contains(shown.Text(), "| checking 1 of 3") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != cli.ExitSignal {
		t.Errorf("exit code %d, want %d", got, cli.ExitSignal)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(ws), "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// On a terminal the demo asks about one call, offers the rule for the like of it, and obeys.
func TestDemoAsks(t *testing.T) {
	environ, ws := home(t)
	x := onlyTerminal(t, environ, ws, "demo")
	x.expect(`\? Bash\(touch built\)`)
	x.expect(`Run it\?`)
	x.typed("a\n")
	x.expect(`allow \S*Bash\(touch built\)`)
	x.expect("Which, and where")
	x.typed("1\n")
	x.expect(`Bash\S* touch built\s+\S*ok`)
	x.expect("nothing is left behind")
	x.ends(cli.ExitOK)
}
