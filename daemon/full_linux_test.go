package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// TestFullDisk: calls that cannot be recorded are not accepted, which ends the stream; what was accepted gets its one
// result while the disk is still full, and its turn its end. With room it goes on.
func TestFullDisk(t *testing.T) {
	g := gateTool()
	h := prepareSmall(t, g)
	h.start()
	c := h.join("s", free())
	for _, name := range []string{"a", "b", "c"} {
		c.pass(name, reads)
	}
	g.await(t, "a", "b", "c")
	ballast := filepath.Join(h.state, "ballast")
	fill(t, ballast)
	c.crowd()
	g.open("a", "b")
	g.fail("c")
	again := h.converse()
	again.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64)})
	again.endTurn()
	again.until("turn 1 ended")
	accepted, ended := map[string]int{}, map[string]int{}
	for _, event := range again.events {
		if event.GetAccepted() != nil {
			accepted[event.GetAccepted().GetToolUseId()]++
		}
		if event.GetToolResult() != nil {
			ended[event.GetToolResult().GetToolUseId()]++
		}
	}
	want(t, ended, accepted)
	want(t, accepted["a"], 1)
	told := outcomes(resultsOf(again.events))
	want(t, told["a"]+", "+told["b"]+", "+told["c"], "OK, OK, ERROR gate_failed")
	again.crowd() // it is still full
	other := h.converse()
	other.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "new", Roots: []string{h.root}}}})
	refused(t, other.closed(), codes.ResourceExhausted, "disk_full")
	warned := func() int {
		info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(info.GetWarnings())
	}
	want(t, warned(), 1)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	last := h.join("s", nil)
	if turns := last.events[0].GetAttached().GetOpenTurns(); len(turns) > 0 {
		t.Errorf("turns %v are open, of which no call was accepted", turns)
	}
	last.pass("after", reads)
	g.await(t, "after")
	g.open("after")
	last.until("after OK")
	want(t, warned(), 0)
}

// TestRestartOnAFullDisk: after a kill on a full disk every call has its result at once, and what is new is refused
// until there is room.
func TestRestartOnAFullDisk(t *testing.T) {
	h := prepareSmall(t)
	kill := h.spawn()
	c := h.join("s", free())
	c.use("runs", "Bash", `{"command":"sleep 1000"}`)
	c.until("runs started")
	c.use("waits", "Bash", `{"command":"echo > file"}`)
	c.until("waits accepted")
	ballast := filepath.Join(h.state, "ballast")
	fill(t, ballast)
	c.crowd()
	kill()
	h.start()
	c = h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64)})
	c.until("turn 1 ended")
	told := outcomes(resultsOf(c.events))
	want(t, told["runs"], "INTERRUPTED interrupted")
	want(t, told["waits"], "INTERRUPTED interrupted")
	c.crowd()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c = h.join("s", nil)
	c.use("new", "Read", `{"file_path":"`+h.file("f", "text\n")+`"}`)
	c.until("new OK")
	if warnings := c.events[0].GetAttached().GetWarnings(); len(warnings) != 0 {
		t.Errorf("warned of %q when all is well again", warnings)
	}
}

// TestRestartWithoutReserve: where not even the reserve is left, a session is told to be waiting, not closed, and is
// back with its results as soon as there is room.
func TestRestartWithoutReserve(t *testing.T) {
	h := prepareSmall(t)
	kill := h.spawn()
	c := h.join("s", free())
	c.use("runs", "Bash", `{"command":"sleep 1000"}`)
	c.until("runs started")
	ballast := filepath.Join(h.state, "ballast")
	fill(t, ballast)
	c.crowd()
	kill()
	if err := os.Truncate(filepath.Join(h.state, "journal", "reserve"), 0); err != nil {
		t.Fatal(err)
	}
	fill(t, ballast+"2")
	h.start()
	attach := &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{
		SessionId: "s", Roots: []string{h.root}, AfterSeq: new(uint64),
	}}}
	c = h.converse()
	c.say(attach)
	refused(t, c.closed(), codes.ResourceExhausted, "disk_full")
	session, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil || session.GetSession().GetClosed() {
		t.Errorf("session %v, %v; want one that is not closed", session, err)
	}
	info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || len(info.GetWarnings()) != 2 {
		t.Errorf("%v, %v; want warnings of the disk and of the session", info, err)
	}
	for _, name := range []string{ballast, ballast + "2"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	c = h.converse()
	c.say(attach)
	c.until("turn 1 ended")
	want(t, outcomes(resultsOf(c.events))["runs"], "INTERRUPTED interrupted")
}

// crowd sends tool uses until there is no room left in the journal's own files.
func (c *conversation) crowd() {
	c.t.Helper()
	for n := 0; ; n++ {
		if c.stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
			Id: fmt.Sprint(n), Name: "Nope" + fmt.Sprintf("%0200d", n),
		}}}) != nil {
			break
		}
	}
	refused(c.t, c.closed(), codes.ResourceExhausted, "disk_full")
}

// TestPostponedOnAFullDisk: a call that was accepted without waiting for the disk, which turns out to be full, has all
// of its records in their order: they are written with its result, which may use the reserve.
func TestPostponedOnAFullDisk(t *testing.T) {
	g := gateTool()
	h := prepareSmall(t, g)
	h.start()
	c := h.join("s", free())
	fill(t, filepath.Join(h.state, "ballast"))
	c.pass("a", reads)
	g.await(t, "a")
	g.open("a")
	c.until("a OK")
	want(t, c.about("a"), "accepted, started, OK")
	c.pass("b", reads)
	refused(t, c.closed(), codes.ResourceExhausted, "disk_full")
}

// prepareSmall prepares a daemon whose state is on a disk of 24 MiB.
func prepareSmall(t *testing.T, extra ...tools.Tool) *house {
	t.Helper()
	h := prepare(t, extra...)
	if err := os.MkdirAll(h.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", h.state, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a small file system can only be mounted by root: %v", err)
	}
	t.Cleanup(func() {
		h.stop()
		if err := syscall.Unmount(h.state, 0); err != nil {
			t.Error(err)
		}
	})
	return h
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
