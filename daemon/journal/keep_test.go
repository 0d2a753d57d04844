package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/daemon/journal"
)

// TestKeep: state without a record takes no number, holds the order of Enqueue, and survives.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	last := add(t, l, "one")
	first := l.Keep(journal.Synced, journal.Put{Key: "k", Value: []byte("1")}, journal.Put{Key: "gone", Value: []byte("x")})
	second := l.Enqueue(journal.Entry{Body: []byte("two"), State: []journal.Put{{Key: "k", Value: []byte("2")}}})
	third := l.Keep(journal.Committed, journal.Put{Key: "gone"})
	for _, pending := range []*journal.Pending{first, second, third} {
		if _, err := pending.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Last(); got != last+1 {
		t.Errorf("the newest record is %d, want %d", got, last+1)
	}
	_, err := l.Keep(journal.Committed, journal.Put{Key: "big", Value: make([]byte, journal.MaxBody+1)}).Wait()
	wantError(t, err, journal.ErrTooLarge)
	shut(t, s)
	state, err := lookup(t, open(t, dir), "a").State("")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"k": []byte("2")}, state); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
