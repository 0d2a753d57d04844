package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestFullDisk: calls that cannot be recorded are not accepted, which ends the stream; what was accepted gets its one
// result as soon as there is room, and its turn its end.
func TestFullDisk(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	if err := os.MkdirAll(h.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", h.state, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small file system can only be mounted by root: %v", err)
	}
	t.Cleanup(func() {
		h.stop()
		if err := syscall.Unmount(h.state, 0); err != nil {
			t.Error(err)
		}
	})
	h.start()
	c := h.join("s", free())
	for _, name := range []string{"a", "b", "c"} {
		c.pass(name, reads)
	}
	g.await(t, "a", "b", "c")
	ballast := filepath.Join(h.state, "ballast")
	fill(t, ballast)
	for n := 0; ; n++ { // what is left in the journal's own files
		if c.stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
			Id: fmt.Sprint(n), Name: "Nope" + fmt.Sprintf("%0200d", n),
		}}}) != nil {
			break
		}
	}
	refused(t, c.closed(), codes.ResourceExhausted, "disk_full")
	g.open("a", "b")
	g.fail("c")
	again := h.converse()
	again.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64)})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
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
	again.pass("after", reads)
	g.await(t, "after")
	g.open("after")
	again.until("after OK")
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
