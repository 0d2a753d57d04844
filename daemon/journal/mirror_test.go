package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/daemon/journal"
)

func openWith(t testing.TB, config journal.Config) *journal.Store {
	t.Helper()
	s, err := journal.Open(t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // most tests have closed it
	return s
}

// contents is everything that a store holds, to be compared.
func contents(t testing.TB, s *journal.Store) map[string]any {
	t.Helper()
	infos, err := s.Logs()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for _, info := range infos {
		l := lookup(t, s, info.Name)
		state, err := l.State("")
		if err != nil {
			t.Fatal(err)
		}
		var lines []string // strings: comparing bytes one by one takes a minute
		for _, r := range all(t, l, 0) {
			lines = append(lines, fmt.Sprint(r.Seq, r.Time, r.Kind, r.Call, r.Turn, " ", string(r.Body)))
		}
		found[info.Name] = []any{info.Created, info.Sealed.IsZero(), info.First, l.Last(), lines, fmt.Sprint(state)}
	}
	return found
}

func applyAll(t testing.TB, s *journal.Store, changes []journal.Change) {
	t.Helper()
	for _, c := range changes {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
}

// churn changes a store at random, from several goroutines.
func churn(t testing.TB, s *journal.Store, seed uint64) {
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			name, kept := fmt.Sprint("log", n), 0
			l, err := s.Create(name)
			for range 120 {
				if err != nil {
					t.Error(err)
					return
				}
				switch r.IntN(12) {
				case 0:
					_, err = l.Keep(journal.Committed, journal.Put{Key: fmt.Sprint("k", r.IntN(5)), Value: []byte(fmt.Sprint(r.IntN(100)))}).Wait()
				case 1:
					l.Keep(journal.Synced, journal.Put{Key: fmt.Sprint("k", r.IntN(5))})
				case 2:
					if kept++; kept%4 == 0 {
						err = l.Seal()
						if err == nil && kept%8 == 0 {
							err = s.Remove(name)
						}
						name += "+"
						if err == nil {
							l, err = s.Create(name)
						}
					}
				default:
					l.Enqueue(journal.Entry{
						Kind: journal.Kind(r.IntN(9)), Call: fmt.Sprint("c", r.IntN(20)), Turn: r.Uint64N(10), Body: []byte(strings.Repeat("b", r.IntN(5000))),
						Durability: journal.Durability(r.IntN(2)), Note: []byte(fmt.Sprint("note", r.IntN(100))),
						State: []journal.Put{{Key: fmt.Sprint("k", r.IntN(5)), Value: []byte{byte(r.IntN(256))}}},
					})
				}
			}
			_, err = l.Keep(journal.Committed).Wait()
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestMirrorHasEverything changes a store at random and holds its mirror, and what is exported of it, against it.
func TestMirrorHasEverything(t *testing.T) {
	for _, unsynced := range []bool{false, true} {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		copied := openWith(t, journal.Config{Epoch: "the first one's", Unsynced: true})
		var given []journal.Change
		s := openWith(t, journal.Config{Unsynced: unsynced, Mirror: func(_ string, changes []journal.Change, _ func()) error {
			given = append(given, changes...)
			applyAll(t, copied, changes)
			return nil
		}})
		churn(t, s, seed)
		if diff := cmp.Diff(contents(t, s), contents(t, copied)); diff != "" {
			t.Error("the copy differs:\n" + diff)
		}
		if copied.Epoch() != "the first one's" {
			t.Errorf("the copy's epoch is %q", copied.Epoch())
		}
		exported := openWith(t, journal.Config{Unsynced: true})
		for c, err := range s.Export() {
			if err != nil {
				t.Fatal(err)
			}
			applyAll(t, exported, []journal.Change{c, c})
		}
		if diff := cmp.Diff(contents(t, s), contents(t, exported)); diff != "" {
			t.Error("what was exported differs:\n" + diff)
		}
	}
}

// TestExportOfATrimmedLog keeps the numbers, and the notes of calls whose records are gone.
func TestExportOfATrimmedLog(t *testing.T) {
	s := openWith(t, journal.Config{})
	l := create(t, s, "trimmed")
	for n := range 600 {
		if _, err := l.Append(journal.Entry{Call: fmt.Sprint("c", n), Note: []byte{byte(n)}, Body: []byte("body")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, upTo := range []uint64{0, 100, 600} {
		if err := l.Trim(upTo); err != nil {
			t.Fatal(err)
		}
		exported := openWith(t, journal.Config{})
		for c, err := range s.Export() {
			if err != nil {
				t.Fatal(err)
			}
			applyAll(t, exported, []journal.Change{c})
		}
		if diff := cmp.Diff(contents(t, s), contents(t, exported)); diff != "" {
			t.Errorf("trimmed up to %d, what was exported differs:\n%s", upTo, diff)
		}
		if last := add(t, lookup(t, exported, "trimmed"), "next"); last != 601 {
			t.Errorf("the next number is %d, want 601", last)
		}
	}
}

// TestNothingIsShownBeforeTheMirrorHasIt holds the mirror up: no reader sees a record meanwhile, and a group gathers.
func TestNothingIsShownBeforeTheMirrorHasIt(t *testing.T) {
	asked, answer := make(chan int), make(chan error)
	s := openWith(t, journal.Config{Mirror: func(_ string, changes []journal.Change, _ func()) error {
		asked <- len(changes)
		return <-answer
	}})
	l := create(t, s, "log")
	cursor := l.Follow(0)
	first := l.Enqueue(journal.Entry{Body: []byte("a")})
	<-asked
	second, third := l.Enqueue(journal.Entry{Body: []byte("b")}), l.Keep(journal.Committed, journal.Put{Key: "k", Value: []byte("v")})
	if records, err := cursor.Next(); len(records) > 0 || err != nil {
		t.Errorf("a reader is shown %s, %v, before the mirror has it", show(records), err)
	}
	if found, err := l.Find("a"); first.Done() || len(found) > 0 || err != nil {
		t.Error("it counts as appended before the mirror has it")
	}
	answer <- nil
	<-cursor.Wake()
	if records, err := cursor.Next(); len(records) != 1 || err != nil {
		t.Errorf("a reader is shown %s, %v, when the mirror has it", show(records), err)
	}
	if n := <-asked; n != 2 {
		t.Errorf("%d changes have gathered, want 2", n)
	}
	fenced := errors.New("another has taken over")
	answer <- fenced
	for _, p := range []*journal.Pending{second, third, l.Enqueue(journal.Entry{})} {
		if _, err := p.Wait(); !errors.Is(err, fenced) {
			t.Errorf("after the mirror has refused: %v", err)
		}
	}
	if records, err := cursor.Next(); len(records) > 0 || err != nil {
		t.Errorf("a reader is shown %s, %v, which the mirror has refused", show(records), err)
	}
}

// TestEntriesRaceTheSeal: what was taken before a log was sealed is before the seal in the mirror too.
func TestEntriesRaceTheSeal(t *testing.T) {
	var changes []journal.Change
	s := openWith(t, journal.Config{Unsynced: true, Mirror: func(_ string, c []journal.Change, _ func()) error { changes = append(changes, c...); return nil }})
	for n := range 100 {
		l, err := s.Create(fmt.Sprint("l", n))
		if err != nil {
			t.Fatal(err)
		}
		var racing sync.WaitGroup
		for range 16 {
			racing.Go(func() {
				for {
					if _, err := l.Append(journal.Entry{Body: []byte("x")}); err != nil {
						if !errors.Is(err, journal.ErrSealed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		if err := l.Seal(); err != nil {
			t.Error(err)
		}
		racing.Wait()
	}
	copied := openWith(t, journal.Config{Unsynced: true})
	wanted := contents(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	applyAll(t, copied, changes)
	if diff := cmp.Diff(wanted, contents(t, copied)); diff != "" {
		t.Error("the copy differs:\n" + diff)
	}
}

func TestApplyRefusesAHole(t *testing.T) {
	s := openWith(t, journal.Config{})
	applyAll(t, s, []journal.Change{{Log: "log", Created: time.Unix(1, 0), First: 5, Entries: make([]journal.Entry, 3)}})
	if err := s.Apply(journal.Change{Log: "log", First: 9, Entries: make([]journal.Entry, 1)}); !errors.Is(err, journal.ErrHole) {
		t.Error("a change that begins behind a hole was made")
	}
	applyAll(t, s, []journal.Change{{Log: "log", First: 7, Entries: make([]journal.Entry, 2)}, {Log: "none", Removed: true}})
	if l := lookup(t, s, "log"); l.First() != 5 || l.Last() != 8 {
		t.Errorf("the log holds %d to %d, want 5 to 8", l.First(), l.Last())
	}
}

// TestMirrorThatHolds: readers see what a mirror has that holds back what they pass on; what waits for the mirror waits.
func TestMirrorThatHolds(t *testing.T) {
	has, store := make(chan struct{}), make(chan error)
	s := openWith(t, journal.Config{Unsynced: true, Mirror: func(_ string, _ []journal.Change, held func()) error {
		held()
		held() // as after a connection that has ended
		has <- struct{}{}
		return <-store
	}})
	l := create(t, s, "l")
	cursor := l.Follow(0)
	defer cursor.Close()
	for n, outcome := range []error{nil, errors.New("refused")} {
		pending := l.Enqueue(journal.Entry{Body: []byte("b")})
		<-has
		if records, err := cursor.Next(); len(records) != 1 || records[0].Seq != uint64(n+1) || err != nil {
			t.Fatalf("a reader sees %v, %v", records, err)
		}
		if pending.Done() {
			t.Error("what the mirror has not stored counts as appended")
		}
		store <- outcome
		if _, err := pending.Wait(); !errors.Is(err, outcome) {
			t.Errorf("the outcome is %v, want %v", err, outcome)
		}
	}
	if records, err := cursor.Next(); len(records) > 0 || err != nil {
		t.Errorf("records come twice: %v, %v", records, err)
	}
}
