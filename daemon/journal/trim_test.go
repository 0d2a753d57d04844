package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/daemon/journal"
)

// TestShed: what goes by size, by age, and by neither, in a log of ten records
// of 100 bytes (with their 64), made one a minute.
func TestShed(t *testing.T) {
	const each = 164
	noon := time.Unix(1790000000, 0)
	for _, test := range []struct {
		name  string
		bound journal.Bound
		first uint64
	}{
		{"within", journal.Bound{UpTo: 10, Bytes: 10 * each}, 1},
		{"one byte too large", journal.Bound{UpTo: 10, Bytes: 10*each - 1}, 2},
		{"too large", journal.Bound{UpTo: 10, Bytes: 4*each + 5}, 7},
		{"too large, but needed", journal.Bound{UpTo: 3, Bytes: 4 * each}, 4},
		{"nothing may stay", journal.Bound{UpTo: 10}, 11},
		{"old", journal.Bound{UpTo: 10, Bytes: 10 * each, Before: noon.Add(3 * time.Minute)}, 4},
		{"old, but needed", journal.Bound{UpTo: 1, Bytes: 10 * each, Before: noon.Add(time.Hour)}, 2},
		{"old and too large", journal.Bound{UpTo: 10, Bytes: 2 * each, Before: noon.Add(3 * time.Minute)}, 9},
		{"none may go", journal.Bound{}, 1},
	} {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, " sealed=", sealed), func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir)
				l := create(t, s, "a")
				for n := range 10 {
					if _, err := l.Append(journal.Entry{Call: fmt.Sprint(n), Body: make([]byte, 100), Time: noon.Add(time.Duration(n) * time.Minute)}); err != nil {
						t.Fatal(err)
					}
				}
				if sealed {
					if err := l.Seal(); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.Shed(test.bound); err != nil {
					t.Fatal(err)
				}
				for range 2 { // and after a restart
					if l.First() != test.first || l.Last() != 10 {
						t.Errorf("records %d to %d, want %d to 10", l.First(), l.Last(), test.first)
					}
					if bytes, err := l.Bytes(); bytes != int64(11-test.first)*each || err != nil {
						t.Errorf("%d bytes, want %d records (%v)", bytes, 11-test.first, err)
					}
					if got := all(t, l, 0); len(got) != int(11-test.first) {
						t.Errorf("%d records, want %d", len(got), 11-test.first)
					}
					shut(t, s)
					s = open(t, dir)
					l = lookup(t, s, "a")
				}
			})
		}
	}
}

// TestRoomIsGivenBack: a log of many megabytes that is dropped leaves a small
// file, and what others have is untouched.
func TestRoomIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, name := range []string{"small", "large", "later"} {
		l := create(t, s, name)
		for n := range 16 {
			size := 1000
			if name == "large" {
				size = 1 << 20
			}
			if _, err := l.Append(journal.Entry{Call: fmt.Sprint(n), Body: make([]byte, size), State: []journal.Put{{Key: fmt.Sprint(n), Value: []byte(name)}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if size() < 12<<20 {
		t.Fatalf("the database has %d bytes before", size())
	}
	if err := s.Remove("large"); err != nil {
		t.Fatal(err)
	}
	if err := s.Tidy(); err != nil {
		t.Fatal(err)
	}
	if size() > 2<<20 {
		t.Errorf("the database has %d bytes after 16 MiB were dropped", size())
	}
	for _, name := range []string{"small", "later"} {
		if got := all(t, lookup(t, s, name), 0); len(got) != 16 {
			t.Errorf("%s: %d records, want 16", name, len(got))
		}
		if state, err := lookup(t, s, name).State(""); err != nil || len(state) != 16 {
			t.Errorf("%s: %d values, want 16 (%v)", name, len(state), err)
		}
	}
	if ok, err := s.Intact(); err != nil || ok != "ok" {
		t.Errorf("the database is %q (%v)", ok, err)
	}
}

// TestTrimBesideReaders: who reads what is being dropped passes over it; a sound journal is not taken for damaged.
func TestTrimBesideReaders(t *testing.T) {
	s := open(t, t.TempDir())
	l := create(t, s, "a")
	over := make(chan struct{})
	var busy sync.WaitGroup
	for _, work := range []func() error{
		func() error { return l.Shed(journal.Bound{UpTo: max(l.Last(), 40) - 40}) },
		func() error {
			_, err := l.Append(journal.Entry{Call: "c", Body: make([]byte, 3000)})
			return err
		},
		func() error { _, err := l.Find("c"); return err },
	} {
		busy.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := work(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		c := l.Follow(0)
		for range 3 {
			if _, err := c.Next(); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
	close(over)
	busy.Wait()
	if err := s.Damaged(); err != nil {
		t.Error(err)
	}
}
