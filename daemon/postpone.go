// Records that are passed to the journal together with what follows them. That a call was accepted
// waits for the record of its start, a question or its result, since the call has done nothing before
// that. A call that only looks at files is also started without waiting for the disk, since nothing
// that it does has to be known after a crash: its three records become one transaction, and those of
// any other call two. Nothing of them leaves the daemon before that: streams read the journal, and a
// method that reads it for a client calls written first.
//
// A postponed record is never lost for want of room. It stays with its call until it is known to be
// written, and otherwise goes with the call's result, which is written again until there is room.

package daemon

import (
	"slices"
	"time"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
)

// postponeTime is how long a record is postponed at most.
const postponeTime = 10 * time.Millisecond

// postponeBytes is the largest body of a record that is postponed.
const postponeBytes = 16 << 10

// postponed are the records of a ledger that are not passed to the journal yet.
type postponed struct {
	entries []journal.Entry
	since   time.Time // of the oldest
	timed   bool      // a timer is about to pass them on
	passed  []*batch  // of which it is not known that they are written
}

// A batch is records that were postponed and then passed to the journal.
type batch struct {
	pending *journal.Pending
	entries []journal.Entry
}

// mayPostpone reports whether a record of a call in the turn may wait for what follows it.
func (s *session) mayPostpone(t *turn) bool { return t.ordered == nil && !s.daemon.journal.Full() }

// mayPostponeStart reports whether the record of the call's start may wait for its result. tier is how the
// call's processes are confined; empty: it starts none that the call itself declares.
func (s *session) mayPostponeStart(c *pipeline.Call, tier sandbox.Tier, t *turn) bool {
	return c.Passive() && tier != sandbox.None && tier != sandbox.Full && s.mayPostpone(t)
}

// postpone keeps an entry until others are appended, for postponeTime at most. later is called once
// that is over.
func (l *ledger) postpone(e journal.Entry, later func()) {
	if len(l.postponed.entries) == 0 {
		l.postponed.since = time.Now()
	}
	l.postponed.entries = append(l.postponed.entries, e)
	if !l.postponed.timed {
		l.postponed.timed = true
		time.AfterFunc(postponeTime, later)
	}
}

// pass passes entries to the journal, behind those that were postponed.
func (l *ledger) pass(enqueue func(...journal.Entry) *journal.Pending, entries ...journal.Entry) *journal.Pending {
	l.takeBack()
	before := l.postponed.entries
	if len(before) == 0 {
		l.tail = enqueue(entries...)
		return l.tail
	}
	l.postponed.entries = nil
	b := &batch{entries: before}
	for i := range before {
		row := l.calls[before[i].Call]
		if row == nil {
			continue
		}
		row.batch = b
		if row.Open && before[i].Kind == kindAccepted { // else its result is among entries, with the newer note
			before[i].Note = asState(row)
		}
	}
	b.pending = enqueue(slices.Concat(before, entries)...)
	l.tail = b.pending
	l.postponed.passed = append(l.postponed.passed, b)
	return l.tail
}

// flush passes on what was postponed.
func (l *ledger) flush() {
	if l.takeBack(); len(l.postponed.entries) > 0 {
		l.pass(l.log.Enqueue)
	}
}

// takeBack postpones again what could not be written.
func (l *ledger) takeBack() {
	var failed []journal.Entry
	l.postponed.passed = slices.DeleteFunc(l.postponed.passed, func(b *batch) bool {
		if !b.pending.Done() {
			return false
		}
		if _, err := b.pending.Wait(); err != nil {
			failed = append(failed, b.entries...)
		}
		return true
	})
	if len(failed) > 0 {
		l.postponed.entries = append(failed, l.postponed.entries...)
	}
}

// updateBehind is update for what follows the records of calls: f runs when it is known of those
// that were passed on whether they are written.
func (s *session) updateBehind(f func(its *state), calls ...string) {
	for {
		underWay := view(s, func(its *state) *journal.Pending {
			for _, key := range calls {
				if row := its.ledger.calls[key]; row != nil && row.batch != nil && !row.batch.pending.Done() {
					return row.batch.pending
				}
			}
			f(its)
			return nil
		})
		if underWay == nil {
			return
		}
		_, _ = underWay.Wait()
	}
}

// flushLater passes on what was postponed when it has waited long enough. What came since the timer
// was set, which nothing stops, waits for the rest of its time.
func (s *session) flushLater() {
	s.update(func(its *state) {
		left := postponeTime - time.Since(its.ledger.postponed.since)
		if its.ledger.postponed.timed = len(its.ledger.postponed.entries) > 0 && left > 0; its.ledger.postponed.timed {
			time.AfterFunc(left, s.flushLater)
			return
		}
		its.ledger.flush()
	})
}

// written waits until everything that has happened is in the journal. The error is why something is
// not.
func (s *session) written() error {
	tail := view(s, func(its *state) *journal.Pending {
		its.ledger.flush()
		return its.ledger.tail
	})
	if tail == nil {
		return nil
	}
	_, err := tail.Wait()
	return err
}

// Recorded waits until it is recorded that the call was accepted.
func (rec *recorder) Recorded(*pipeline.Call) error {
	if err := rec.s.written(); err != nil {
		return diskFault(err)
	}
	return nil
}
