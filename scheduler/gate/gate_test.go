// Who is admitted when. Time does not pass by itself in these tests.

package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inside returns the names of those that have been admitted, in the order of the list.
func admitted(names []string, passes map[string]*Pass) (in []string) {
	for _, name := range names {
		if passes[name].Admitted() {
			in = append(in, name)
		}
	}
	return in
}

// TestOrder: those that wait are admitted first in, first out by session, and in each session in the order in which they came.
func TestOrder(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	busy := g.Enter("busy")
	names := []string{"a1", "a2", "a3", "b1", "c1", "c2"}
	passes := map[string]*Pass{}
	for _, name := range names {
		passes[name] = g.Enter(name[:1])
	}
	if l := g.Load(); l != (Load{Slots: 1, Inside: 1, Waiting: 6, Sessions: 3}) {
		t.Errorf("the load is %+v", l)
	}
	busy.Leave()
	for _, want := range []string{"a1", "b1", "c1", "a2", "c2", "a3"} {
		if in := admitted(names, passes); len(in) != 1 || in[0] != want {
			t.Fatalf("%v are inside, want %s", in, want)
		}
		passes[want].Leave()
		passes[want].Leave() // which has no effect
	}
	if l := g.Load(); l != (Load{Slots: 1}) {
		t.Errorf("in the end the load is %+v", l)
	}
}

// TestNewSessionsTurn: a session that comes later goes behind those that wait, and in front of their next ones.
func TestNewSessionsTurn(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	first := g.Enter("a")
	names := []string{"a1", "a2", "b1"}
	passes := map[string]*Pass{"a1": g.Enter("a"), "a2": g.Enter("a")}
	first.Leave()
	passes["b1"] = g.Enter("b")
	passes["a1"].Leave()
	if in := admitted(names, passes); fmt.Sprint(in) != "[a2]" {
		t.Errorf("%v are inside: a2 waited before b1 came", in)
	}
}

// TestPatience: a pass waits for as long as it may, is told of once, and its end lets others go on.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 2, Patience: time.Minute})
		g.Enter("a")
		g.Enter("b")
		began, notices := time.Now(), 0
		p := g.Enter("c")
		err := p.Wait(t.Context(), func(l Load) {
			notices++
			if waited := time.Since(began); waited != moment || l.Waiting != 1 {
				t.Errorf("a notice after %s of %+v", waited, l)
			}
		})
		busy, is := errors.AsType[*Busy](err)
		if !is || busy.Waited != time.Minute || busy.Load != (Load{Slots: 2, Inside: 2, Waiting: 1, Sessions: 1}) || notices != 1 {
			t.Errorf("after %s and %d notices: %v %+v", time.Since(began), notices, err, busy)
		}
		p.Leave()
		if l := g.Load(); l != (Load{Slots: 2, Inside: 2}) {
			t.Errorf("in the end the load is %+v", l)
		}
	})
}

// TestStopped: a pass that stops waiting, by its context or by leaving, is out of the line, and one that was admitted before stays
// so.
func TestStopped(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	first, second, third, last := g.Enter("a"), g.Enter("b"), g.Enter("c"), g.Enter("d")
	cancelled, why := errors.New("cancelled"), func(Load) {}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cancelled)
	if err := second.Wait(ctx, why); !errors.Is(err, cancelled) {
		t.Errorf("the second is told %v", err)
	}
	third.Leave()
	first.Leave()
	if err := last.giveUp(cancelled); err != nil || !last.Admitted() {
		t.Errorf("the last is told %v, admitted: %v", err, last.Admitted())
	}
	if err := last.Wait(t.Context(), why); err != nil {
		t.Errorf("the last is told %v", err)
	}
}

// TestShut: once the gate is shut nothing is admitted any more.
func TestShut(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	inside, waits := g.Enter("a"), g.Enter("a")
	ending := errors.New("the end")
	g.Shut(ending)
	for _, p := range []*Pass{waits, g.Enter("b")} {
		if err := p.Wait(t.Context(), func(Load) {}); !errors.Is(err, ending) || p.Admitted() {
			t.Errorf("told %v, admitted: %v", err, p.Admitted())
		}
		p.Leave()
	}
	inside.Leave()
	if l := g.Load(); l != (Load{Slots: 1}) {
		t.Errorf("in the end the load is %+v", l)
	}
}

// TestNeverMore: whoever comes, waits and goes, never more are inside than may be, and all get in.
func TestNeverMore(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 3, Patience: time.Hour})
	var all sync.WaitGroup
	for session := range 50 {
		all.Go(func() {
			for range 20 {
				p := g.Enter(fmt.Sprint(session))
				if err := p.Wait(t.Context(), func(Load) {}); err != nil {
					t.Error(err)
				}
				if l := g.Load(); l.Inside > 3 {
					t.Errorf("%d are inside", l.Inside)
				}
				p.Leave()
			}
		})
	}
	all.Wait()
	if l := g.Load(); l != (Load{Slots: 3}) {
		t.Errorf("in the end the load is %+v", l)
	}
}

// BenchmarkPass is what the gate costs a call that does not wait.
func BenchmarkPass(b *testing.B) {
	g := New(Config{Slots: 2, Patience: time.Minute})
	b.ReportAllocs()
	for b.Loop() {
		g.Enter("a").Leave()
	}
}
