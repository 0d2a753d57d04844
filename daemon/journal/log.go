// A log: one session's records and state.

package journal

import (
	"cmp"
	"context"
	"fmt"
	"runtime/trace"
	"slices"
	"sync"
	"time"
)

// Log is the records and the state of one session. It is safe for concurrent
// use.
type Log struct {
	store   *Store
	id      int64
	name    string
	created int64 // nanoseconds since 1970

	loading sync.Mutex // held while calls is read from the database

	mu           sync.Mutex        // guards what follows; never held while waiting for the database
	first, last  uint64            // of the records that are kept and shown
	sealed, gone bool              // gone: the log was removed
	bytes        int64             // of all records; below 0: not counted yet
	calls        map[uint64]uint64 // see calls.go; nil: not in memory
	pins         int               // entries in the queue, which need calls
	touched      bool              // calls was needed since the last sweep
	cursors      []*Cursor
	tail         []Record // the newest records, while a cursor has yet to read them
	tailBytes    int

	gaps []Gap // what damage has taken, in order; never changed

	// Guarded by the store's writing.
	written uint64 // the newest number that is committed, shown or not
	next    uint64 // within a transaction, the number to give next

	syncing int // entries that wait for a sync; guarded by the syncer's mu
}

// Created returns when the log was made, as [Store.Logs] has it.
func (l *Log) Created() time.Time { return time.Unix(0, l.created) }

// Append enqueues entries and waits: they are committed and, if one of them
// asks for it, synced. All of them are kept, with neighbouring numbers, or none.
// It returns the number of the last.
//
// Errors are those of [Log.Enqueue].
func (l *Log) Append(entries ...Entry) (last uint64, err error) {
	return l.Stage(entries...).Wait()
}

// Stage is [Log.Enqueue] for a caller that calls Wait soon: until then the entries may stay in the
// queue, and Wait commits them together with whatever else is there.
func (l *Log) Stage(entries ...Entry) *Pending {
	return l.enqueue(&Pending{log: l, entries: entries, staged: true})
}

// Enqueue passes entries to the writer and returns at once; it never waits for
// the disk. Numbers are assigned in the order of Enqueue. The entries must not
// be modified afterwards. Wait returns the outcome: nil, ErrSealed,
// ErrNotFound after Remove, ErrClosed, ErrTooLarge, ErrFull, a
// [*CorruptError], or another error of the disk. Entries that were enqueued in
// the same log after some that failed, before that could be known, may be
// kept: a caller whose second entry needs the first puts both into one Enqueue
// or waits.
func (l *Log) Enqueue(entries ...Entry) *Pending {
	return l.enqueue(&Pending{log: l, entries: entries})
}

// Keep changes the session's state without a record, in the order of Enqueue.
// Wait returns the number of the newest record, and the errors of Enqueue. The
// journal keeps the values without copying.
func (l *Log) Keep(durability Durability, state ...Put) *Pending {
	return l.enqueue(&Pending{log: l, state: state, durability: durability})
}

// KeepTerminal is Keep for what may use the reserve, as [Entry].Terminal.
func (l *Log) KeepTerminal(durability Durability, state ...Put) *Pending {
	return l.enqueue(&Pending{log: l, state: state, durability: durability, room: reserved})
}

func (l *Log) enqueue(p *Pending) *Pending {
	p.at, p.done = time.Now(), make(chan struct{})
	if l.store.mirrored {
		p.durability = Synced
	}
	for i := range p.entries {
		p.durability = max(p.durability, p.entries[i].Durability)
		if p.entries[i].Terminal {
			p.room = reserved
		}
	}
	if err := l.admit(p); err != nil {
		p.err = err
		close(p.done)
	}
	return p
}

// admit queues p, which is the writer's from then on, or refuses it.
func (l *Log) admit(p *Pending) error {
	if err := checkSizes(p.entries, p.state); err != nil {
		return err
	}
	return l.pin(p)
}

func checkSizes(entries []Entry, state []Put) error {
	large := func(p Put) bool { return len(p.Value) > MaxBody }
	if slices.ContainsFunc(state, large) || slices.ContainsFunc(entries, func(e Entry) bool {
		return max(len(e.Body), len(e.Note)) > MaxBody || slices.ContainsFunc(e.State, large)
	}) {
		return ErrTooLarge
	}
	return nil
}

// First returns the number of the oldest record that is kept. If there is
// none, that is the number which the next record will get.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Last returns the number of the newest committed record, 0 before the first.
// Numbers of records that were trimmed count.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Seal ends the log: it takes no more records, what was enqueued before is
// still written, and everything stays readable. Sealing twice is not an error. With
// a mirror it returns when the mirror has it.
func (l *Log) Seal() error { return l.seal(time.Now()) }

func (l *Log) seal(at time.Time) error {
	l.mu.Lock()
	was := l.sealed
	l.sealed = true
	var bytes, last any // null: to be found out when it is asked for
	if l.pins == 0 && l.bytes >= 0 {
		bytes, last = l.bytes, l.last
	}
	l.mu.Unlock()
	if was {
		return l.present()
	}
	db := l.store.db
	err := db.update(reserved, func() error {
		if err := l.present(); err != nil {
			return err
		}
		return db.execLocked("update logs set sealed = ?, bytes = ?, last = ? where id = ?", at.UnixNano(), bytes, last, l.id)
	})
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sealed = false
		return err
	}
	return l.reportEnd(at, false)
}

// retire makes the log refuse everything and wakes its cursors.
func (l *Log) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	l.wakeCursors()
}

// present returns ErrNotFound if the log has been removed.
func (l *Log) present() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return ErrNotFound
	}
	return nil
}

// row returns the id of a record.
func (l *Log) row(seq uint64) int64 { return l.id<<seqBits | int64(seq) }

// One read returns at most this many records, or bytes in bodies.
const (
	readRecords = 256
	readBytes   = 256 << 10
)

// read returns records after after up to upTo, one read's worth; none if they
// have been trimmed meanwhile.
func (l *Log) read(after, upTo uint64) ([]Record, error) {
	defer trace.StartRegion(context.Background(), "journal.read").End() // counted by TestCostOfACall
	upTo = min(upTo, after+readRecords)
	records := make([]Record, 0, upTo-after)
	size := 0
	db := l.store.db
	err := db.locked(func() error {
		err := db.rowsLocked("select id, time, kind, call, turn, body from records where id between ? and ? order by id", func(scan scanner) (bool, error) {
			var r Record
			var row, at int64
			if err := scan(&row, &at, &r.Kind, &r.Call, &r.Turn, &r.Body); err != nil {
				return false, err
			}
			r.Seq, r.Time = uint64(row&maxSeq), time.Unix(0, at)
			if want := after + 1 + uint64(len(records)); r.Seq != want {
				return false, l.missing(want)
			}
			records = append(records, r)
			size += len(r.Body)
			return size < readBytes, nil
		}, l.row(after+1), l.row(upTo))
		if len(records) > 0 {
			return nil // readable records are returned first; the damage is reported when its turn comes
		}
		if err := l.present(); err != nil || l.First() > after+1 {
			return err
		}
		return db.notedLocked(cmp.Or(err, l.missing(after+1)))
	})
	return records, err
}

func (l *Log) missing(seq uint64) error {
	return &CorruptError{Path: l.store.db.path, Err: fmt.Errorf("record %d is missing", seq)}
}
