package telemetry

import (
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/scheduler/pipeline"
)

// recentCalls is how many of the latest calls are looked at. Ours: enough for a 99th percentile that is not the longest call, in 24 KiB.
const recentCalls = 512

// rateOver is how long a call counts for the rate.
const rateOver = time.Minute

// spent returns the time that a call has spent in each phase.
func spent(u *pipeline.Usage) [pipeline.Running + 1]time.Duration {
	return [...]time.Duration{pipeline.Waiting: u.Waited, pipeline.Asking: u.Asked, pipeline.Hooking: u.Hooked, pipeline.Running: u.Ran}
}

// Recent is what the latest calls have taken. The zero value has none. Its methods are safe for concurrent use.
type Recent struct {
	mu    sync.Mutex // guards the rest; a leaf
	calls []recentCall
	next  int // which is replaced next, once there are recentCalls
}

type recentCall struct {
	ended time.Time
	spent [pipeline.Running + 1]time.Duration
}

// Ended adds a call.
func (r *Recent) Ended(c *Call) {
	call := recentCall{time.Now(), spent(&c.Ended.Usage)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) < recentCalls {
		r.calls = append(r.calls, call)
		return
	}
	r.calls[r.next] = call
	r.next = (r.next + 1) % recentCalls
}

// A PhaseTime is what the calls that were in a phase at all have spent in it.
type PhaseTime struct {
	Phase    pipeline.Phase
	Calls    int
	P50, P99 time.Duration
}

// Phases returns the times of the latest 512 calls, by phase, and how many calls a second have ended within the last minute; of more than 512
// within it, the rate is that of the latest 512.
func (r *Recent) Phases() (times []PhaseTime, rate float64) {
	r.mu.Lock()
	calls := slices.Clone(r.calls)
	r.mu.Unlock()
	for phase := pipeline.Waiting; phase <= pipeline.Running; phase++ {
		var took []time.Duration
		for _, c := range calls {
			if c.spent[phase] > 0 {
				took = append(took, c.spent[phase])
			}
		}
		slices.Sort(took)
		times = append(times, PhaseTime{Phase: phase, Calls: len(took), P50: percentile(took, 50), P99: percentile(took, 99)})
	}
	over, within := rateOver, 0
	for _, c := range calls {
		if time.Since(c.ended) <= rateOver {
			within++
		}
	}
	if within == recentCalls {
		oldest := slices.MinFunc(calls, func(a, b recentCall) int { return a.ended.Compare(b.ended) })
		over = max(time.Since(oldest.ended), time.Millisecond)
	}
	return times, float64(within) / over.Seconds()
}

// percentile returns the smallest duration that so many percent are not above; 0: there are none. sorted is in order.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}
