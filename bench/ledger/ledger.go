// Package ledger holds what a client of a session sees against what toold promises, event by event: numbers without a
// gap, the same record under the same number whenever it is sent, for each call one result and nothing behind it, for
// each turn one end when all of its calls have ended. It does not know what calls do, nor how events came.
package ledger

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Ledger is what one client has seen of one session, over all of its streams. It is not safe for concurrent use.
type Ledger struct {
	epoch string
	last  uint64
	seen  map[uint64][sha256.Size]byte // records by number
	calls map[Key]*Call
	turns map[uint64]bool // whether the turn has ended
}

// A Key names a call within a session.
type Key struct {
	Turn uint64
	ID   string // the client's
}

// A Call is what has been seen of one.
type Call struct {
	TurnID  string
	Name    string
	Started bool
	Result  *tooldv1.ToolResult // nil: none yet
}

// New returns the ledger of a client that has seen nothing.
func New() *Ledger {
	return &Ledger{seen: map[uint64][sha256.Size]byte{}, calls: map[Key]*Call{}, turns: map[uint64]bool{}}
}

// Last is the number of the newest record that was seen: what to attach behind. 0: none.
func (l *Ledger) Last() uint64 { return l.last }

// Differs returns the number of the first record that two clients have seen differently, or that one of them has missed; 0:
// what both have come to is the same.
func (l *Ledger) Differs(other *Ledger) uint64 {
	for n := uint64(1); n <= min(l.last, other.last); n++ {
		if l.seen[n] != other.seen[n] {
			return n
		}
	}
	return 0
}

// Calls returns every call that was seen. It is the ledger's own and must not be changed.
func (l *Ledger) Calls() map[Key]*Call { return l.calls }

// Results returns the results of the calls of a turn that the client has named, by id; of several turns of that name the
// last one's.
func (l *Ledger) Results(turnID string) map[string]*Call {
	found := map[string]*Call{}
	for _, key := range slices.SortedFunc(maps.Keys(l.calls), func(a, b Key) int { return int(a.Turn) - int(b.Turn) }) {
		if c := l.calls[key]; c.TurnID == turnID && c.Result != nil {
			found[key.ID] = c
		}
	}
	return found
}

// Settled is nil when every call has its result and every turn its end.
func (l *Ledger) Settled() error {
	for key, c := range l.calls {
		if c.Result == nil {
			return fmt.Errorf("call %s of turn %d has no result", key.ID, key.Turn)
		}
	}
	for number, ended := range l.turns {
		if !ended {
			return fmt.Errorf("turn %d has no end", number)
		}
	}
	return nil
}

// See takes the next event of a stream that was attached behind Last, or is the first. The error
// names the promise that it breaks.
func (l *Ledger) See(e *tooldv1.ExecuteResponse) error {
	switch {
	case e.GetAttached() != nil:
		return l.attached(e.GetAttached())
	case e.GetSeq() == 0:
		return l.progress(e)
	case e.GetSeq() <= l.last:
		return l.again(e)
	case e.GetSeq() != l.last+1:
		return fmt.Errorf("record %d comes behind %d: records are missing", e.GetSeq(), l.last)
	}
	l.last, l.seen[e.GetSeq()] = e.GetSeq(), digest(e)
	return l.record(e)
}

func (l *Ledger) attached(a *tooldv1.Attached) error {
	if l.epoch != "" && a.GetEpoch() != l.epoch {
		return fmt.Errorf("the epoch has changed from %s to %s", l.epoch, a.GetEpoch())
	}
	l.epoch = a.GetEpoch()
	if a.GetLastSeq() < l.last {
		return fmt.Errorf("the session ends at record %d, and %d was seen", a.GetLastSeq(), l.last)
	}
	return nil
}

func (l *Ledger) progress(e *tooldv1.ExecuteResponse) error {
	id := e.GetProgress().GetToolUseId()
	if c := l.calls[Key{e.GetTurn(), id}]; c != nil && c.Result != nil {
		return fmt.Errorf("progress of call %s comes behind its result", id)
	}
	return nil
}

// again takes a record that was seen before.
func (l *Ledger) again(e *tooldv1.ExecuteResponse) error {
	if sum, ok := l.seen[e.GetSeq()]; ok && sum != digest(e) {
		return fmt.Errorf("record %d is another than before: %v", e.GetSeq(), e)
	}
	return nil
}

// digest is of all of a record but the mark that it is sent again.
func digest(e *tooldv1.ExecuteResponse) [sha256.Size]byte {
	if e.GetAccepted().GetReplayed() {
		e = proto.CloneOf(e)
		e.GetAccepted().Replayed = false
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
	if err != nil {
		panic("BUG: what was received cannot be marshalled: " + err.Error())
	}
	return sha256.Sum256(text)
}

func (l *Ledger) record(e *tooldv1.ExecuteResponse) error {
	switch event := e.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Accepted:
		return l.accepted(e, event.Accepted)
	case *tooldv1.ExecuteResponse_Started:
		return l.started(e, event.Started)
	case *tooldv1.ExecuteResponse_ToolResult:
		return l.result(e, event.ToolResult)
	case *tooldv1.ExecuteResponse_TurnEnded:
		return l.turnEnded(e, event.TurnEnded)
	}
	return nil
}

func (l *Ledger) accepted(e *tooldv1.ExecuteResponse, a *tooldv1.Accepted) error {
	key := Key{e.GetTurn(), a.GetToolUseId()}
	ended, known := l.turns[key.Turn]
	switch {
	case known && ended:
		return fmt.Errorf("call %s is accepted into turn %d, which has ended", key.ID, key.Turn)
	case l.calls[key] != nil:
		return fmt.Errorf("call %s is accepted twice in turn %d", key.ID, key.Turn)
	}
	l.turns[key.Turn] = false
	l.calls[key] = &Call{TurnID: e.GetTurnId(), Name: a.GetName()}
	return nil
}

func (l *Ledger) started(e *tooldv1.ExecuteResponse, s *tooldv1.Started) error {
	c := l.calls[Key{e.GetTurn(), s.GetToolUseId()}]
	switch {
	case c == nil:
		return fmt.Errorf("call %s has started and was never accepted", s.GetToolUseId())
	case c.Result != nil:
		return fmt.Errorf("call %s has started behind its result", s.GetToolUseId())
	case c.Started:
		return fmt.Errorf("call %s has started twice", s.GetToolUseId())
	}
	c.Started = true
	return nil
}

func (l *Ledger) result(e *tooldv1.ExecuteResponse, r *tooldv1.ToolResult) error {
	c := l.calls[Key{e.GetTurn(), r.GetToolUseId()}]
	switch {
	case c == nil:
		return fmt.Errorf("call %s has a result and was never accepted", r.GetToolUseId())
	case c.Result != nil:
		return fmt.Errorf("call %s has a second result", r.GetToolUseId())
	case l.turns[e.GetTurn()]:
		return fmt.Errorf("call %s has its result behind the end of its turn", r.GetToolUseId())
	case r.GetOutcome() == tooldv1.Outcome_OUTCOME_UNSPECIFIED:
		return fmt.Errorf("the result of call %s has no outcome", r.GetToolUseId())
	case r.GetOutcome() == tooldv1.Outcome_OUTCOME_OK && !c.Started:
		return fmt.Errorf("call %s has succeeded and never started", r.GetToolUseId())
	}
	c.Result = r
	return nil
}

func (l *Ledger) turnEnded(e *tooldv1.ExecuteResponse, end *tooldv1.TurnEnded) error {
	if l.turns[e.GetTurn()] {
		return fmt.Errorf("turn %d has ended twice", e.GetTurn())
	}
	calls, outcomes := uint32(0), map[string]uint32{}
	for key, c := range l.calls {
		if key.Turn != e.GetTurn() {
			continue
		}
		if c.Result == nil {
			return fmt.Errorf("turn %d has ended, and its call %s has no result", e.GetTurn(), key.ID)
		}
		calls++
		outcomes[strings.ToLower(strings.TrimPrefix(c.Result.GetOutcome().String(), "OUTCOME_"))]++
	}
	l.turns[e.GetTurn()] = true
	if calls != end.GetCalls() || !maps.Equal(outcomes, end.GetOutcomes()) {
		return fmt.Errorf("turn %d has ended with %d calls, %v, and %d were seen, %v", e.GetTurn(), end.GetCalls(), end.GetOutcomes(), calls, outcomes)
	}
	return nil
}
