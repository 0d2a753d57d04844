// The scheduler, under a clock that moves only when everybody waits: an hour-long
// call takes no real time, and "has not started" is a fact, not a guess.

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A diary is what happened, in order, with the time at which it did.
type diary struct {
	begin time.Time
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, time.Since(d.begin).String()+" "+fmt.Sprintf(format, args...))
}

// A timed call takes some time, and ends at once when it is told to stop.
type timed struct {
	batched
	id     string
	turn   uint64
	serial bool
	takes  time.Duration
	dies   time.Duration // how long it takes to stop
	asks   time.Duration // how long it is outside before that
	alone  bool          // goes on alone, and then takes that time
	fails  error         // aborts its siblings
	diary  *diary
}

func (c timed) ID() string       { return c.id }
func (c timed) Turn() uint64     { return max(c.turn, 1) }
func (c timed) Concurrent() bool { return !c.serial }
func (c timed) Skip(cause error) { c.diary.note("%s skipped: %v", c.id, cause) }

func (c timed) Run(ctx context.Context, outside func(func()) error, alone func() error) error {
	c.diary.note("%s starts", c.id)
	if c.alone {
		if err := alone(); err != nil {
			c.diary.note("%s stopped while it waited to be alone: %v", c.id, err)
			return nil
		}
		c.diary.note("%s is alone", c.id)
	}
	if c.asks > 0 {
		if err := outside(func() { sleep(ctx, c.asks) }); err != nil {
			c.diary.note("%s stopped while it asked: %v", c.id, err)
			return nil
		}
		c.diary.note("%s resumes", c.id)
	}
	if !sleep(ctx, c.takes) {
		time.Sleep(c.dies)
		c.diary.note("%s stopped: %v", c.id, context.Cause(ctx))
		return nil
	}
	c.diary.note("%s ends", c.id)
	return c.fails
}

// sleep reports whether d passed before the context was done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// A bench is a scheduler with one queue and a diary, in a bubble of its own.
type bench struct {
	*testing.T
	*diary
	scheduler *Scheduler
	queue     *Queue
}

// inBubble runs a test that ends by itself, closing the scheduler after it.
func inBubble(t *testing.T, limit int, test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, diary: &diary{begin: time.Now()}, scheduler: New(limit)}
		b.queue = b.newQueue()
		test(b)
		b.scheduler.Close()
	})
}

func (b *bench) newQueue() *Queue {
	return b.scheduler.NewQueue(Streaming, DefaultConcurrency)
}

func (b *bench) add(calls ...timed) { b.addTo(b.queue, "", calls...) }

func (b *bench) addTo(q *Queue, parent string, calls ...timed) {
	for _, c := range calls {
		c.diary = b.diary
		q.Add(c, parent)
	}
}

// wait waits until the queue is idle.
func (b *bench) wait() {
	b.Helper()
	if err := b.queue.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// says fails unless the diary has these lines. Lines of the same instant may
// come in any order.
func (b *bench) says(want ...string) {
	b.Helper()
	synctest.Wait()
	b.mu.Lock()
	got := slices.Clone(b.lines)
	b.mu.Unlock()
	slices.Sort(got)
	sorted := slices.Sorted(slices.Values(want))
	if !slices.Equal(got, sorted) {
		b.Errorf("happened:\n%q\nwant:\n%q", got, sorted)
	}
}

func TestAnHourLongCallIsAbortedBySibling(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		failed := errors.New("Bash(mkdir build) failed")
		b.add(
			timed{id: "hour", takes: time.Hour, dies: time.Second},
			timed{id: "mkdir", takes: time.Minute, fails: failed},
			timed{id: "edit", serial: true},
			timed{id: "other turn", turn: 2, serial: true, takes: time.Second},
		)
		b.queue.EndTurn(2)
		b.queue.EndTurn(1)
		b.wait()
		b.says(
			"0s hour starts", "0s mkdir starts",
			"1m0s mkdir ends",
			"1m0s edit skipped: Bash(mkdir build) failed",
			"1m1s hour stopped: Bash(mkdir build) failed",
			"1m1s other turn starts", "1m2s other turn ends",
		)
	})
}

func TestCapOfSession(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		b.queue.SetConcurrency(2)
		b.add(timed{id: "a", takes: 3}, timed{id: "b", takes: 5}, timed{id: "c", takes: 5}, timed{id: "d", takes: 1})
		b.wait()
		b.says("0s a starts", "0s b starts", "3ns a ends", "3ns c starts", "5ns b ends", "5ns d starts", "6ns d ends", "8ns c ends")
	})
}

func TestCapOfDaemonSparesIdleSessions(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		b.add(timed{id: "a1", takes: 10}, timed{id: "a2", takes: 20}, timed{id: "a3", takes: 10})
		b.addTo(b.newQueue(), "", timed{id: "b1", takes: 5}, timed{id: "b2", takes: 5})
		b.wait()
		// b1 is over the cap, as b had nothing running; then b2 likewise.
		b.says(
			"0s a1 starts", "0s a2 starts", "0s b1 starts",
			"5ns b1 ends", "5ns b2 starts", "10ns b2 ends", "10ns a1 ends",
			"10ns a3 starts", "20ns a2 ends", "20ns a3 ends",
		)
	})
}

func TestAThousandQueuedCallsDelayNobody(t *testing.T) {
	inBubble(t, 4, func(b *bench) {
		b.queue.SetConcurrency(MaxConcurrency)
		other := b.newQueue()
		b.addTo(other, "", timed{id: "long", takes: time.Hour})
		order := &diary{begin: b.begin}
		for n := range 1000 {
			b.queue.Add(timed{id: fmt.Sprint("many", n), takes: time.Second, diary: order}, "")
		}
		time.Sleep(time.Second / 2)
		// The other session has a call running already, so this one has to stand
		// in line, behind one call of the first session at most.
		b.addTo(other, "", timed{id: "one", takes: time.Second})
		time.Sleep(10 * time.Second)
		b.says("0s long starts", "1s one starts", "2s one ends")
		b.wait()
		if len(order.lines) != 2000 {
			b.Errorf("%d starts and ends of a thousand calls", len(order.lines))
		}
	})
}

func TestSessionsTakeTurns(t *testing.T) {
	inBubble(t, 9, func(b *bench) {
		sessions := map[string]*Queue{"a": b.queue, "b": b.newQueue(), "c": b.newQueue()}
		for _, name := range []string{"a", "b", "c"} {
			b.addTo(sessions[name], "", timed{id: name, takes: time.Hour})
		}
		// Six calls of a fourth session take the rest, and end one by one.
		fourth := b.newQueue()
		for n := range 6 {
			b.addTo(fourth, "", timed{id: fmt.Sprint("x", n), takes: time.Duration(n+1) * time.Minute})
		}
		for _, name := range []string{"a", "b", "c"} {
			for n := range 3 {
				b.addTo(sessions[name], "", timed{id: fmt.Sprint(name, n), takes: time.Hour})
			}
		}
		time.Sleep(10 * time.Minute)
		b.says(
			"0s a starts", "0s b starts", "0s c starts",
			"0s x0 starts", "0s x1 starts", "0s x2 starts", "0s x3 starts", "0s x4 starts", "0s x5 starts",
			"1m0s x0 ends", "2m0s x1 ends", "3m0s x2 ends", "4m0s x3 ends", "5m0s x4 ends", "6m0s x5 ends",
			"1m0s a0 starts", "2m0s b0 starts", "3m0s c0 starts", "4m0s a1 starts", "5m0s b1 starts", "6m0s c1 starts",
		)
	})
}

func TestNestedCallsRunInTheirParentsPlace(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		b.queue.SetConcurrency(1)
		b.add(timed{id: "agent", serial: true, asks: time.Minute}, timed{id: "next", serial: true})
		b.addTo(b.queue, "agent",
			timed{id: "inner edit", serial: true, takes: time.Second},
			timed{id: "inner hour", takes: time.Hour, dies: time.Second},
			timed{id: "inner read"})
		b.wait()
		b.says(
			"0s agent starts", "0s inner edit starts", "1s inner edit ends", "1s inner hour starts",
			"1m0s agent resumes", "1m0s agent ends",
			"1m0s inner read skipped: "+ErrParentNotRunning.Error(),
			"1m1s inner hour stopped: "+ErrParentNotRunning.Error(),
			"1m1s next starts", "1m1s next ends",
		)
	})
}

func TestWhoAsksHoldsNoSlot(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.queue.SetConcurrency(2)
		b.add(
			timed{id: "asks", asks: 5, takes: 5},
			timed{id: "a", takes: 10},
			timed{id: "b", takes: 10},
		)
		b.wait()
		// The daemon has one slot: who returns waits for it, but before b.
		b.says(
			"0s asks starts", "0s a starts", "10ns a ends", "10ns asks resumes",
			"15ns asks ends", "15ns b starts", "25ns b ends",
		)
	})
}

func TestStopReachesWhoAsksAndWhoWaitsForItsSlot(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.add(timed{id: "asks", asks: time.Hour}, timed{id: "back", asks: 1}, timed{id: "a", takes: time.Minute})
		time.Sleep(time.Second)
		b.queue.Stop("asks", errors.New("no longer wanted"))
		b.queue.Stop("back", errors.New("nor this"))
		b.wait()
		b.says(
			"0s asks starts", "0s back starts", "0s a starts",
			"1s asks stopped while it asked: no longer wanted",
			"1s back stopped while it asked: nor this",
			"1m0s a ends",
		)
	})
}

func TestWhoIsStoppedDoesNotBeginToAsk(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		cause := errors.New("cancelled")
		var got error
		b.queue.Add(scripted{id: "late", run: func(ctx context.Context, outside func(func()) error) error {
			<-ctx.Done()
			got = outside(func() { b.Error("it asked") })
			return nil
		}}, "")
		b.queue.Stop("late", cause)
		b.wait()
		if got != cause {
			b.Errorf("outside returned %v, want %v", got, cause)
		}
	})
}

func TestInterruptStopsOnlyWhatMayBeInterrupted(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		b.add(timed{id: "read", takes: time.Hour}, timed{id: "keep", takes: time.Hour}, timed{id: "edit", serial: true})
		b.add(timed{id: "next", turn: 2, serial: true})
		time.Sleep(time.Second)
		b.queue.StopTurns(errors.New("interrupted"), func(t Task) bool { return t.ID() != "keep" })
		b.add(timed{id: "late", turn: 2})
		b.queue.EndTurn(1)
		b.queue.EndTurn(2)
		b.wait()
		b.says(
			"0s read starts", "0s keep starts",
			"1s edit skipped: interrupted", "1s next skipped: interrupted", "1s late skipped: interrupted",
			"1s read stopped: interrupted",
			"1h0m0s keep ends",
		)
	})
}

func TestDiscardedTurnEnds(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		b.queue.SetFeed(AtEndOfTurn)
		b.add(timed{id: "held"})
		b.add(timed{id: "held too", turn: 2})
		b.queue.StopTurn(1, errors.New("discarded"), nil)
		b.queue.EndTurn(1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if last := b.queue.plan.turns.last; last != 1 { // everybody waits for us
			b.Errorf("turn %d was the last to end, want 1", last)
		}
		b.queue.EndTurn(2)
		b.wait()
		b.says(
			"0s held skipped: discarded",
			"1m0s held too starts", "1m0s held too ends",
		)
	})
}

func TestShutdown(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		other := b.newQueue()
		b.add(timed{id: "quick", takes: time.Second}, timed{id: "edit", serial: true})
		b.addTo(other, "", timed{id: "hour", takes: time.Hour, dies: 2 * time.Second}, timed{id: "write", serial: true})

		synctest.Wait()
		b.scheduler.Drain(errors.New("shutting down"))
		b.addTo(b.newQueue(), "", timed{id: "new session"})
		drain, cancel := context.WithTimeoutCause(b.Context(), 10*time.Second, errors.New("drain time is over"))
		defer cancel()
		if err := b.scheduler.Wait(drain); err == nil || err.Error() != "drain time is over" {
			b.Errorf("Wait returned %v", err)
		}
		b.scheduler.Stop(errors.New("stopped"))
		if err := b.scheduler.Wait(b.Context()); err != nil {
			b.Errorf("Wait returned %v", err)
		}
		b.says(
			"0s quick starts", "0s hour starts", "0s edit skipped: shutting down", "0s write skipped: shutting down",
			"0s new session skipped: shutting down",
			"1s quick ends", "12s hour stopped: stopped",
		)
	})
}

func TestCloseOfQueueStopsItAlone(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.add(timed{id: "a", takes: time.Hour, dies: time.Second}, timed{id: "b", serial: true})
		b.addTo(b.newQueue(), "", timed{id: "c", takes: time.Minute})
		synctest.Wait()
		b.queue.Close(errors.New("session closed"))
		b.add(timed{id: "late", turn: 9})
		b.wait()
		time.Sleep(time.Hour)
		b.says(
			"0s a starts", "0s c starts", "0s b skipped: session closed", "0s late skipped: session closed",
			"1s a stopped: session closed", "1m0s c ends",
		)
	})
}

// A call that goes on alone waits for those that run, and what waits for it to have ended. One that is stopped while it
// waits learns why.
func TestAlone(t *testing.T) {
	inBubble(t, 16, func(b *bench) {
		b.add(timed{id: "a", takes: 3 * time.Second}, timed{id: "c", takes: time.Second}, timed{id: "b", alone: true, takes: time.Second})
		synctest.Wait()
		b.add(timed{id: "d", takes: time.Second}, timed{id: "e", alone: true})
		b.wait()
		b.add(timed{id: "f", takes: time.Second}, timed{id: "g", alone: true})
		synctest.Wait()
		b.queue.Stop("g", errors.New("cancelled"))
		b.wait()
		b.says(
			"0s a starts", "0s b starts", "0s c starts", "1s c ends", "3s a ends", "3s b is alone", "4s b ends",
			"4s d starts", "4s e starts", "5s d ends", "5s e is alone", "5s e ends",
			"5s f starts", "5s g starts", "5s g stopped while it waited to be alone: cancelled", "6s f ends",
		)
	})
}

func TestCloseJoins(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.add(timed{id: "a", takes: time.Hour, dies: time.Minute}, timed{id: "b", serial: true})
		b.queue.EndTurn(1)
		synctest.Wait()
		b.scheduler.Close()
		if took := time.Since(b.begin); took != time.Minute {
			b.Errorf("Close returned after %v, the call was gone after 1m", took)
		}
		b.add(timed{id: "late"})
		b.addTo(b.newQueue(), "", timed{id: "later"})
		b.wait()
		if err := b.scheduler.Wait(b.Context()); err != nil {
			b.Errorf("Wait after Close returned %v", err)
		}
		closed := ErrClosed.Error()
		b.says(
			"0s a starts", "0s b skipped: "+closed, "1m0s a stopped: "+closed,
			"1m0s late skipped: "+closed, "1m0s later skipped: "+closed,
		)
	})
}
