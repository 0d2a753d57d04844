package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/connect"

	// What becomes of a daemon whose socket, lock or journal is deleted, moved or replaced while it works.

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// info asks the daemon what it is, over a connection that is there already.
func (h *house) info(t *testing.T) *tooldv1.GetInfoResponse {
	t.Helper()
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// warnings are those that the daemon has now, as one text.
func (h *house) warnings(t *testing.T) string {
	t.Helper()
	return strings.Join(h.info(t).GetWarnings(), "\n")
}

func (h *house) socket() string { return filepath.Join(h.dir, "run", "toold", "toold.sock") }

func (h *house) state() string { return filepath.Join(h.dir, "state", "toold") }

// remove deletes what is at the path, with everything in it.
func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// gate makes a named pipe in a workspace. A command that reads it runs until the returned function is called.
func gate(t *testing.T, root string) (open func()) {
	t.Helper()
	path := filepath.Join(root, "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, []byte("opened\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSocketGoneUnderAStream: the daemon listens again, and a stream and its running call do not notice.
func TestSocketGoneUnderAStream(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "streaming", nil)
	open := gate(t, root)
	c := h.attach(t, in(root, nil))
	c.bash("u", "cat gate")
	c.until("u started")
	remove(t, filepath.Dir(h.socket()))
	if warned := h.warnings(t); warned != "" { // which has the daemon look
		t.Errorf("it warns of %q", warned)
	}
	fresh, err := connect.Dial(h.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fresh.Close)
	info, err := fresh.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || info.GetPid() != h.info(t).GetPid() {
		t.Errorf("at the socket answers %v (%v)", info, err)
	}
	open()
	c.until("u OK")
}

// TestSocketTaken: the daemon does not fight over its path. What is there instead is named in its warnings, and as soon
// as it has gone the daemon listens again.
func TestSocketTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	same(t, "the warnings", []string{h.warnings(t)}, "")
	remove(t, h.socket())
	other, err := net.Listen("unix", h.socket())
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "the warnings", h.warnings(t), "another program listens on "+h.socket())
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "the warnings", []string{h.warnings(t)}, "")
	remove(t, h.socket())
	if err := os.WriteFile(h.socket(), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, "the warnings", h.warnings(t), "exists and is not a socket")
	holds(t, "the file", content(t, h.socket()), "precious")
	remove(t, h.socket())
	same(t, "the warnings", []string{h.warnings(t)}, "")
	status, err := self(t, t.Context(), h.environ, h.dir, "status").CombinedOutput()
	if err != nil {
		t.Errorf("toold status: %v\n%s", err, status)
	}
}

// TestSocketOfAnotherDaemon: a second daemon that has taken the socket and its lock keeps them.
func TestSocketOfAnotherDaemon(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	first := int(h.info(t).GetPid())
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil { // so that it does not listen again before the second does
		t.Fatal(err)
	}
	resume := func() {
		if err := syscall.Kill(first, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, h.socket(), h.socket()+".lock")
	second, said := h.serve(t, "--socket", h.socket(), "--state-dir", filepath.Join(h.dir, "state", "second"))
	resume()
	if !strings.Contains(said, "listens on") {
		t.Fatalf("the second daemon says %q", said)
	}
	holds(t, "the warnings of the first", h.warnings(t), "another toold (process ", "others do not reach this daemon")
	l, err := connect.Dial(h.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := l.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || int(info.GetPid()) != second {
		t.Errorf("at the socket answers process %d (%v), want %d", info.GetPid(), err, second)
	}
}

// serve runs one more daemon, which ends with the test. It returns what that printed and its process.
func (h *house) serve(t *testing.T, args ...string) (pid int, said string) {
	t.Helper()
	cmd := self(t, context.Background(), h.environ, h.dir, append([]string{"serve", "--root", h.dir}, args...)...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait() // it has failed, and its last words say how
		return 0, failure.String()
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGINT) // no drain
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the second daemon ended with %v:\n%s", err, failure.String())
		}
	})
	return cmd.Process.Pid, said
}

// TestLockGone: a second daemon does not come to a state directory whose lock file was deleted, not even when the
// journal waits to be salvaged, and the first makes the file again.
func TestLockGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	first := int(h.info(t).GetPid())
	put(t, filepath.Join(h.state(), "journal", "suspect"), "damage was met\n")
	lock := filepath.Join(h.state(), "lock")
	before := content(t, lock)
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil { // so that the file is not there again at once
		t.Fatal(err)
	}
	remove(t, lock)
	_, said := h.serve(t, "--socket", filepath.Join(h.dir, "run", "second.sock"), "--state-dir", h.state())
	if err := syscall.Kill(first, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	holds(t, "what the second daemon says", said, "another toold holds "+h.state())
	same(t, "the warnings", []string{h.warnings(t)}, "")
	same(t, "the lock file", []string{content(t, lock)}, before)
}

// TestLockOfNobody: a process that a lock file names and that does not hold it is not ended, nor waited for.
func TestLockOfNobody(t *testing.T) {
	t.Parallel()
	environ, ws := home(t)
	state := filepath.Join(filepath.Dir(ws), "state", "toold")
	put(t, filepath.Join(state, "lock"), fmt.Sprintf("%d\n%s\n", os.Getpid(), filepath.Join(ws, "none.sock")))
	out, err := self(t, t.Context(), environ, ws, "stop").CombinedOutput()
	if err != nil || string(out) != "no daemon was running\n" {
		t.Errorf("toold stop: %v\n%s", err, out)
	}
	if out, err := self(t, t.Context(), environ, ws, "start").CombinedOutput(); err != nil {
		t.Errorf("toold start: %v\n%s", err, out)
	}
}

// TestJournalGoneUnderCalls: what runs ends with its result, what was accepted does not start, and nothing new is
// accepted until the journal is back.
func TestJournalGoneUnderCalls(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"journal", "."} { // of the state directory
		h := newHouse(t, nil)
		root := h.room(t, "calls", nil)
		open := gate(t, root)
		c := h.attach(t, in(root, nil))
		c.bash("runs", "cat gate >/dev/null")
		c.until("runs started")
		c.bash("waits", "touch made")
		asked := c.question("waits")
		away := filepath.Join(h.dir, "away")
		move(t, filepath.Join(h.state(), name), away)
		holds(t, "the warnings", h.warnings(t), "was deleted or moved away")
		c.bash("new", "ls")
		holds(t, "a new call", c.refusal(), "FailedPrecondition journal_gone: No call is accepted")
		holds(t, "a new session", h.refused(t, in(h.room(t, "new", nil), nil)), "FailedPrecondition journal_gone")
		can := &tooldv1.Capabilities{Answers: true}
		c = h.attach(t, &tooldv1.Attach{SessionId: "calls", AfterSeq: new(uint64), Capabilities: can})
		open()
		c.until("runs OK")
		c.answer(answer(asked, yes))
		c.until("waits ERROR journal_gone")
		absent(t, root, "made")
		absent(t, h.state(), name)
		move(t, away, filepath.Join(h.state(), name))
		same(t, "the warnings", []string{h.warnings(t)}, "")
		expect(t, "a call afterwards", outcome(c.run("after", "touch made")), "OK")
		expect(t, "one that prints", outcome(c.run("prints", "ls")), "OK")
	}
}

// refusal receives until the stream ends, and returns why it did.
func (c *talk) refusal() string {
	for {
		if _, err := c.receive(); err != nil {
			return refusal(err)
		}
	}
}
