// Writing: whatever is queued is committed in one transaction, by one goroutine at a time: one that
// waits for its entries, or else the writer. While a transaction runs the next one gathers. During a
// sync (syncs.go) what needs none goes on; what does gathers until the sync has ended, since it
// could not be shown earlier anyway.

package journal

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime/trace"
	"slices"
	"sync"
	"time"
)

// Pending is what became of one Enqueue.
type Pending struct {
	log        *Log
	entries    []Entry
	state      []Put     // changed beside the entries'
	sealed     time.Time // the log was sealed then, for the mirror; zero: not by this
	removed    bool      // the log is about to be removed, for the mirror
	durability Durability
	room       room
	staged     bool
	shown      bool // to the readers; used by the goroutine that concludes it
	at         time.Time

	done chan struct{} // closed when last and err are settled
	from uint64        // the number of the first entry
	last uint64
	err  error
}

// Wait waits until the entries are committed, and synced if one of them asks
// for it or something before them in the same log still waits for it, and
// returns the number of the last. It may be called any number of times. The
// errors are told at [Log.Enqueue].
func (p *Pending) Wait() (last uint64, err error) {
	if !p.Done() {
		p.log.store.lead()
		<-p.done
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.last, nil
}

// Done reports whether Wait returns at once.
func (p *Pending) Done() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// queue is what waits for the writer. It has no bound of its own: each session
// may have only so many open calls, and each adds few records.
type queue struct {
	wake chan struct{} // one slot

	mu      sync.Mutex
	waiting []*Pending
	wanted  bool // something in it is not to wait for a caller that writes it
	closed  bool
}

// put adds p, or returns false if the queue is closed.
func (q *queue) put(p *Pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, p)
	if !p.staged {
		q.wanted = true
		signal(q.wake)
	}
	return true
}

// want notes that what is in the queue is to be written.
func (q *queue) want() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wanted = true
}

// wakeWriter wakes the writer if there is something for it to write.
func (q *queue) wakeWriter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wanted {
		signal(q.wake)
	}
}

// close lets nothing more in; false if it was closed already.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	signal(q.wake)
	return true
}

// take returns what waits, and whether the queue is closed and nothing is left
// in it. During a sync it leaves what needs another one, and what follows such in
// the same log. The slice that it is given becomes the queue's next.
func (q *queue) take(spare []*Pending, syncing bool) (group []*Pending, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	group, q.waiting, q.wanted = q.waiting, spare[:0], false
	if syncing {
		var behind map[*Log]bool
		group = slices.DeleteFunc(group, func(p *Pending) bool {
			if !p.durable() && !behind[p.log] {
				return false
			}
			if behind == nil {
				behind = map[*Log]bool{}
			}
			behind[p.log] = true
			q.waiting = append(q.waiting, p)
			return true
		})
	}
	return group, q.closed && len(q.waiting) == 0
}

// write is the writer's loop; it ends when the queue is closed and empty.
func (s *Store) write() {
	var sweep <-chan time.Time // set while there is something to sweep
	for {
		select {
		case <-s.queue.wake:
		case <-sweep:
			sweep = nil
			if s.sweep() > 0 {
				sweep = time.After(sweepInterval)
			}
			continue
		}
		s.writing.Lock()
		over := s.writeQueued()
		s.writing.Unlock()
		if over {
			return
		}
		s.queue.wakeWriter()
		if sweep == nil {
			sweep = time.After(sweepInterval)
		}
	}
}

// lead writes what is queued on the caller's goroutine, which would otherwise wait for the writer
// to wake up, and then to be woken itself. If another goroutine is writing, that one sees to the
// rest.
func (s *Store) lead() {
	s.queue.want()
	if !s.writing.TryLock() {
		return
	}
	s.writeQueued()
	s.writing.Unlock()
	s.queue.wakeWriter()
}

// writeQueued commits one group, and reports whether the queue is closed and empty. The caller has
// locked writing.
func (s *Store) writeQueued() (over bool) {
	s.group, over = s.queue.take(s.group, s.syncs.underWay())
	s.commit(s.group)
	clear(s.group)
	clear(s.previous)
	clear(s.puts)
	return over
}

// commit settles a group: in one transaction or, if that fails, each part of
// it by itself, so that one that is too big for the disk does not take others
// along, and the reserve is used for what it is kept for alone.
func (s *Store) commit(group []*Pending) {
	if len(group) == 0 {
		return // woken by a log that was taken into use
	}
	r := reserved
	for _, p := range group {
		r = min(r, p.room)
	}
	err := s.commitTogether(group, r)
	if err == nil {
		return
	}
	if len(group) == 1 {
		group[0].settle(err)
		return
	}
	failed := map[*Log]error{} // what follows a failure in the same log fails with it, unless it is the end of something
	for _, p := range group {
		err := failed[p.log]
		if err == nil || p.room == reserved {
			err = s.commitTogether([]*Pending{p}, p.room)
		}
		if err != nil {
			failed[p.log] = err
			p.settle(err)
		}
	}
}

// commitTogether writes a group in one transaction and hands it on. If it
// returns an error nothing was written or settled.
func (s *Store) commitTogether(group []*Pending, r room) error {
	defer trace.StartRegion(context.Background(), "journal").End()
	began := time.Now()
	err := s.db.update(r, func() error {
		for _, p := range group {
			p.log.next = p.log.written + 1
		}
		clear(s.previous)
		clear(s.puts)
		for _, p := range group {
			if err := s.insert(p); err != nil {
				return err
			}
		}
		return s.putState()
	})
	if err != nil {
		return err
	}
	if s.committed != nil {
		s.committed(time.Since(began))
	}
	for _, p := range group {
		if p.err == nil {
			p.log.wrote(p)
		}
	}
	s.syncs.hand(group)
	return nil
}

// link names the newest record of a call within a group.
type link struct {
	log  *Log
	call uint64
}

// insert writes the entries of p within the transaction. Those of a log that has been removed are
// left out, and p.err is set: removing waits for the database, so that a log that is present here
// stays so until the commit.
func (s *Store) insert(p *Pending) error {
	if p.err = p.log.present(); p.err != nil {
		return nil
	}
	l := p.log
	p.from = l.next
	for i := range p.entries {
		e := &p.entries[i]
		seq := l.next
		if l.next++; seq > maxSeq {
			return fmt.Errorf("journal: log %d has used up its numbers", l.id)
		}
		var before uint64
		if e.Call != "" {
			key := link{l, callHash(e.Call)}
			var ok bool
			if before, ok = s.previous[key]; !ok {
				before = l.newestOf(key.call)
			}
			s.previous[key] = seq
		}
		r := saved{p.record(e, seq), e.Note, l.row(seq), p.time(e).UnixNano()}
		err := s.db.insertLocked(&r, before)
		if err != nil {
			return err
		}
		s.notePuts(l, e.State, seq)
	}
	p.last = l.next - 1
	s.notePuts(l, p.state, p.last)
	return nil
}

// A cell is one value of a log's state.
type cell struct {
	log *Log
	key string
}

// notePuts notes values to be written when all entries of the group are: of several for one key only
// the last one is.
func (s *Store) notePuts(l *Log, puts []Put, at uint64) {
	for _, put := range puts {
		s.puts[cell{l, put.Key}] = noted{put.Value, at}
	}
}

// putState writes the values that were noted.
func (s *Store) putState() error {
	for c, put := range s.puts {
		var err error
		if put.value == nil {
			err = s.db.execLocked("delete from state where log = ? and key = ?", c.log.id, c.key)
		} else {
			err = s.db.execLocked(setState, c.log.id, c.key, put.value, put.at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// record returns what readers are shown of an entry.
func (p *Pending) record(e *Entry, seq uint64) Record {
	return Record{Seq: seq, Time: p.time(e), Kind: e.Kind, Call: e.Call, Turn: e.Turn, Body: e.Body}
}

// time returns an entry's time. Without the zone and the monotonic clock, so
// that a record is the same from memory and from the disk.
func (p *Pending) time(e *Entry) time.Time {
	if e.Time.IsZero() {
		return time.Unix(0, p.at.UnixNano())
	}
	return time.Unix(0, e.Time.UnixNano())
}

// conclude shows what was committed to the readers, and publishes the outcome. What could not be synced is shown, since it is
// in the file that readers have; what the mirror refuses is not, unless the mirror has held it back from clients.
func (p *Pending) conclude(err error) {
	if p.err == nil && (err == nil || !p.log.store.mirrored) {
		p.show()
	}
	p.settle(err)
}

// settle publishes the outcome to those who wait.
func (p *Pending) settle(err error) {
	p.err = err
	p.log.unpin()
	p.entries, p.state = nil, nil // the waiting side may keep p for longer than the bodies are needed
	close(p.done)
}

// wrote takes note of committed entries, which readers do not see yet.
func (l *Log) wrote(p *Pending) {
	l.written = p.last
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range p.entries {
		e := &p.entries[i]
		l.bytes += e.size()
		if e.Call != "" {
			l.calls[callHash(e.Call)] = p.from + uint64(i)
		}
	}
}

// show makes committed entries visible.
func (l *Log) show(p *Pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range p.entries {
		e := &p.entries[i]
		l.last++
		if len(l.cursors) > 0 {
			l.addTail(p.record(e, l.last))
		}
	}
	if len(p.entries) > 0 {
		l.wakeCursors()
	}
}

// callSeed makes the places of calls in memory unpredictable to clients, who
// choose the keys.
var callSeed = maphash.MakeSeed()

func callHash(call string) uint64 { return maphash.String(callSeed, call) }
