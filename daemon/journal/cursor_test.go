package journal_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// follow reads n records and reports the first that is out of order.
func follow(c *journal.Cursor, from, n uint64) error {
	want := from
	for {
		records, err := c.Next()
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.Seq != want || string(r.Body) != fmt.Sprint(want) {
				return fmt.Errorf("record %d %q where %d should be", r.Seq, r.Body, want)
			}
			if want == n {
				return nil
			}
			want++
		}
		if len(records) == 0 {
			<-c.Wake()
		}
	}
}

// Readers start at different places while records are being written, so each
// goes from the database to memory at some moment.
func TestReplayBecomesLive(t *testing.T) {
	const total = 4000
	s := open(t, t.TempDir())
	l := create(t, s, "a")
	var readers sync.WaitGroup
	read := func(after uint64) {
		c := l.Follow(after)
		readers.Go(func() {
			defer c.Close()
			if err := follow(c, after+1, total); err != nil {
				t.Errorf("cursor from %d: %v", after, err)
			}
		})
	}
	read(0)
	for i := uint64(1); i <= total; i++ {
		p := l.Enqueue(journal.Entry{Body: fmt.Append(nil, i)})
		if i%400 == 0 {
			if _, err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			read(0)
			read(i / 2)
			read(i - 1)
		}
	}
	readers.Wait()
	if n := l.TailLen(); n != 0 {
		t.Errorf("%d records stay in memory although nobody is left to read them", n)
	}
}

func TestTailIsOnlyForWhoNeedsIt(t *testing.T) {
	s := open(t, t.TempDir())
	l := create(t, s, "a")
	add(t, l, "1")
	if l.TailLen() != 0 {
		t.Error("without a cursor a record stays in memory")
	}
	quick, slow := l.Follow(0), l.Follow(0)
	add(t, l, "2", "3")
	for _, want := range []string{"1:1", "2:2 3:3", ""} { // first the database, then memory
		got, err := quick.Next()
		if err != nil {
			t.Fatal(err)
		}
		wantRecords(t, got, want)
	}
	if l.TailLen() != 2 {
		t.Errorf("%d records in memory for the slow cursor, want 2", l.TailLen())
	}
	big := strings.Repeat("x", 10<<10)
	for range 100 { // 1 MiB, of which memory takes 128 KiB
		add(t, l, big)
		if got, err := quick.Next(); err != nil || len(got) != 1 {
			t.Fatalf("the quick cursor reads %d records, %v", len(got), err)
		}
	}
	if n := l.TailLen(); n > 12 {
		t.Errorf("%d records of 10 KiB in memory for a cursor that does not read, want 12 at most", n)
	}
	want := uint64(1)
	for want <= 103 {
		got, err := slow.Next()
		if err != nil || len(got) == 0 {
			t.Fatalf("the slow cursor ends at %d: %v", want, err)
		}
		for _, r := range got {
			if r.Seq != want {
				t.Fatalf("the slow cursor reads %d, want %d", r.Seq, want)
			}
			want++
		}
	}
	if l.TailLen() != 0 {
		t.Error("everybody has read, and records stay in memory")
	}
	add(t, l, "last")
	quick.Close()
	slow.Close()
	if l.TailLen() != 0 {
		t.Error("the last cursor is closed, and records stay in memory")
	}
}

// A record shows up only after it is committed, and a cursor is woken then.
func TestNothingIsSeenBeforeItIsCommitted(t *testing.T) {
	s := open(t, t.TempDir())
	l := create(t, s, "a")
	add(t, l, "1")
	c := l.Follow(1)
	defer c.Close()
	release := s.Stall()
	p := l.Enqueue(journal.Entry{Body: []byte("2"), Call: "x"})
	if got, err := c.Next(); len(got) != 0 || err != nil || l.Last() != 1 {
		t.Errorf("seen before the commit: %s, last %d, %v", show(got), l.Last(), err)
	}
	select {
	case <-c.Wake():
		t.Error("woken before the commit")
	default:
	}
	release()
	<-c.Wake()
	got, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	wantRecords(t, got, "2:2")
	if last, err := p.Wait(); last != 2 || err != nil {
		t.Errorf("Wait: %d, %v", last, err)
	}
}

// An idle session that somebody follows has a few hundred bytes in memory,
// however much is in its log.
func TestIdleLogIsSmall(t *testing.T) {
	const logs, records = 64, 300
	s := open(t, t.TempDir())
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	cursors := make([]*journal.Cursor, logs)
	before := heap()
	for i := range logs {
		l := create(t, s, fmt.Sprint(i))
		cursors[i] = l.Follow(0)
		var last *journal.Pending
		for n := range records {
			last = l.Enqueue(journal.Entry{Call: fmt.Sprint(n), Body: make([]byte, 1000)})
		}
		if _, err := last.Wait(); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < records; {
			next, err := cursors[i].Next()
			if err != nil {
				t.Fatal(err)
			}
			got += len(next)
		}
	}
	s.Sweep()
	if left := s.Sweep(); left != 0 {
		t.Errorf("%d logs keep their table of calls", left)
	}
	after := heap()
	each := int64(after-before) / logs
	t.Logf("%d bytes an idle log", each)
	if each > 4<<10 {
		t.Errorf("%d bytes an idle log, want 4096 at most", each)
	}
	for _, c := range cursors {
		c.Close()
	}
}
