// The records of a call. In the database each record of a call points to the one before; in
// memory, while a log is in use, a table leads from a call to its newest record. So looking for a
// call that was never there, which happens for every new one, costs no query, and a record costs
// no entry in an index.

package journal

import (
	"context"
	"fmt"
	"runtime/trace"
	"slices"
	"time"
	"weak"
)

// sweepInterval is how often the tables of logs that are not in use are looked
// for; one is dropped after one to two of them. A table of 10,000 calls is
// 0.3 MiB and takes 25 ms to read again.
const sweepInterval = 30 * time.Second

// scanStep is how many records are read at a time when a table is built, so that a long log does
// not delay others.
const scanStep = 1000

// Find returns the records that have this call key, in order, as far as a
// cursor is shown them; none if the key is empty.
func (l *Log) Find(call string) ([]Record, error) {
	if call == "" {
		return nil, nil
	}
	seq, err := l.lookup(callHash(call))
	if err != nil {
		return nil, err
	}
	var records []Record
	shown := l.Last()
	for seq >= l.First() && seq > 0 {
		r, before, err := l.one(seq)
		if err != nil {
			return nil, err
		}
		if r.Call == call && seq <= shown { // and not another one with the same hash
			records = append(records, r)
		}
		if before >= seq {
			return nil, &CorruptError{Path: l.store.db.path, Err: fmt.Errorf("record %d points forward", seq)}
		}
		seq = before
	}
	slices.Reverse(records)
	return records, nil
}

// Has reports whether a record is kept that has this call key.
func (l *Log) Has(call string) (bool, error) {
	seq, err := l.lookup(callHash(call))
	return seq > 0, err
}

// Calls is how many call keys there are of which a record is kept.
func (l *Log) Calls() (int, error) {
	n := 0
	err := l.withCalls(func() error {
		n = len(l.calls)
		return nil
	})
	return n, err
}

// one reads a record, and the number of the one before it of the same call. A
// record that has been trimmed meanwhile comes back empty.
func (l *Log) one(seq uint64) (r Record, before uint64, err error) {
	defer trace.StartRegion(context.Background(), "journal.read").End()
	db := l.store.db
	err = db.locked(func() error {
		found := false
		err := db.rowsLocked("select time, kind, call, prev, turn, body from records where id = ?", func(scan scanner) (bool, error) {
			found = true
			var at int64
			err := scan(&at, &r.Kind, &r.Call, &before, &r.Turn, &r.Body)
			r.Seq, r.Time = seq, time.Unix(0, at)
			return false, err
		}, l.row(seq))
		if err == nil && !found && seq >= l.First() {
			if err = l.present(); err == nil {
				err = db.notedLocked(l.missing(seq))
			}
		}
		return err
	})
	return r, before, err
}

// lookup returns the newest record of the calls with this hash, or 0.
func (l *Log) lookup(call uint64) (seq uint64, err error) {
	err = l.withCalls(func() error {
		seq = l.calls[call]
		return nil
	})
	return seq, err
}

// newestOf is lookup for the writer, whose entries pin the table.
func (l *Log) newestOf(call uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[call]
}

// pin queues p, and sees that the table is in memory and stays there until unpin. Both are one step: what is queued before the
// log is sealed is also before the report of that, or a mirror's copy would be without it.
func (l *Log) pin(p *Pending) error {
	return l.withCalls(func() error {
		switch {
		case l.sealed:
			return ErrSealed
		case !l.store.queue.put(p):
			return ErrClosed
		}
		l.pins++
		return nil
	})
}

func (l *Log) unpin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pins--
}

// withCalls runs do with mu locked and the table in memory.
func (l *Log) withCalls(do func() error) (err error) {
	for {
		l.mu.Lock()
		loaded := l.calls != nil
		switch {
		case l.gone:
			err = ErrNotFound
		case loaded:
			l.touched = true
			err = do()
		}
		l.mu.Unlock()
		if loaded || err != nil {
			return err
		}
		if err := l.loadCalls(); err != nil {
			return err
		}
	}
}

// loadCalls builds the table. No record is added meanwhile: entries that are
// in the queue pin the table, so without a table there are none.
func (l *Log) loadCalls() error {
	l.loading.Lock()
	defer l.loading.Unlock()
	l.mu.Lock()
	loaded, next, last := l.calls != nil, l.first, l.last
	l.mu.Unlock()
	if loaded {
		return nil
	}
	calls := map[uint64]uint64{}
	var bytes int64
	for next <= last {
		rows, from := 0, next
		next = last + 1
		err := l.store.db.query("select id, call, length(body) from records where id between ? and ? order by id limit ?", func(scan scanner) (bool, error) {
			var row, length int64
			var call string
			if err := scan(&row, &call, &length); err != nil {
				return false, err
			}
			bytes += length + recordBytes
			seq := uint64(row & maxSeq)
			if call != "" {
				calls[callHash(call)] = seq
			}
			if rows++; rows == scanStep {
				next = seq + 1
			}
			return true, nil
		}, l.row(from), l.row(last), scanStep)
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = calls
	if l.bytes < 0 {
		l.bytes = bytes
	}
	l.touched = true
	signal(l.store.queue.wake) // from now on there is something to sweep
	return nil
}

// sweep drops the tables that were not needed since the last sweep and returns
// how many are left.
func (s *Store) sweep() (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, known := range s.logs {
		l := known.log()
		if l == nil {
			delete(s.logs, name)
			continue
		}
		kept, sealed := l.dropIdle()
		if kept {
			left++
		}
		if known.open != nil && sealed {
			s.logs[name] = knownLog{sealed: weak.Make(l)}
		}
	}
	return left
}

// dropIdle reports whether the table was kept, and whether the log is sealed.
func (l *Log) dropIdle() (kept, sealed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pins == 0 && !l.touched {
		l.calls = nil
	}
	l.touched = false
	return l.calls != nil, l.sealed
}
