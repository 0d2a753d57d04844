package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestCheckpointOnAFullDisk: a call whose before-image cannot be kept is not started and changes nothing; with room it is.
func TestCheckpointOnAFullDisk(t *testing.T) {
	h := prepareSmall(t)
	h.start()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	path := h.file("f", string(large))
	c := h.join("s", free())
	ballast := filepath.Join(h.state, "ballast")
	fill(t, ballast)
	info, err := os.Stat(ballast)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(ballast, info.Size()-1<<20); err != nil { // room for the journal, and not for the file
		t.Fatal(err)
	}
	result := c.bash("full", "echo two > f")
	if result.GetError().GetCode() != "disk_full" || !strings.Contains(result.GetError().GetMessage(), "not started") {
		t.Errorf("%v, want that the disk is full", result.GetError())
	}
	unchanged := func() {
		t.Helper()
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, large) {
			t.Errorf("the file has %d bytes (%v), want the %d that it had", len(data), err, len(large))
		}
	}
	unchanged()
	want(t, h.checkpoints("s"), nil)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	want(t, c.bash("roomy", "echo two > f").GetOutcome(), tooldv1.Outcome_OUTCOME_OK)
	h.restore(before("s", 1))
	unchanged()
	_, err = h.sessions().Restore(t.Context(), before("s", 99))
	refused(t, err, codes.NotFound, "unknown_checkpoint")
}
