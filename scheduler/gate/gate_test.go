// Who is admitted when. Time does not pass by itself in these tests.

package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// admitted returns the names of those that have been admitted, in the order of the list.
func admitted(names []string, passes map[string]*Pass) (in []string) {
	for _, name := range names {
		if passes[name].Admitted() {
			in = append(in, name)
		}
	}
	return in
}

// holds checks how many are inside and wait.
func holds(t *testing.T, g *Gate, inside, waiting int) {
	t.Helper()
	if l := g.Load(); l.Inside != inside || l.Queued() != waiting {
		t.Errorf("%d are inside and %d wait, want %d and %d", l.Inside, l.Queued(), inside, waiting)
	}
}

// TestOrder: those that wait are admitted first in, first out by session, and in each session in the order in which they came.
func TestOrder(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	busy := g.Enter("busy", "")
	names := []string{"a1", "a2", "a3", "b1", "c1", "c2"}
	passes := map[string]*Pass{}
	for _, name := range names {
		passes[name] = g.Enter(name[:1], "")
	}
	holds(t, g, 1, 6)
	if l := g.Load(); l.Sessions != 3 || l.Waiting[Slots] != 6 {
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
	holds(t, g, 0, 0)
}

// TestNewSessionsTurn: a session that comes later goes behind those that wait, and in front of their next ones.
func TestNewSessionsTurn(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	first := g.Enter("a", "")
	names := []string{"a1", "a2", "b1"}
	passes := map[string]*Pass{"a1": g.Enter("a", ""), "a2": g.Enter("a", "")}
	first.Leave()
	passes["b1"] = g.Enter("b", "")
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
		g.Enter("a", "")
		g.Enter("b", "")
		began, notices := time.Now(), 0
		p := g.Enter("c", "")
		err := p.Wait(t.Context(), func(d Delay) {
			notices++
			if waited := time.Since(began); waited != moment || d.For != Slots || d.Queued() != 1 {
				t.Errorf("a notice after %s of %+v", waited, d)
			}
		})
		busy, is := errors.AsType[*Busy](err)
		if !is || busy.Waited != time.Minute || busy.For != Slots || busy.Inside != 2 || busy.Queued() != 1 || notices != 1 {
			t.Errorf("after %s and %d notices: %v %+v", time.Since(began), notices, err, busy)
		}
		p.Leave()
		holds(t, g, 2, 0)
		if l := g.Load(); l.Refused[Slots] != 1 || l.Refused[Memory] != 0 {
			t.Errorf("refused: %v", l.Refused)
		}
	})
}

// TestStopped: a pass that stops waiting, by its context or by leaving, is out of the line, and one that was admitted before stays
// so.
func TestStopped(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 1, Patience: time.Minute})
	first, second, third, last := g.Enter("a", ""), g.Enter("b", ""), g.Enter("c", ""), g.Enter("d", "")
	cancelled, why := errors.New("cancelled"), func(Delay) {}
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
	inside, waits := g.Enter("a", ""), g.Enter("a", "")
	ending := errors.New("the end")
	g.Shut(ending)
	for _, p := range []*Pass{waits, g.Enter("b", "")} {
		if err := p.Wait(t.Context(), func(Delay) {}); !errors.Is(err, ending) || p.Admitted() {
			t.Errorf("told %v, admitted: %v", err, p.Admitted())
		}
		p.Leave()
	}
	inside.Leave()
	holds(t, g, 0, 0)
}

// TestNeverMore: whoever comes, waits and goes, never more are inside than may be, and all get in.
func TestNeverMore(t *testing.T) {
	t.Parallel()
	g := New(Config{Slots: 3, Patience: time.Hour})
	var all sync.WaitGroup
	for session := range 50 {
		all.Go(func() {
			for range 20 {
				p := g.Enter(fmt.Sprint(session), "")
				if err := p.Wait(t.Context(), func(Delay) {}); err != nil {
					t.Error(err)
				}
				if l := g.Load(); l.Inside > 3 {
					t.Errorf("%d are inside", l.Inside)
				}
				p.Took(1)
				p.Leave()
			}
		})
	}
	all.Wait()
	holds(t, g, 0, 0)
}

// TestQuick: calls that are expected to be quick do not wait behind long ones, what is not known counts as quick, and what turns
// out to be long is so from then on, also for those like it that wait.
func TestQuick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Patience: time.Hour, Quick: 2 * time.Second})
		first := g.Enter("a", "make")
		second, third := g.Enter("b", "make"), g.Enter("c", "touch")
		holds(t, g, 1, 2)
		time.Sleep(2 * time.Second) // the first is found to be long, and so is its key
		synctest.Wait()
		if second.Admitted() || !third.Admitted() {
			t.Errorf("beside a build another build is admitted: %v, a touch: %v", second.Admitted(), third.Admitted())
		}
		third.Took(0)
		third.Leave()
		for range 100 { // each at once, however many builds wait
			p := g.Enter("d", "touch")
			if !p.Admitted() {
				t.Fatal("a touch waits behind a build")
			}
			p.Took(0)
			p.Leave()
		}
		first.Took(0)
		first.Leave()
		if !second.Admitted() {
			t.Error("the second build is not admitted after the first")
		}
		second.Took(0)
		second.Leave()
		runs := func(key string, ran time.Duration, want kind) {
			t.Helper()
			p := g.Enter("a", key)
			defer p.Leave()
			time.Sleep(ran)
			if p.Took(0); p.kind != want {
				t.Errorf("%s is of kind %d, want %d", key, p.kind, want)
			}
		}
		runs("make", time.Second, ordinary)
		runs("make", time.Minute, ordinary) // which was not expected any more
		runs("make", time.Second, ordinary)
		runs("make", time.Second, ordinary)
		runs("make", time.Second, quick)
		runs("touch", time.Minute, ordinary) // it was quick so often that once does not count
		runs("touch", 0, quick)
		runs("touch", time.Minute, ordinary)
		runs("touch", time.Minute, ordinary)
		runs("touch", 0, ordinary)
	})
}

// TestFading: what was long and does not get in is expected to be quick after a while, since nothing else could show that it is.
func TestFading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Patience: time.Hour, Quick: 2 * time.Second})
		slow := g.Enter("a", "touch")
		time.Sleep(time.Minute)
		slow.Took(0)
		slow.Leave()
		g.likes.of("make").wasLong()
		g.Enter("b", "make")
		next, began := g.Enter("a", "touch"), time.Now()
		if err := next.Wait(t.Context(), func(Delay) {}); err != nil || time.Since(began) != 2*fading {
			t.Errorf("a touch beside a long build is told %v after %s", err, time.Since(began))
		}
	})
}

// TestCrowd: calls that were expected to be quick and are not cannot fill the machine: there is a bound.
func TestCrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 2, Patience: time.Hour, Quick: 2 * time.Second})
		for n := range 100 {
			g.Enter(fmt.Sprint("s", n), fmt.Sprint("a program of its own ", n))
		}
		for range 10 {
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		holds(t, g, crowding*2, 100-crowding*2)
	})
}

// TestAway: a call that waits for something else frees its place after a moment, and goes on at once when it has that, however many
// are inside by then.
func TestAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Patience: time.Hour})
		asks, waits, last := g.Enter("a", ""), g.Enter("b", ""), g.Enter("c", "")
		asks.Away()() // shorter than a moment
		time.Sleep(2 * moment)
		synctest.Wait()
		holds(t, g, 1, 2)
		backs := []func(){asks.Away(), asks.Away()}
		time.Sleep(moment)
		synctest.Wait()
		if !waits.Admitted() || last.Admitted() {
			t.Fatalf("while it asks the next is inside: %v, and the one behind it: %v", waits.Admitted(), last.Admitted())
		}
		backs[0]()
		holds(t, g, 1, 1) // it still waits for the other answer
		backs[1]()
		backs[1]() // which has no effect
		holds(t, g, 2, 1)
		waits.Leave()
		holds(t, g, 1, 1)
		asks.Away()
		asks.Leave() // before the moment has passed
		if time.Sleep(2 * moment); !last.Admitted() {
			t.Error("the last one is not inside")
		}
		synctest.Wait()
		holds(t, g, 1, 0)
		late := last.Away()
		time.Sleep(2 * moment)
		last.Leave() // while it is away
		late()
		holds(t, g, 0, 0)
		var none *Pass
		none.Away()()
		none.Took(1)
		if !none.Admitted() || none.Wait(t.Context(), nil) != nil {
			t.Error("a pass without a place waits for one")
		}
		none.Leave()
	})
}

// giga is a machine of so many GiB.
const giga = 1 << 30

// TestAwayCounts: the time that a call had a place before it was away counts.
func TestAwayCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 1, Patience: time.Hour, Quick: 10 * time.Second})
		p := g.Enter("a", "make")
		time.Sleep(7 * time.Second)
		back := p.Away()
		time.Sleep(time.Hour) // from a moment on it has no place
		back()
		time.Sleep(time.Second)
		if p.Took(0); p.kind != quick {
			t.Errorf("after 9 s it is of kind %d", p.kind)
		}
		time.Sleep(2 * time.Second)
		if p.Took(0); p.kind != ordinary {
			t.Errorf("after 11 s it is of kind %d", p.kind)
		}
	})
}

// TestLikes: what is kept of calls is bounded, and what was not asked for for the longest time goes first. A smaller peak counts by
// and by.
func TestLikes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := likes{}
		for n := range 3 * mostLikes {
			l.of(fmt.Sprint(n)).took(4096)
			time.Sleep(time.Millisecond)
			l.of("often").took(1000)
		}
		if len(l) != mostLikes || l.of("often").peak != 1000 || l.of("0").peak != 0 {
			t.Errorf("%d are kept, %+v", len(l), l.of("often"))
		}
		one := l.of("one")
		var peaks []int64
		for _, peak := range []int64{0, 1000, 0, 100, 100, 5000} {
			one.took(peak)
			peaks = append(peaks, one.expected())
		}
		if want := []int64{unknownPeak, 1000, 1000, 750, 562, 5000}; !slices.Equal(peaks, want) {
			t.Errorf("expected %v, want %v", peaks, want)
		}
	})
}

// BenchmarkPass is what the gate costs a call that does not wait.
func BenchmarkPass(b *testing.B) {
	g := New(Config{Slots: 2, Patience: time.Minute, Quick: time.Second, Machine: func() Machine { return ReadMachine("/") }})
	b.ReportAllocs()
	for b.Loop() {
		p := g.Enter("a", "make")
		p.Took(1)
		p.Leave()
	}
}
