package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/daemon/journal"
)

// holdFirst holds the writer up inside of its next transaction. What is
// enqueued after held has been closed and before release is called becomes one
// group. It counts transactions, from that one on.
func holdFirst(t *testing.T, s *journal.Store) (held chan struct{}, release func(), count func() int) {
	t.Helper()
	held, gate := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	s.OnCommit(func() {
		if n.Add(1) == 1 {
			close(held)
			<-gate
		}
	})
	return held, func() { close(gate) }, func() int { return int(n.Load()) }
}

func TestWhatIsQueuedSharesOneTransaction(t *testing.T) {
	s := open(t, t.TempDir())
	var logs []*journal.Log
	for i := range 10 {
		logs = append(logs, create(t, s, fmt.Sprint(i)))
	}
	held, release, count := holdFirst(t, s)
	pending := []*journal.Pending{logs[0].Enqueue(journal.Entry{Body: []byte("first")})}
	<-held
	for n := range 20 {
		for _, l := range logs {
			pending = append(pending, l.Enqueue(journal.Entry{Body: fmt.Append(nil, n), Durability: journal.Synced}))
		}
	}
	release()
	for _, p := range pending {
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 2 {
		t.Errorf("%d transactions for one entry and then 200 at a time, want 2", n)
	}
	for i, l := range logs {
		if want := uint64(20); i > 0 && l.Last() != want {
			t.Errorf("log %d ends at %d, want %d", i, l.Last(), want)
		}
	}
	if got := show(all(t, logs[0], 0)); !strings.HasPrefix(got, "1:first 2:0 3:1 4:2 ") || !strings.HasSuffix(got, " 21:19") {
		t.Errorf("records are not in the order of Enqueue: %s", got)
	}
}

// TestSyncOnlyWhenAsked: while a sync is under way, what needs none is committed
// and shown, except behind something in its own log that waits for it.
func TestSyncOnlyWhenAsked(t *testing.T) {
	s := open(t, t.TempDir())
	a, b := create(t, s, "a"), create(t, s, "b")
	asked, release := s.HoldSyncs(nil)
	synced := a.Enqueue(journal.Entry{Call: "c", Body: []byte("synced"), Durability: journal.Synced})
	<-asked
	behind := a.Enqueue(journal.Entry{Call: "c", Body: []byte("behind")})
	if last := add(t, b, "free"); last != 1 { // it returns
		t.Errorf("number %d, want 1", last)
	}
	wantRecords(t, all(t, b, 0), "1:free")
	wantRecords(t, all(t, a, 0), "")
	if found, err := a.Find("c"); len(found) != 0 || err != nil || a.Last() != 0 {
		t.Errorf("%s is found before it is synced, and the log ends at %d (%v)", show(found), a.Last(), err)
	}
	release()
	for want, p := range map[uint64]*journal.Pending{1: synced, 2: behind} {
		if last, err := p.Wait(); last != want || err != nil {
			t.Errorf("number %d, %v; want %d", last, err, want)
		}
	}
	wantRecords(t, all(t, a, 0), "1:synced 2:behind")
	if found, err := a.Find("c"); len(found) != 2 || err != nil {
		t.Errorf("%s is found, want both (%v)", show(found), err)
	}
	if len(asked) != 0 {
		t.Errorf("%d syncs more than the one that was asked for", len(asked))
	}
}

// TestFailedSync: who waited for it is told, and so is everybody later: the
// kernel may have dropped what it could not write.
func TestFailedSync(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	_, release := s.HoldSyncs(errNoDisk)
	release()
	for range 2 {
		_, err := l.Append(journal.Entry{Body: []byte("synced"), Durability: journal.Synced})
		wantError(t, err, errNoDisk)
	}
	if last := add(t, l, "committed"); last != 3 {
		t.Errorf("number %d, want 3: what was committed keeps its number", last)
	}
}

var errNoDisk = errors.New("the disk is gone")

func TestUnsynced(t *testing.T) {
	s, err := journal.Open(t.TempDir(), journal.Config{Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	asked, release := s.HoldSyncs(errNoDisk)
	release()
	if last, err := create(t, s, "a").Append(journal.Entry{Durability: journal.Synced}); last != 1 || err != nil || len(asked) != 0 {
		t.Errorf("number %d, %v and %d syncs; want 1 and none", last, err, len(asked))
	}
	shut(t, s)
}

// limit leaves the database room for some more pages of 4 KiB.
func limit(t *testing.T, s *journal.Store, more int) {
	t.Helper()
	pages, err := s.Pragma("page_count")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pragma(fmt.Sprintf("max_page_count = %d", pages+more)); err != nil {
		t.Fatal(err)
	}
}

func TestFullDiskLosesNothingAndRecovers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	add(t, l, "1")
	limit(t, s, 10)
	live := l.Follow(0)
	defer live.Close()
	body := []byte(strings.Repeat("x", 3000))
	kept := uint64(1)
	for {
		entry := journal.Entry{Call: "c", Body: body, State: []journal.Put{{Key: "kept", Value: fmt.Append(nil, kept+2)}}}
		last, err := l.Append(entry, entry)
		if err != nil {
			wantError(t, err, journal.ErrFull)
			break
		}
		kept = last
	}
	if kept == 1 || l.Last() != kept {
		t.Fatalf("%d records were acknowledged, the log ends at %d", kept, l.Last())
	}
	wantRecords(t, all(t, l, kept), "")
	if state, err := l.State(""); err != nil || string(state["kept"]) != fmt.Sprint(kept) {
		t.Errorf("state goes with record %q, the last that was kept is %d (%v)", state["kept"], kept, err)
	}
	limit(t, s, 1000)
	if last := add(t, l, "after"); last != kept+1 {
		t.Errorf("the next number is %d, want %d", last, kept+1)
	}
	found, err := l.Find("c")
	if err != nil || uint64(len(found)) != kept-1 {
		t.Errorf("%d records of the call are found, want %d (%v)", len(found), kept-1, err)
	}
	shut(t, s)
	l = lookup(t, open(t, dir), "a")
	if got := all(t, l, 0); uint64(len(got)) != kept+1 || string(got[kept].Body) != "after" {
		t.Errorf("%d records after reopening, want %d", len(got), kept+1)
	}
}

// In one group one entry is too big for the disk. It fails, with what its own
// log had behind it; the others do not.
func TestOneTooBigForTheDisk(t *testing.T) {
	s := open(t, t.TempDir())
	a, b := create(t, s, "a"), create(t, s, "b")
	limit(t, s, 20)
	held, release, _ := holdFirst(t, s)
	enqueue := func(l *journal.Log, size int) *journal.Pending {
		return l.Enqueue(journal.Entry{Call: "c", Body: make([]byte, size)})
	}
	pending := []*journal.Pending{enqueue(b, 1)}
	<-held
	pending = append(pending, enqueue(a, 1), enqueue(a, 1<<20), enqueue(a, 1), enqueue(b, 1))
	release()
	want := []uint64{1, 1, 0, 0, 2}
	for i, p := range pending {
		last, err := p.Wait()
		if last != want[i] || (want[i] == 0) != errors.Is(err, journal.ErrFull) {
			t.Errorf("entry %d: number %d, %v; want number %d", i, last, err, want[i])
		}
	}
	if a.Last() != 1 || b.Last() != 2 {
		t.Errorf("the logs end at %d and %d, want 1 and 2", a.Last(), b.Last())
	}
	if last := add(t, a, "next"); last != 2 {
		t.Errorf("the next number is %d, want 2", last)
	}
	if got, err := a.Find("c"); err != nil || len(got) != 1 {
		t.Errorf("%d records of the call are found, want 1 (%v)", len(got), err)
	}
}

// What is enqueued in a log that is removed meanwhile fails; the rest of the
// group does not.
func TestRemoveWhileEnqueued(t *testing.T) {
	s := open(t, t.TempDir())
	a, b := create(t, s, "a"), create(t, s, "b")
	held, release, _ := holdFirst(t, s)
	first := a.Enqueue(journal.Entry{Body: []byte("a1")})
	<-held
	lost, kept := a.Enqueue(journal.Entry{Body: []byte("a2")}), b.Enqueue(journal.Entry{Body: []byte("b1")})
	cursor := a.Follow(0)
	defer cursor.Close()
	removed := make(chan error)
	go func() { removed <- s.Remove("a") }()
	<-cursor.Wake() // a is marked as removed
	release()
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	if last, err := first.Wait(); last != 1 || err != nil {
		t.Errorf("the entry on its way: %d, %v", last, err)
	}
	_, err := lost.Wait()
	wantError(t, err, journal.ErrNotFound)
	if last, err := kept.Wait(); last != 1 || err != nil {
		t.Errorf("the other log's entry: %d, %v", last, err)
	}
	if rows, err := s.Rows(); err != nil || rows != 1 {
		t.Errorf("%d records in the database, want 1 (%v)", rows, err)
	}
}

// What is staged waits for a caller that waits for it, or for what is enqueued behind it, and shares the transaction.
func TestStagedEntriesShareATransaction(t *testing.T) {
	s := open(t, t.TempDir())
	l, other := create(t, s, "a"), create(t, s, "b")
	commits := make(chan struct{}, 10)
	s.OnCommit(func() { commits <- struct{}{} })
	l.Stage(journal.Entry{Body: []byte("1"), State: []journal.Put{{Key: "k", Value: []byte("old")}}})
	second := l.Stage(journal.Entry{Body: []byte("2"), State: []journal.Put{{Key: "k", Value: []byte("new")}}})
	other.Stage(journal.Entry{Body: []byte("other")})
	if last, err := second.Wait(); last != 2 || err != nil {
		t.Errorf("number %d, %v; want 2", last, err)
	}
	if state, err := l.State(""); err != nil || string(state["k"]) != "new" {
		t.Errorf("state %q (%v), want the newest value", state, err)
	}
	l.Stage(journal.Entry{Body: []byte("3")})
	if last, err := l.Enqueue(journal.Entry{Body: []byte("4")}).Wait(); last != 4 || err != nil || len(commits) > 3 {
		// Two, and one more if the store's own goroutine took a part first. Five if nothing were shared.
		t.Errorf("number %d, %v and %d commits; want 4, and at most three commits", last, err, len(commits))
	}
	if got := show(all(t, l, 0)); got != "1:1 2:2 3:3 4:4" {
		t.Errorf("records %s", got)
	}
	l.Stage(journal.Entry{Body: []byte("5")})
	shut(t, s)
}

// A body is the same whether it is bound or streamed.
func TestBodiesOfEverySize(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := create(t, s, "a")
	var bodies [][]byte
	for _, size := range []int{0, 1, 8<<10 - 1, 8 << 10, 100_000, 3 << 20} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i % 251)
		}
		bodies = append(bodies, body)
		if _, err := l.Append(journal.Entry{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	for i, r := range all(t, lookup(t, open(t, dir), "a"), 0) {
		if !bytes.Equal(r.Body, bodies[i]) {
			t.Errorf("record %d has %d bytes, want %d, the same", r.Seq, len(r.Body), len(bodies[i]))
		}
	}
}
