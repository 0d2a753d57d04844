package main

import (
	"bufio"
	"strings"
	"syscall"
	"testing"
)

// TestLogFollows: a log that follows shows what was, and then what comes, also of sessions that did not exist when it
// began.
func TestLogFollows(t *testing.T) {
	h := newHouse(t, nil)
	room := h.room(t, "r", map[string]string{"one": "1\n", "two": "2\n"})
	run := func(session, file string) {
		t.Helper()
		cmd := self(t, t.Context(), h.environ, room, "run", "--session", session, "-")
		cmd.Stdin = strings.NewReader(`{"type":"tool_use","id":"` + file + `","name":"Read","input":{"file_path":"` + room + "/" + file + `"}}`)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("toold run: %v\n%s", err, out)
		}
	}
	run("first", "one")
	log := self(t, t.Context(), h.environ, room, "log", "--follow")
	out, err := log.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the log ends before %q", want)
	}
	until("session first")
	until("/one)")
	run("second", "two")
	until("session second")
	until("by user")
	until("/two)")
	run("first", "two")
	until("session first")
	until("/two)")
	if err := log.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = log.Wait() // it was interrupted
}
