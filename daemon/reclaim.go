// Memory that is given back: what clients no longer have the daemon hold, and what searches remember
// once they have not used it for a while, or the machine is short of memory.

package daemon

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toold/toold/tools/fs/index"
)

const (
	// reclaimLeast is how many bytes clients have given back before it is worth a collection; ours.
	reclaimLeast = 4 << 20
	// reclaimPause is how long what is given back is gathered. A collection of 256 MiB of texts
	// takes a few milliseconds.
	reclaimPause = time.Second
)

// searchIdle is how long something is remembered that no search has met. Ours: longer than a person
// thinks between two turns.
const searchIdle = 10 * time.Minute

// A reclaimer collects garbage, and returns it, when much has been given back.
type reclaimer struct {
	wake     chan struct{} // one slot
	bytes    atomic.Int64  // given back since the last collection
	searches *index.Set    // what searches have found
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
	tick := time.NewTicker(maintenanceTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.forget()
			continue
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

// forget drops what searches remember and do not use; all of it, if memory is short.
func (r *reclaimer) forget() {
	idle := searchIdle
	pressure, _ := os.ReadFile("/proc/pressure/memory") // only Linux has these
	memory, _ := os.ReadFile("/proc/meminfo")
	if shortOfMemory(pressure, memory) {
		idle = 0
	}
	r.released(r.searches.Forget(idle))
}

// Where memory counts as short: programs have waited for it during a tenth of the last ten seconds,
// or less than a twentieth is available. Ours.
const (
	shortWaits = 10.0 // percent
	shortShare = 20
)

// shortOfMemory judges the contents of /proc/pressure/memory and /proc/meminfo. Without them memory
// is not short.
func shortOfMemory(pressure, memory []byte) bool {
	if _, rest, ok := bytes.Cut(pressure, []byte("some avg10=")); ok {
		number, _, _ := bytes.Cut(rest, []byte(" "))
		if waits, err := strconv.ParseFloat(string(number), 64); err == nil && waits >= shortWaits {
			return true
		}
	}
	total, available := kilobytes(memory, "MemTotal:"), kilobytes(memory, "MemAvailable:")
	return available > 0 && available < total/shortShare
}

// kilobytes returns the number of a line of /proc/meminfo; 0: there is none.
func kilobytes(memory []byte, name string) int64 {
	_, rest, _ := bytes.Cut(memory, []byte(name))
	number, _, _ := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
	n, _ := strconv.ParseInt(string(number), 10, 64)
	return n
}
