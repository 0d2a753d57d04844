// Returning memory to the operating system. Without this a daemon keeps what its busiest moment took: the collector
// runs when memory is asked for, and nothing asks when the clients have left.

package daemon

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// reclaimLeast is how many bytes clients have given back before it is worth a collection; ours.
	reclaimLeast = 4 << 20
	// reclaimPause is how long what is given back is gathered. A collection of 256 MiB of texts takes a few milliseconds.
	reclaimPause = time.Second
)

// A reclaimer collects garbage, and returns it, when clients have given much back.
type reclaimer struct {
	wake  chan struct{} // one slot
	bytes atomic.Int64  // given back since the last collection
}

// released takes note of bytes that clients have given back. It returns at once.
func (r *reclaimer) released(bytes int64) {
	if r.bytes.Add(bytes) < reclaimLeast {
		return
	}
	signal(r.wake)
}

// run returns memory until ctx ends, at most once in reclaimPause.
func (r *reclaimer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		if sleep(ctx, reclaimPause) != nil {
			return
		}
		r.bytes.Store(0)
		runtime.GC() // what pools hold goes with the second collection
		debug.FreeOSMemory()
	}
}
