package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/daemon/journal"
)

func open(t testing.TB, dir string) *journal.Store {
	t.Helper()
	s, err := journal.Open(dir, journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // most tests have closed it
	return s
}

func shut(t testing.TB, s *journal.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, s *journal.Store, name string) *journal.Log {
	t.Helper()
	l, err := s.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func lookup(t testing.TB, s *journal.Store, name string) *journal.Log {
	t.Helper()
	l, err := s.Log(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// add appends one entry for each body.
func add(t testing.TB, l *journal.Log, bodies ...string) uint64 {
	t.Helper()
	var entries []journal.Entry
	for _, b := range bodies {
		entries = append(entries, journal.Entry{Body: []byte(b)})
	}
	last, err := l.Append(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// all returns every record after a number, through a new cursor.
func all(t testing.TB, l *journal.Log, after uint64) []journal.Record {
	t.Helper()
	c := l.Follow(after)
	defer c.Close()
	var records []journal.Record
	for {
		next, err := c.Next()
		if err != nil {
			t.Fatalf("after %d records: %v", len(records), err)
		}
		if len(next) == 0 {
			return records
		}
		records = append(records, next...)
	}
}

// show writes records as "1:one 2:two".
func show(records []journal.Record) string {
	var b strings.Builder
	for i, r := range records {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d:%s", r.Seq, r.Body)
	}
	return b.String()
}

func wantRecords(t testing.TB, got []journal.Record, want string) {
	t.Helper()
	if s := show(got); s != want {
		t.Errorf("records are\n\t%s\nwant\n\t%s", s, want)
	}
}

func wantError(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error is %v, want %v", got, want)
	}
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a/b c")
	at := time.Date(2026, 11, 3, 4, 5, 6, 789, time.FixedZone("x", 3600))
	live := l.Follow(0)
	_, err := l.Append(
		journal.Entry{Kind: 255, Call: "turn\x00id\xff", Turn: math.MaxInt64, Time: at, Body: []byte{0, 1, 0xff}},
		journal.Entry{Body: nil, Durability: journal.Synced},
	)
	if err != nil {
		t.Fatal(err)
	}
	fromMemory, err := live.Next()
	if err != nil {
		t.Fatal(err)
	}
	live.Close()
	shut(t, s)
	l = lookup(t, open(t, dir), "a/b c")
	fromDisk := all(t, l, 0)
	for where, got := range map[string][]journal.Record{"memory": fromMemory, "disk": fromDisk} {
		if len(got) != 2 {
			t.Fatalf("%d records from %s, want 2", len(got), where)
		}
		r := got[0]
		if r.Seq != 1 || !r.Time.Equal(at) || r.Kind != 255 || r.Call != "turn\x00id\xff" || r.Turn != math.MaxInt64 || !bytes.Equal(r.Body, []byte{0, 1, 0xff}) {
			t.Errorf("first record from %s: %+v", where, r)
		}
		if got[1].Seq != 2 || len(got[1].Body) != 0 || time.Since(got[1].Time).Abs() > time.Hour {
			t.Errorf("second record from %s: %+v", where, got[1])
		}
		if !got[1].Time.Equal(fromMemory[1].Time) {
			t.Errorf("time from %s is %v, first seen as %v", where, got[1].Time, fromMemory[1].Time)
		}
	}
}

func TestNumbersGoOnAfterReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	a, b := create(t, s, "a"), create(t, s, "b")
	add(t, a, "a1", "a2")
	add(t, b, "b1")
	add(t, a, "a3")
	shut(t, s)
	s = open(t, dir)
	a, b = lookup(t, s, "a"), lookup(t, s, "b")
	add(t, a, "a4")
	add(t, b, "b2")
	wantRecords(t, all(t, a, 0), "1:a1 2:a2 3:a3 4:a4")
	wantRecords(t, all(t, a, 2), "3:a3 4:a4")
	wantRecords(t, all(t, a, 9), "")
	wantRecords(t, all(t, b, 0), "1:b1 2:b2")
}

func TestTrimKeepsNumbers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	for range 2500 { // more than one transaction trims
		l.Enqueue(journal.Entry{Call: "old", Body: []byte("x")})
	}
	behind := l.Follow(0)
	defer behind.Close()
	add(t, l, "y", "z")
	if err := l.Trim(2501); err != nil {
		t.Fatal(err)
	}
	if l.First() != 2502 || l.Last() != 2502 {
		t.Errorf("kept %d to %d, want 2502 to 2502", l.First(), l.Last())
	}
	if got, err := behind.Next(); err != nil || show(got) != "2502:z" {
		t.Errorf("a cursor that was behind reads %s, %v", show(got), err)
	}
	if got, err := l.Find("old"); err != nil || got != nil {
		t.Errorf("trimmed records are found: %s, %v", show(got), err)
	}
	if err := l.Trim(math.MaxUint64); err != nil { // beyond the end: everything
		t.Fatal(err)
	}
	shut(t, s)
	l = lookup(t, open(t, dir), "a")
	if l.First() != 2503 || l.Last() != 2502 {
		t.Errorf("after reopening: first %d, last %d, want 2503 and 2502", l.First(), l.Last())
	}
	add(t, l, "new")
	wantRecords(t, all(t, l, 0), "2503:new")
}

func TestSealRemoveAndNames(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	a, b := create(t, s, "a"), create(t, s, "b")
	_, err := s.Create("a")
	wantError(t, err, journal.ErrExists)
	_, err = s.Log("c")
	wantError(t, err, journal.ErrNotFound)
	add(t, a, "1")
	if _, err := b.Append(journal.Entry{Body: []byte("2"), State: []journal.Put{{Key: "k", Value: []byte("v")}}}); err != nil {
		t.Fatal(err)
	}
	if err := a.Seal(); err != nil {
		t.Fatal(err)
	}
	_, err = a.Append(journal.Entry{})
	wantError(t, err, journal.ErrSealed)

	cursor := b.Follow(1)
	defer cursor.Close()
	if err := s.Remove("b"); err != nil {
		t.Fatal(err)
	}
	<-cursor.Wake()
	_, err = cursor.Next()
	wantError(t, err, journal.ErrNotFound)
	_, err = b.Append(journal.Entry{})
	wantError(t, err, journal.ErrNotFound)
	_, err = b.State("")
	wantError(t, err, journal.ErrNotFound)
	_, err = b.Find("x")
	wantError(t, err, journal.ErrNotFound)
	wantError(t, b.Trim(1), journal.ErrNotFound)
	wantError(t, s.Remove("b"), journal.ErrNotFound)

	b = create(t, s, "b") // the name is free, and nothing of the old one shows
	if state, err := b.State(""); err != nil || len(state) > 0 {
		t.Errorf("state of a new log: %q, %v", state, err)
	}
	add(t, b, "fresh")
	wantRecords(t, all(t, b, 0), "1:fresh")

	shut(t, s)
	s = open(t, dir)
	_, err = lookup(t, s, "a").Append(journal.Entry{})
	wantError(t, err, journal.ErrSealed)
	wantRecords(t, all(t, lookup(t, s, "a"), 0), "1:1")
	infos, err := s.Logs()
	if err != nil || len(infos) != 2 {
		t.Fatalf("logs: %+v, %v", infos, err)
	}
	if i := infos[0]; i.Name != "a" || i.First != 1 || i.Last != 1 || i.Sealed.IsZero() || i.Created.After(i.Sealed) {
		t.Errorf("first log: %+v", i)
	}
	if i := infos[1]; i.Name != "b" || !i.Sealed.IsZero() || i.Last != 1 {
		t.Errorf("second log: %+v", i)
	}
}

func TestStateChangesWithTheRecord(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	put := func(puts ...journal.Put) error {
		_, err := l.Append(journal.Entry{State: puts})
		return err
	}
	check := func(prefix, want string) {
		t.Helper()
		state, err := l.State(prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for k, v := range state {
			if v == nil {
				t.Errorf("%s is nil", k)
			}
			got = append(got, k+"="+string(v))
		}
		slices.Sort(got)
		if g := strings.Join(got, " "); g != want {
			t.Errorf("state %q is %s, want %s", prefix, g, want)
		}
	}
	if err := put(journal.Put{Key: "a/1", Value: []byte("x")}, journal.Put{Key: "a/2", Value: []byte{}}, journal.Put{Key: "b", Value: []byte("y")}); err != nil {
		t.Fatal(err)
	}
	check("", "a/1=x a/2= b=y")
	if err := put(journal.Put{Key: "a/1"}, journal.Put{Key: "b", Value: []byte("z")}); err != nil {
		t.Fatal(err)
	}
	check("", "a/2= b=z")
	check("a/", "a/2=")
	check("c", "")
	wantError(t, put(journal.Put{Key: "b", Value: []byte("lost")}, journal.Put{Key: "big", Value: make([]byte, journal.MaxBody+1)}), journal.ErrTooLarge)
	check("", "a/2= b=z")
	shut(t, s)
	l = lookup(t, open(t, dir), "a")
	check("", "a/2= b=z")
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	appendCalls := func(entries ...string) {
		t.Helper()
		var group []journal.Entry
		for _, e := range entries {
			call, body, _ := strings.Cut(e, "=")
			group = append(group, journal.Entry{Call: call, Body: []byte(body)})
		}
		if _, err := l.Append(group...); err != nil {
			t.Fatal(err)
		}
	}
	find := func(call, want string) {
		t.Helper()
		got, err := l.Find(call)
		if err != nil {
			t.Fatal(err)
		}
		wantRecords(t, got, want)
	}
	appendCalls("x=accepted", "y=accepted", "=turn", "x=started") // links within one transaction
	appendCalls("x=result", "z=accepted")                         // and across
	find("x", "1:accepted 4:started 5:result")
	find("y", "2:accepted")
	find("", "")
	find("never", "")

	// The table is dropped when nobody needs it, and read again.
	if s.Sweep(); s.Sweep() != 0 {
		t.Error("the table of an idle log stays in memory")
	}
	find("x", "1:accepted 4:started 5:result")
	s.Sweep()
	s.Sweep()
	appendCalls("y=result")
	find("y", "2:accepted 7:result")

	shut(t, s)
	s = open(t, dir)
	l = lookup(t, s, "a")
	appendCalls("z=result")
	find("z", "6:accepted 8:result")
	if err := l.Trim(4); err != nil {
		t.Fatal(err)
	}
	find("x", "5:result")
	find("y", "7:result")
}

func TestClosedStoreRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	l := create(t, s, "a")
	waiting := l.Enqueue(journal.Entry{}) // what was enqueued before is written
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if last, err := waiting.Wait(); last != 1 || err != nil {
		t.Errorf("enqueued before Close: %d, %v", last, err)
	}
	_, err := l.Append(journal.Entry{})
	wantError(t, err, journal.ErrClosed)
	_, err = s.Create("b")
	wantError(t, err, journal.ErrClosed)
	_, err = s.Log("b")
	wantError(t, err, journal.ErrClosed)
	_, err = s.Logs()
	wantError(t, err, journal.ErrClosed)
	_, err = l.State("")
	wantError(t, err, journal.ErrClosed)
	wantError(t, l.Trim(1), journal.ErrClosed)
	wantError(t, l.Seal(), journal.ErrClosed)
	wantError(t, s.Close(), journal.ErrClosed)
	_, err = l.Follow(0).Next()
	wantError(t, err, journal.ErrClosed)
}

func TestModesAndSecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir?with#odd%20characters", "journal")
	s := open(t, dir)
	add(t, create(t, s, "a"), "1")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Errorf("files: %v, want the database and its log", files)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	_, err = journal.Open(dir, journal.Config{})
	wantError(t, err, journal.ErrInUse)
	shut(t, s)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("files after Close: %v, %v, want the database alone", files, err)
	}
	wantRecords(t, all(t, lookup(t, open(t, dir), "a"), 0), "1:1")
}

// Many goroutines write to a few logs, in pieces of one to three entries; each
// log must have all of them without a gap, pieces unbroken and each
// goroutine's in its order.
func TestConcurrentAppends(t *testing.T) {
	const logs, writers, each = 3, 8, 60
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range logs {
		l := create(t, s, fmt.Sprint(i))
		for w := range writers {
			wg.Go(func() {
				for n := range each {
					var entries []journal.Entry
					for part := range n%3 + 1 {
						entries = append(entries, journal.Entry{Body: fmt.Appendf(nil, "%d %d %d", w, n, part)})
					}
					last, err := l.Append(entries...)
					if err != nil || last < uint64(len(entries)) {
						t.Errorf("append: %d, %v", last, err)
					}
				}
			})
		}
	}
	wg.Wait()
	for i := range logs {
		records := all(t, lookup(t, s, fmt.Sprint(i)), 0)
		if want := writers * each * 2; len(records) != want {
			t.Fatalf("%d records, want %d", len(records), want)
		}
		next := map[int]string{}
		for at := 0; at < len(records); {
			var w, n, part int
			if _, err := fmt.Sscan(string(records[at].Body), &w, &n, &part); err != nil {
				t.Fatal(err)
			}
			if want := next[w]; want != "" && want != fmt.Sprint(n) {
				t.Fatalf("record %d is %q, the writer's next was %s", at+1, records[at].Body, want)
			}
			for part := range n%3 + 1 {
				if got, want := string(records[at].Body), fmt.Sprintf("%d %d %d", w, n, part); got != want {
					t.Fatalf("record %d is %q, want %q", at+1, got, want)
				}
				if records[at].Seq != uint64(at+1) {
					t.Fatalf("record %d has number %d", at+1, records[at].Seq)
				}
				at++
			}
			next[w] = fmt.Sprint(n + 1)
		}
	}
}
