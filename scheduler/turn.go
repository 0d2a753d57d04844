// The turns of one session, and the numbers of batches.

package scheduler

import (
	"cmp"
	"slices"
)

// Feed is when the calls of a turn enter the order.
type Feed uint8

const (
	// Streaming: each call enters when it is added.
	Streaming Feed = iota
	// AtEndOfTurn: calls enter at EndTurn. Nested calls enter at once, since their parent may wait
	// for them before its client ends the turn.
	AtEndOfTurn
)

// Ordering is which calls of a turn wait for which earlier ones.
type Ordering uint8

const (
	// Batched: neighbouring concurrent calls run beside each other, a serial call runs alone.
	Batched Ordering = iota
	// Dependency: a call waits for the earlier calls that it conflicts with by their Footprints. If
	// it changes something, it also waits for those whose failure would abort it.
	Dependency
)

// manner is how the calls of a turn are ordered. It is decided when the turn begins.
type manner struct {
	feed     Feed
	ordering Ordering
}

type turn struct {
	number uint64
	manner
	told bool // EndTurn was called
	open int  // calls that have neither ended nor been skipped
	// cause is why every further call of the turn is skipped; nil: it is not.
	cause error
	// aborted holds such causes for single lanes.
	aborted map[*lane]error
}

func (t *turn) held() bool { return t.feed == AtEndOfTurn && !t.told }

// refusal returns why a call that is added to the turn and lane now is skipped, or nil.
func (t *turn) refusal(l *lane) error {
	if cause := t.aborted[l]; cause != nil {
		return cause
	}
	return t.cause
}

// abort skips further calls of the lane. The first cause stays.
func (t *turn) abort(l *lane, cause error) {
	if t.refusal(l) != nil {
		return
	}
	if t.aborted == nil {
		t.aborted = make(map[*lane]error)
	}
	t.aborted[l] = cause
}

// stop skips further calls of the turn, in every lane. The first cause stays.
func (t *turn) stop(cause error) {
	if t.cause == nil {
		t.cause = cause
	}
}

// turns are the open turns of a session, by number.
type turns struct {
	open []*turn
	last uint64 // the newest turn that has ended
}

// get returns the turn of that number, and begins it if it is new. It returns nil if the turn has
// ended.
func (ts *turns) get(number uint64, how manner) *turn {
	if number <= ts.last {
		return nil
	}
	at, found := slices.BinarySearchFunc(ts.open, number, func(t *turn, n uint64) int {
		return cmp.Compare(t.number, n)
	})
	if !found {
		ts.open = slices.Insert(ts.open, at, &turn{number: number, manner: how})
	}
	return ts.open[at]
}

// end removes the oldest turn if it has ended, which then is the last, and reports whether it has.
func (ts *turns) end() bool {
	if len(ts.open) == 0 || !ts.open[0].told || ts.open[0].open > 0 {
		return false
	}
	ts.last = ts.open[0].number
	ts.open = slices.Delete(ts.open, 0, 1)
	return true
}

// A Numbering numbers batches by position only: the same turn always has the same numbers, whatever
// has ended by then and whatever the Feed is. The zero value is ready for use. The calls nested in
// one call are ordered among themselves, so each parent has its own Numbering.
type Numbering struct {
	Turn       uint64
	Batch      int // the newest number; 0: none
	Concurrent bool
}

// Next returns the number of t's batch within its turn, from 1, after the calls that Next has seen
// before. A call that will not be ordered (an invalid one) must not be passed to it, and so splits
// no batch.
func (n *Numbering) Next(t Task) int {
	if t.Turn() != n.Turn {
		*n = Numbering{Turn: t.Turn()}
	}
	if n.Batch == 0 || !n.Concurrent || !t.Concurrent() {
		n.Batch++
	}
	n.Concurrent = t.Concurrent()
	return n.Batch
}
