// What keeps calls waiting beside places: memory and pressure.

package gate

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemory: a call is admitted only if what is available, less what those that were just admitted are expected to take, leaves the
// reserve. What is expected is what calls of its key took. One is always admitted if nothing is inside.
func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var available atomic.Int64
		available.Store(6 * giga)
		g := New(Config{Slots: 10, Patience: time.Minute, Reserve: giga, Machine: func() Machine {
			return Machine{Total: 10 * giga, Available: available.Load()}
		}})
		learn := g.Enter("a", "link")
		learn.Took(3 * giga)
		learn.Leave()
		first := g.Enter("a", "link")
		second := g.Enter("b", "link")
		if !first.Admitted() || second.Admitted() {
			t.Fatalf("admitted: %v, %v", first.Admitted(), second.Admitted())
		}
		if small := g.Enter("c", "touch"); small.Admitted() {
			t.Error("a small call has overtaken one that waits for memory, which may starve then")
		} else {
			small.Leave()
		}
		var told Delay
		done := make(chan error)
		go func() { done <- second.Wait(t.Context(), func(d Delay) { told = d }) }()
		time.Sleep(moment)
		synctest.Wait()
		if told.For != Memory || told.Expected != 3*giga || told.Available != 6*giga || told.Reserve != giga || told.Waiting[Memory] != 1 {
			t.Errorf("told %+v", told)
		}
		available.Store(3 * giga) // the first has taken what it was expected to take
		time.Sleep(settling)
		synctest.Wait()
		if second.Admitted() {
			t.Error("the second is admitted although only 3 GiB are available")
		}
		available.Store(5 * giga)
		time.Sleep(recheck)
		if err := <-done; err != nil || !second.Admitted() {
			t.Errorf("with 5 GiB available the second is told %v", err)
		}
		third := g.Enter("c", "link")
		err := third.Wait(t.Context(), func(Delay) { available.Store(0) })
		if busy, is := errors.AsType[*Busy](err); !is || busy.For != Memory || g.Load().Refused[Memory] != 1 {
			t.Errorf("the third is told %+v", err)
		}
		fourth := g.Enter("d", "link")
		first.Leave()
		holds(t, g, 1, 1)
		second.Leave()
		if !fourth.Admitted() {
			t.Error("nothing is inside, and one that waits for memory is not admitted")
		}
	})
}

// TestReserve: without a setting a tenth of the memory stays available, but not less than 256 MiB.
func TestReserve(t *testing.T) {
	t.Parallel()
	for total, want := range map[int64]int64{giga: 256 << 20, 100 * giga: 10 * giga} {
		g := New(Config{Slots: 2, Machine: func() Machine { return Machine{Total: total, Available: want + 2*unknownPeak} }})
		all := []*Pass{g.Enter("a", "a"), g.Enter("b", "b"), g.Enter("c", "c")}
		if !all[1].Admitted() || all[2].Admitted() || g.Load().Reserve != want {
			t.Errorf("of %d bytes %d stay available, want %d", total, g.Load().Reserve, want)
		}
	}
}

// TestPressure: pressure delays calls that have room, each by a moment, and never refuses one. Quick ones are not delayed.
func TestPressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{
			Slots: 10, Patience: 2500 * time.Millisecond, Quick: time.Second,
			Machine: func() Machine { return Machine{Total: 100 * giga, Available: 90 * giga, MemoryPressure: 50} },
		})
		g.likes.of("make").wasLong()
		first := g.Enter("first", "make") // nothing is inside
		began := time.Now()
		var took []time.Duration
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, session := range []string{"a", "b", "c", "d"} {
			p := g.Enter(session, "make")
			all.Go(func() {
				if err := p.Wait(t.Context(), func(d Delay) {
					if d.For != Pressure {
						t.Errorf("told %+v", d)
					}
				}); err != nil {
					t.Errorf("refused: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(began))
			})
		}
		if quick := g.Enter("quick", "touch"); !first.Admitted() || !quick.Admitted() {
			t.Error("the first one, or a quick one, is delayed")
		}
		all.Wait()
		slices.Sort(took)
		want := []time.Duration{breath, 2 * breath, g.config.Patience, g.config.Patience}
		if !slices.Equal(took, want) {
			t.Errorf("they were admitted after %v, want %v", took, want)
		}
		if l := g.Load(); l.Refused != [reasons]uint64{} {
			t.Errorf("refused: %v", l.Refused)
		}
	})
}

// TestMemoryBesideQuick: a call that takes long does not wait for memory for as long as quick ones come and go.
func TestMemoryBesideQuick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Slots: 2, Patience: time.Minute, Quick: time.Minute, Reserve: giga, Machine: func() Machine {
			return Machine{Total: 10 * giga, Available: 2 * giga}
		}})
		for key, peak := range map[string]int64{"link": 3 * giga, "touch": 1} {
			p := g.Enter("a", key)
			p.Took(peak)
			p.Leave()
		}
		g.likes.of("link").wasLong()
		if quick := g.Enter("a", "touch"); !quick.Admitted() {
			t.Fatal("a quick call is not admitted")
		}
		if !g.Enter("b", "link").Admitted() {
			t.Error("the only call that takes long waits for memory")
		}
		if g.Enter("c", "link").Admitted() {
			t.Error("another is admitted beside it")
		}
	})
}
