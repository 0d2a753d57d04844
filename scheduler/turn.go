package scheduler

// This file keeps the turns of one session, and numbers batches.

import (
	"cmp"
	"slices"
)

// Feed is when the calls of a turn are let into the order.
type Feed uint8

const (
	// Streaming lets each call in the moment it is added.
	Streaming Feed = iota
	// AtEndOfTurn holds the calls of a turn until its EndTurn. Nested calls are
	// never held: the call that they are nested in may wait for them before its
	// client ends the turn.
	AtEndOfTurn
)

type turn struct {
	number uint64
	feed   Feed
	told   bool // EndTurn has arrived
	open   int  // calls that have neither ended nor been skipped
	// cause is why every further call of the turn is skipped; nil when it is not.
	cause error
	// aborted holds the same for the calls of one lane alone.
	aborted map[*lane]error
}

func (t *turn) held() bool { return t.feed == AtEndOfTurn && !t.told }

// refusal is why a call added to the turn and lane now is skipped, or nil.
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

// turns are the turns of a session that have begun and whose end has not been
// told, by number.
type turns struct {
	open []*turn
	last uint64 // the newest turn whose end has been told
}

// get returns the turn of that number, which begins if it is new, or nil if its
// end has been told.
func (ts *turns) get(number uint64, feed Feed) *turn {
	if number <= ts.last {
		return nil
	}
	at, found := slices.BinarySearchFunc(ts.open, number, func(t *turn, n uint64) int {
		return cmp.Compare(t.number, n)
	})
	if !found {
		ts.open = slices.Insert(ts.open, at, &turn{number: number, feed: feed})
	}
	return ts.open[at]
}

// end returns the number of the oldest turn if it has ended, and forgets it.
func (ts *turns) end() (number uint64, ok bool) {
	if len(ts.open) == 0 || !ts.open[0].told || ts.open[0].open > 0 {
		return 0, false
	}
	ts.last = ts.open[0].number
	ts.open = slices.Delete(ts.open, 0, 1)
	return ts.last, true
}

// A Numbering gives calls the numbers of their batches, by position alone: the
// same turn always has the same numbers, whatever has ended by then and however
// the calls were fed. The zero value is ready. The calls nested in one call are
// ordered among themselves, so each parent has a Numbering of its own.
type Numbering struct {
	turn       uint64
	batch      int
	concurrent bool
}

// Next returns the number of the batch that t belongs to, within its turn and
// beginning at 1, given the calls that Next has seen before. A call that will
// not be ordered (an invalid one) is not shown to it, and so splits no batch.
func (n *Numbering) Next(t Task) int {
	if t.Turn() != n.turn {
		*n = Numbering{turn: t.Turn()}
	}
	if n.batch == 0 || !n.concurrent || !t.Concurrent() {
		n.batch++
	}
	n.concurrent = t.Concurrent()
	return n.batch
}
