// What happens at the same time, on the real clock and under the race detector:
// whoever wins, it is one, and every task runs or is skipped, once.

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// batched is what a task of a turn in the Batched ordering is not asked for.
type batched struct{}

func (batched) Touches() Footprint { return Footprint{} }
func (batched) Look() Footprint    { return Footprint{} }
func (batched) Aborts() bool       { return false }

// A scripted task does what its function does.
type scripted struct {
	batched
	id   string
	turn uint64
	run  func(ctx context.Context, outside func(func()) error) error
	skip func(cause error)
}

func (s scripted) ID() string       { return s.id }
func (s scripted) Turn() uint64     { return max(s.turn, 1) }
func (s scripted) Concurrent() bool { return true }
func (s scripted) Skip(cause error) { s.skip(cause) }

func (s scripted) Run(ctx context.Context, outside func(func()) error, _ func() error) error {
	return s.run(ctx, outside)
}

// Two siblings fail at the same moment, each with a cause of its own: the third
// sees one of them, and so does whatever comes later.
func TestTwoAbortsHaveOneCause(t *testing.T) {
	s := New(16)
	defer s.Close()
	for range 200 {
		q := s.NewQueue(Streaming, 3)
		gate := make(chan struct{})
		seen := make(chan error, 2)
		for _, id := range []string{"a", "b"} {
			q.Add(scripted{id: id, run: func(context.Context, func(func()) error) error {
				<-gate
				return errors.New(id)
			}, skip: func(cause error) { t.Errorf("%s skipped: %v", id, cause) }}, "")
		}
		q.Add(scripted{id: "c", run: func(ctx context.Context, _ func(func()) error) error {
			close(gate)
			<-ctx.Done()
			seen <- context.Cause(ctx)
			return errors.New("too late")
		}}, "")
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		q.Add(scripted{id: "d", skip: func(cause error) { seen <- cause }}, "")
		if running, later := <-seen, <-seen; running != later {
			t.Fatalf("the running sibling was aborted by %v, the later one by %v", running, later)
		}
		q.Close(ErrClosed)
	}
}

// Calls finish, ask, fail and are stopped from all sides at once.
func TestEveryTaskRunsOrIsSkippedOnce(t *testing.T) {
	const sessions, turns, calls = 8, 10, 20
	s := New(4)
	var ran, skipped atomic.Int64
	var queues []*Queue
	var clients sync.WaitGroup
	for session := range sessions {
		q := s.NewQueue(Feed(session%2), 1+session)
		queues = append(queues, q)
		clients.Go(func() {
			for turn := range uint64(turns) {
				sendTurn(t, q, turn+1, calls, &ran, &skipped)
			}
			if err := q.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	s.Close()
	if got := ran.Load() + skipped.Load(); got != sessions*turns*calls {
		t.Errorf("%d ran and %d were skipped of %d", ran.Load(), skipped.Load(), sessions*turns*calls)
	}
	for n, q := range queues { // nothing runs any more, so the state is ours to read
		if last := q.plan.turns.last; last != turns {
			t.Errorf("%d of the %d turns of session %d ended", last, turns, n)
		}
	}
	if s.slots != 0 || s.running != 0 {
		t.Errorf("%d slots taken and %d tasks running after Close", s.slots, s.running)
	}
}

// sendTurn sends one turn and stops some of it.
func sendTurn(t *testing.T, q *Queue, turn uint64, calls int, ran, skipped *atomic.Int64) {
	for n := range calls {
		var once atomic.Bool
		count := func(counter *atomic.Int64) {
			if once.Swap(true) {
				t.Errorf("call %d of turn %d ran or was skipped twice", n, turn)
			}
			counter.Add(1)
		}
		q.Add(scripted{
			id: fmt.Sprint(turn, "/", n), turn: turn,
			run: func(_ context.Context, outside func(func()) error) error {
				count(ran)
				if n%3 == 0 && outside(func() {}) != nil {
					return nil
				}
				if rand.IntN(50) == 0 {
					return errors.New("failed")
				}
				return nil
			},
			skip: func(error) { count(skipped) },
		}, "")
		if rand.IntN(4) == 0 {
			q.Stop(fmt.Sprint(turn, "/", rand.IntN(n+1)), errors.New("cancelled"))
		}
	}
	if rand.IntN(4) == 0 {
		q.StopTurn(turn, errors.New("turn cancelled"), nil)
	}
	q.EndTurn(turn)
}
