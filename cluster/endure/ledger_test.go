//go:build linux

package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestOverlaps: a command that begins while another one of its session runs is noticed, also where only what that has started
// is left. One that has ended, or is of another session, is none.
func TestOverlaps(t *testing.T) {
	l, err := openLedger()
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	run := func(script string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("bash", "-c", script)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 1)) // the ledger has noted it
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	noted := func(id string) string {
		return strings.Replace(l.command(id, 1000), "sleep 1000.00", "echo noted; exec sleep 1000", 1)
	}
	end(run(noted("a-1")))
	first, other := run(noted("a-2")), run(noted("b-1"))
	second := run(noted("a-3"))
	for len(l.overlapping()) == 0 {
		runtime.Gosched()
	}
	if got := strings.Join(l.overlapping(), "; "); got != "a-3 began while a-2 was running" {
		t.Errorf("overlaps: %q", got)
	}
	for _, cmd := range []*exec.Cmd{first, other, second} {
		end(cmd)
	}
	if n := l.total(); n != 4 {
		t.Errorf("%d effects", n)
	}
}
