package journal_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/daemon/journal"
)

// TestNotes compares what is known of calls with a map, while records come and are dropped, state is kept without records, the log
// is read by prefix, and the store is opened again.
func TestNotes(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		s := open(t, dir)
		l := create(t, s, "a")
		want := map[string][]byte{}
		value := func(n int) []byte { return fmt.Append(nil, n, " ", strings.Repeat("x", r.IntN(3000))) }
		for n := range 300 {
			call := fmt.Sprint(r.IntN(40))
			key := journal.NoteKey(call)
			switch r.IntN(12) {
			case 0:
				if err := l.Trim(l.First() + uint64(r.IntN(40))); err != nil {
					t.Fatal(err)
				}
			case 1:
				want[key] = value(n)
				l.Keep(journal.Committed, journal.Put{Key: key, Value: want[key]})
			case 2:
				want[key] = value(n)
				l.Enqueue(journal.Entry{Call: call, Note: []byte("older"), State: []journal.Put{{Key: key, Value: want[key]}}})
			case 3:
				l.Enqueue(journal.Entry{Call: call, Body: value(n)}) // has no note
			case 4:
				other := fmt.Sprint("key", r.IntN(3))
				want[other] = value(n)
				l.Enqueue(journal.Entry{Body: value(n), State: []journal.Put{{Key: other, Value: want[other]}}})
			case 5:
				want[key] = value(n)
				l.Enqueue(journal.Entry{Call: call, Note: []byte("first")}, journal.Entry{Call: call, Note: want[key], Body: value(n)})
			default:
				want[key] = value(n)
				l.Enqueue(journal.Entry{Call: call, Note: want[key], Body: value(n)})
			}
			if r.IntN(60) == 0 {
				shut(t, s)
				s = open(t, dir)
				l = lookup(t, s, "a")
			}
		}
		if _, err := l.Append(journal.Entry{}); err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"", "ca", journal.Notes, journal.NoteKey("1"), "key"} {
			got, err := l.State(prefix)
			if err != nil {
				t.Fatal(err)
			}
			under := map[string][]byte{}
			for key, value := range want {
				if bytes.HasPrefix([]byte(key), []byte(prefix)) {
					under[key] = value
				}
			}
			if diff := cmp.Diff(under, got); diff != "" {
				t.Fatalf("seed %d, prefix %q (-want +got):\n%s", seed, prefix, diff)
			}
		}
		shut(t, s)
	}
}

// TestNotesOfOldDatabase: what an older version has kept of calls is there, gives way to newer notes, and a note that was made before
// the records were dropped stays.
func TestNotesOfOldDatabase(t *testing.T) {
	s := open(t, copyFiles(t, "testdata/v2"))
	l := lookup(t, s, "open")
	if _, err := l.Append(journal.Entry{Call: "1-3", Note: []byte("new")}, journal.Entry{Call: "2-0", Note: []byte("other")}); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"call:1-0": []byte("open 3"), "call:1-1": []byte("open 6"), "call:1-2": []byte("open 9"), "call:1-3": []byte("new"), "call:2-0": []byte("other")}
	for _, upTo := range []uint64{0, 12, 14} {
		if err := l.Trim(upTo); err != nil {
			t.Fatal(err)
		}
		got, err := l.State(journal.Notes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("up to %d (-want +got):\n%s", upTo, diff)
		}
	}
}
