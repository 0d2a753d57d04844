// Memory that is given back: what clients no longer have the daemon hold, what searches remember
// once they have not used it for a while, or the machine is short of memory, and what was needed
// only while the daemon had something to do.

package daemon

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
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

const (
	// quietBytes is the most that a daemon without work allocates in a maintenanceTick. Ours: looking
	// at 200 idle sessions takes about half of it, ten calls all of it.
	quietBytes = 256 << 10
	// workedBytes is how much work is followed by a collection once the daemon is quiet. Ours: 80
	// calls, or the start.
	workedBytes = 2 << 20
)

// spareHeap is how many bytes of heap the daemon has and never touches, so that they take no memory.
// The collector lets the heap double before it runs. Without them it runs every few hundred calls,
// which is a fifth of what each costs. The garbage that lies longer for that goes when the daemon is
// quiet. The number is ours.
const spareHeap = 24 << 20

// attachesCollected is how many streams attach until garbage is collected. What attaching needed lies between what the
// session keeps, so memory that is not used again at once stays taken for as long as the session. The number is ours.
const attachesCollected = 16

// A reclaimer collects garbage, and returns it, when much has been given back, and when the daemon
// has become quiet after work.
type reclaimer struct {
	wake     chan struct{} // one slot
	bytes    atomic.Int64  // given back since the last collection
	attaches atomic.Int64  // in all
	crowded  chan struct{} // one slot: attachesCollected more of them
	searches *index.Set    // what searches have found
	shells   *sandbox.Runner
	lull     lull
	spare    []byte // spareHeap
}

func newReclaimer() reclaimer {
	return reclaimer{wake: make(chan struct{}, 1), crowded: make(chan struct{}, 1), spare: make([]byte, spareHeap)}
}

// A lull finds out from how much was allocated whether the daemon has become quiet after work: it
// sees whatever works, and costs a call nothing.
type lull struct {
	before uint64 // allocated in all, when it was last asked
	last   uint64 // and when the last lull had begun
}

// begins reports whether the daemon, which has allocated so many bytes in all, has worked since the
// last lull and does not any more.
func (l *lull) begins(allocated uint64) bool {
	quiet, worked := allocated-l.before < quietBytes, allocated-l.last >= workedBytes
	l.before = allocated
	if quiet && worked {
		l.last = allocated
	}
	return quiet && worked
}

// allocated returns how many bytes the process has allocated in all.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// released takes note of bytes that clients have given back. It returns at once.
func (r *reclaimer) released(bytes int64) {
	if r.bytes.Add(bytes) < reclaimLeast {
		return
	}
	signal(r.wake)
}

// attached takes note of a stream that has attached. It returns at once.
func (r *reclaimer) attached() {
	if r.attaches.Add(1)%attachesCollected == 0 {
		signal(r.crowded)
	}
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
			if r.lull.begins(allocated()) {
				r.collect()
				dropProgram()
			}
			continue
		case <-r.crowded:
			runtime.GC()
			continue
		case <-r.wake:
		}
		if sleep(ctx, reclaimPause) != nil {
			return
		}
		r.collect()
	}
}

// collect returns what is garbage to the kernel.
func (r *reclaimer) collect() {
	r.bytes.Store(0)
	runtime.GC() // what pools hold goes with the second collection
	debug.FreeOSMemory()
}

// forget drops what searches remember and do not use; all of it, and the shells that wait, if memory
// is short.
func (r *reclaimer) forget() {
	idle := searchIdle
	pressure, _ := os.ReadFile("/proc/pressure/memory") // only Linux has these
	memory, _ := os.ReadFile("/proc/meminfo")
	short := shortOfMemory(pressure, memory)
	if short {
		idle = 0
	}
	r.shells.SetMemoryShort(short)
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
