package daemon

// Turns: the tool uses of one model message. A turn takes tool uses until it is ended, and is over when each of its
// calls has its result.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/pipeline"
)

type turn struct {
	number  uint64
	id      string // the client's name
	options *tooldv1.Options
	begun   time.Time
	numbers map[string]*scheduler.Numbering // by parent

	// Guarded by the session's mu.
	ended    bool // takes no more
	calls    int
	batches  int
	open     map[string]*pipeline.Call
	outcomes map[pipeline.Outcome]int
	work     time.Duration
	ordered  *ordered // nil: results are recorded as calls end
}

// turnRow is what the journal keeps of a turn that has not ended.
type turnRow struct {
	Number uint64 `json:"number"`
	ID     string `json:"id,omitempty"`
}

func turnKey(number uint64) string { return fmt.Sprintf("%s%d", keyOpenTurn, number) }

// beginTurn opens a turn. The session's intake is held.
func (s *session) beginTurn(id string) *turn {
	s.mu.Lock()
	s.lastTurn++
	t := &turn{
		number: s.lastTurn, id: id, options: s.options, begun: time.Now(), numbers: map[string]*scheduler.Numbering{},
		open: map[string]*pipeline.Call{}, outcomes: map[pipeline.Outcome]int{},
	}
	if t.options.GetOrderedResults() {
		t.ordered = &ordered{waiting: map[int]journal.Entry{}}
	}
	s.turns[t.number] = t
	s.mu.Unlock()
	s.queue.SetFeed(feedOf(t.options))
	s.queue.SetConcurrency(concurrencyOf(t.options))
	return t
}

// endTurn says that no more tool uses come in t.
func (s *session) endTurn(t *turn) {
	if t == nil {
		return
	}
	s.mu.Lock()
	already := t.ended
	t.ended = true
	if s.open == t {
		s.open = nil
	}
	s.finishTurn(t)
	s.mu.Unlock()
	if !already {
		s.queue.EndTurn(t.number)
	}
	s.poke()
}

// endTurns ends every turn, as a close or a client that stays away does.
func (s *session) endTurns() {
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.turns))
	s.mu.Unlock()
	for _, t := range open {
		s.endTurn(t)
	}
}

// openTurns gives the numbers of the turns that have not ended.
func (s *session) openTurns() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.turns))
}

// finishTurn records the end of a turn that is over. mu is held.
func (s *session) finishTurn(t *turn) {
	if !t.ended || len(t.open) > 0 || s.turns[t.number] == nil {
		return
	}
	wire := eventOf(nil, pipeline.TurnEnded{
		Calls: t.calls, Batches: t.batches, Outcomes: t.outcomes, Wall: time.Since(t.begun), Work: t.work,
	})
	wire.Turn, wire.TurnId = t.number, t.id
	delete(s.turns, t.number)
	s.used = time.Now()
	s.enqueue(s.wireEntry(nil, wire, put(keyTurn, s.lastTurn), journal.Put{Key: turnKey(t.number)}))
}

// turnNamed finds an open turn by the client's name; empty: the one that takes tool uses, else the newest. mu is held.
func (s *session) turnNamed(id string) *turn {
	if id == "" && s.open != nil {
		return s.open
	}
	var newest *turn
	for _, t := range s.turns {
		if (id == "" || t.id == id) && (newest == nil || t.number > newest.number) {
			newest = t
		}
	}
	return newest
}

// ordered holds back the results of a turn until every earlier one is recorded.
type ordered struct {
	next    int
	waiting map[int]journal.Entry
}

// add takes the result of the call at index, and gives those that may be recorded now. A nil ordered holds none back.
func (o *ordered) add(index int, e journal.Entry) []journal.Entry {
	if o == nil {
		return []journal.Entry{e}
	}
	o.waiting[index] = e
	return o.release()
}

// release gives the results that are next in order.
func (o *ordered) release() (entries []journal.Entry) {
	for {
		e, ok := o.waiting[o.next]
		if !ok {
			return entries
		}
		delete(o.waiting, o.next)
		o.next++
		entries = append(entries, e)
	}
}
