package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// A daemon that is killed in the middle of a turn costs the client nothing but the call: a new daemon is started, the
// session is taken up again, and every tool use has its one result.
func TestDaemonKilledInTheMiddle(t *testing.T) {
	for name, flags := range map[string][]string{"named session": {"--session", "kept"}, "session of its own": nil} {
		t.Run(name, func(t *testing.T) {
			environ, ws := home(t)
			call := append([]string{"call", "Write", writeCall(t, filepath.Join(ws, "new.txt"), "x\n"), "--json"}, flags...)
			x := onTerminal(t, environ, ws, call...)
			x.expect(`Run it\?`)
			status, err := self(t, context.Background(), environ, ws, "status", "--json").Output()
			if err != nil {
				t.Fatal(err)
			}
			var info struct{ Pid int }
			if err := json.Unmarshal(status, &info); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(info.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			x.ends(cli.ExitFailed)
			if n := strings.Count(x.stdout.String(), `"tool_use_id"`); n != 1 || !strings.Contains(x.stdout.String(), "OUTCOME_INTERRUPTED") {
				t.Errorf("%d results, want one that is interrupted:\n%s\nterminal:\n%s", n, x.stdout.String(), x.screen.String())
			}
		})
	}
}
