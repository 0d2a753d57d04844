package daemon_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// TestAttachesAreCollected: what many streams needed to attach is collected without waiting until the daemon is quiet.
func TestAttachesAreCollected(t *testing.T) {
	h := serve(t)
	collected := make(chan struct{})
	runtime.AddCleanup(new([1 << 10]byte), func(done chan struct{}) { close(done) }, collected)
	for n := range 16 {
		h.join(fmt.Sprint("s", n), free())
	}
	select {
	case <-collected:
	case <-time.After(5 * time.Second): // the daemon looks for a lull every 10 s
		t.Error("no garbage was collected")
	}
}
