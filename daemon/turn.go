// Turns: the tool uses of one model message. A turn takes tool uses until it is ended, and is over
// when each of its calls has its result.

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
)

type turn struct {
	number  uint64
	id      string // the client's name
	options *tooldv1.Options
	begun   time.Time
	ordered *ordered // nil: results are recorded as calls end

	// Changed while the session's
	stopped   *pipeline.Stop // why further calls are skipped, when another program goes on with the turn
	calls     int
	numbering map[string]scheduler.Numbering // of batches, by the key of the call that they are nested in

	// Used in the session's update alone.
	modelEvents uint64            // of the model's message that are held; 0: it asks in the client's own words
	ended       bool              // takes no more
	over        bool              // its end is recorded, or about to be
	batches     int               // not counting those of nested calls
	open        map[string]string // ids of calls that have no result yet, by key
	outcomes    map[pipeline.Outcome]int
	work        time.Duration
	hookCalls   map[int]hook.Call // what hooks of the turn's end are told, by index; empty when there are none
}

// openIDs returns the client's ids of the calls that have no result yet.
func (t *turn) openIDs() []string { return slices.Sorted(maps.Values(t.open)) }

// turnRow is what the journal keeps of a turn that has not ended.
type turnRow struct {
	Number uint64 `json:"number"`
	ID     string `json:"id,omitempty"`
}

func turnKey(number uint64) string { return fmt.Sprintf("%s%d", keyOpenTurn, number) }

// beginTurn opens a turn.
func (in inlet) beginTurn(id string) *turn {
	var t *turn
	in.s.update(func(its *state) {
		its.ledger.lastTurn++
		t = &turn{
			number: its.ledger.lastTurn, id: id, options: its.options, begun: time.Now(), numbering: map[string]scheduler.Numbering{},
			open: map[string]string{}, outcomes: map[pipeline.Outcome]int{}, hookCalls: map[int]hook.Call{},
		}
		if t.options.GetOrderedResults() {
			t.ordered = &ordered{waiting: map[int]journal.Entry{}}
		}
		its.ledger.turns[t.number] = t
	})
	in.order(t)
	return t
}

// order has the calls of a turn that begins ordered by its options.
func (in inlet) order(t *turn) {
	in.s.queue.SetFeed(convert.Feed(t.options))
	in.s.queue.SetOrdering(convert.Ordering(t.options))
	in.s.queue.SetConcurrency(cmp.Or(int(t.options.GetMaxConcurrency()), scheduler.DefaultConcurrency))
}

// forgetTurn takes back a turn that has no call yet, since its first could not be recorded.
func (in inlet) forgetTurn(t *turn) {
	if t.calls > 0 {
		return
	}
	in.s.update(func(its *state) {
		t.ended, t.over = true, true
		its.forget(t)
		if its.ledger.open == t {
			its.ledger.open = nil
		}
	})
	in.s.queue.EndTurn(t.number)
}

// endTurn records that no more tool uses come in t.
func (i *intake) endTurn(t *turn) {
	if t == nil {
		return
	}
	i.s.update(func(its *state) {
		t.ended = true
		if its.ledger.open == t {
			its.ledger.open = nil
		}
		i.s.recorder.finishTurn(its, t)
	})
	i.s.queue.EndTurn(t.number)
}

// endTurns ends every turn, as a close or a client that stays away does.
func (i *intake) endTurns() {
	open := view(i.s, func(its *state) []*turn { return its.ledger.openTurns() })
	for _, t := range open {
		i.endTurn(t)
	}
}

// openTurns returns the turns that have not ended, oldest first.
func (l *ledger) openTurns() []*turn {
	return slices.SortedFunc(maps.Values(l.turns), func(a, b *turn) int { return cmp.Compare(a.number, b.number) })
}

// remove takes a call out of its turn.
func (rec *recorder) remove(its *state, t *turn, e ending) {
	row := its.ledger.calls[e.use.Key]
	if row.part != nil {
		row.part.ended <- e.ended
	}
	delete(its.ledger.live, e.use.Key)
	delete(t.open, e.use.Key)
	its.ledger.openSize -= row.size
	its.used = time.Now()
	if rec.s.mayRun(hook.PostToolBatch, "", false) {
		t.hookCalls[e.use.Index] = batchCall(e)
	}
	rec.finishTurn(its, t)
}

// finishTurn records the end of a turn that is over, and takes it out of the session when that is
// done.
func (rec *recorder) finishTurn(its *state, t *turn) {
	if !t.ended || t.over || len(t.open) > 0 {
		return
	}
	t.over = true
	if len(t.hookCalls) > 0 {
		rec.s.Later(func(ctx context.Context) {
			rec.s.runBatchHooks(ctx, t)
			rec.s.update(func(its *state) { rec.recordEnd(its, t) })
		})
		return
	}
	rec.recordEnd(its, t)
}

// recordEnd records the end of a turn that is over.
func (rec *recorder) recordEnd(its *state, t *turn) {
	entry := rec.endOf(its, t)
	write := func(l *ledger) *journal.Pending { return l.append(entry) }
	pending := write(&its.ledger)
	rec.s.work.Go(func() {
		if !rec.keep(pending, write) {
			return
		}
		rec.s.update(func(its *state) { its.forget(t) })
	})
}

// endOf makes the record of a turn's end.
func (rec *recorder) endOf(its *state, t *turn) journal.Entry {
	wire := convert.Event(nil, pipeline.TurnEnded{
		Calls: t.calls, Batches: t.batches, Outcomes: t.outcomes, Wall: time.Since(t.begun), Work: t.work,
	})
	wire.Turn, wire.TurnId = t.number, t.id
	return wireEntry(nil, wire, putState(keyTurn, its.ledger.lastTurn), journal.Put{Key: turnKey(t.number)})
}

// forget takes a turn that is over out of the session, and wakes the streams that may end with it.
func (its *state) forget(t *turn) {
	delete(its.ledger.turns, t.number)
	its.used = time.Now()
	for st := range its.clients.streams {
		if st.halfClosed { // it ends when no turn is open
			st.wakeUp()
		}
	}
}

// endsWith reports whether a turn is over once these of its calls have ended, with no hook to run
// before that is recorded.
func (rec *recorder) endsWith(t *turn, endings []ending) bool {
	for _, e := range endings {
		if _, open := t.open[e.use.Key]; !open {
			return false
		}
	}
	return t.ended && !t.over && len(t.open) == len(endings) && len(t.hookCalls) == 0 && !rec.s.mayRun(hook.PostToolBatch, "", false)
}

// turnNamed finds an open turn by the client's name; empty: the one that takes tool uses, else the
// newest.
func (l *ledger) turnNamed(id string) *turn {
	if id == "" && l.open != nil {
		return l.open
	}
	for _, t := range slices.Backward(l.openTurns()) {
		if !t.over && (id == "" || t.id == id) {
			return t
		}
	}
	return nil
}

// ordered holds back the results of a turn until every earlier one is recorded.
type ordered struct {
	recording sync.Mutex // held while results of the turn are recorded; taken before an update of the session

	// Used in the session's update alone.
	next    int
	waiting map[int]journal.Entry
}

// add takes the result of the call at index, and returns those that may be recorded now.
func (o *ordered) add(index int, result journal.Entry) (released []journal.Entry) {
	o.waiting[index] = result
	for {
		next, ok := o.waiting[o.next]
		if !ok {
			return released
		}
		delete(o.waiting, o.next)
		o.next++
		released = append(released, next)
	}
}
