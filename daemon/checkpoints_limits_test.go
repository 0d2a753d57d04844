package daemon_test

// What bounds checkpoints: bytes, age, and the order of calls.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// TestCheckpointBytes: above the limit the oldest contents go; their checkpoints say so and the rest can be put back.
func TestCheckpointBytes(t *testing.T) {
	h := prepare(t)
	h.limit(`"checkpoint_bytes": 2500`)
	h.start()
	path := h.file("f", strings.Repeat("0", 1000))
	h.file("other", "one\n")
	c := h.join("s", free())
	for n := range 4 {
		c.bash(fmt.Sprint(n), fmt.Sprintf("printf '%%01000d' %d > f", n+1))
	}
	c.bash("last", "echo two > other")
	if err := h.d.SweepCheckpoints(time.Now()); err != nil {
		t.Fatal(err)
	}
	if size := kept(t, h); size > 2500 || size < 2000 {
		t.Errorf("%d bytes are kept, want about 2500", size)
	}
	told := h.checkpoints("s")
	if !strings.Contains(told[4], "f not kept: Its content is not kept any more.") || strings.Contains(told[1], "not kept") {
		t.Errorf("%q, want the oldest not to be kept and the newest to be", told)
	}
	done := h.restore(before("s", 1))
	if len(done.GetNotRestored()) != 1 || !strings.Contains(done.GetNotRestored()[0].GetReason(), "not kept any more") {
		t.Errorf("not restored: %v", done.GetNotRestored())
	}
	holds(t, filepath.Join(h.root, "other"), "one\n")
	holds(t, path, fmt.Sprintf("%01000d", 4))
}

// TestCheckpointAge: what is too old is dropped, whole, and nothing of it is left.
func TestCheckpointAge(t *testing.T) {
	h := serve(t)
	h.file("f", "one\n")
	c := h.join("s", free())
	c.bash("e", "echo two > f")
	if err := h.d.SweepCheckpoints(time.Now().Add(29 * 24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	want(t, len(h.checkpoints("s")), 1)
	if err := h.d.SweepCheckpoints(time.Now().Add(31 * 24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.bash("barrier", "echo three > g")
	want(t, h.checkpoints("s"), []string{"barrier, g created"})
	if err := h.d.SweepCheckpoints(time.Now()); err != nil {
		t.Fatal(err)
	}
	want(t, kept(t, h), int64(len("three\n")))
}

// kept is how many bytes of contents the daemon keeps.
func kept(t *testing.T, h *house) (size int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.state, "checkpoints", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// TestRestoreWaitsForItsTurn: what runs is left to finish first; if that changes what would be put back, nothing is.
func TestRestoreWaitsForItsTurn(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	path := h.file("f", "one\n")
	c := h.join("s", free())
	for n, meanwhile := range []string{"two\n", "three\n"} {
		id := fmt.Sprint("gate", n)
		c.bash("before "+id, "echo two > f")
		c.pass(id, writes)
		g.await(t, id)
		done := make(chan error, 1)
		go func() {
			_, err := h.sessions().Restore(context.Background(), before("s", 1))
			done <- err
		}()
		for !strings.HasSuffix(tell(c.until("restore-")), "accepted 0/1") { // and not the end of the one before
		}
		h.file("f", meanwhile)
		g.open(id)
		err := <-done
		if meanwhile == "two\n" {
			if err != nil {
				t.Fatal(err)
			}
			holds(t, path, "one\n")
		} else {
			refused(t, err, codes.FailedPrecondition, "plan_changed")
			holds(t, path, meanwhile)
		}
		c.endTurn()
	}
	told := strings.Join(story(h.records("s")), "\n")
	if gate, restored := strings.Index(told, "gate0 OK"), strings.LastIndex(told, "started\nrestore-"); gate < 0 || restored < gate {
		t.Errorf("it did not wait:\n%s", told)
	}
}
