// Dropping records, oldest first, and giving their room back to the file system.

package journal

import (
	"fmt"
	"maps"
	"math"
	"time"
)

// recordBytes is what a record is taken to cost besides its body, in bytes.
const recordBytes = 64

func (e *Entry) size() int64 { return int64(len(e.Body)) + recordBytes }

// A Bound is which records a log may keep.
type Bound struct {
	UpTo   uint64    // newer ones than this number stay in any case
	Bytes  int64     // older ones go for as long as the log is larger
	Before time.Time // and those that were made before
}

// Trim drops the records up to and including upTo. Numbers go on where they
// were. The calls of dropped records are forgotten.
func (l *Log) Trim(upTo uint64) error {
	return l.Shed(Bound{UpTo: upTo, Before: endOfTime})
}

var (
	endOfTime  = time.Unix(0, math.MaxInt64)
	everything = Bound{UpTo: maxSeq, Before: endOfTime}
)

// Shed drops the oldest records until the log is within the bound. It needs no
// room on the disk but what is kept for such.
func (l *Log) Shed(b Bound) error {
	if err := l.present(); err != nil {
		return err
	}
	if _, err := l.Bytes(); err != nil {
		return err
	}
	return l.shed(b)
}

// Bytes is how much the log holds: the bodies of its records, and a constant for
// each. Its state is not counted, and what it takes on the disk is somewhat
// more.
func (l *Log) Bytes() (int64, error) {
	l.mu.Lock()
	bytes := l.bytes
	l.mu.Unlock()
	if bytes >= 0 {
		return bytes, nil
	}
	if err := l.loadCalls(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	bytes, last, sealed := l.bytes, l.last, l.sealed
	l.mu.Unlock()
	if !sealed {
		return bytes, nil
	}
	db := l.store.db
	return bytes, db.update(reserved, func() error { return db.execLocked(db.count, bytes, last, l.id) })
}

// Oldest is when the oldest record that is kept was made; the zero time if there
// is none.
func (l *Log) Oldest() (at time.Time, err error) {
	db := l.store.db
	err = db.query(db.oldest, func(scan scanner) (bool, error) {
		var row, nanoseconds, length int64
		err := scan(&row, &nanoseconds, &length)
		at = time.Unix(0, nanoseconds)
		return false, err
	}, l.row(l.First()), l.row(maxSeq), 1)
	return at, err
}

// shedStep is how many records one transaction drops, so that dropping a long log does not delay
// others for long.
const shedStep = 1000

func (l *Log) shed(b Bound) error {
	for {
		l.mu.Lock()
		first, end, size, sealed := l.first, min(b.UpTo, l.last), l.bytes, l.sealed
		l.mu.Unlock()
		if first > end {
			return nil
		}
		s := shedding{log: l, bound: b, size: size, dropped: first - 1, sealed: sealed}
		more, err := s.step(end)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// shedding is one step of Shed.
type shedding struct {
	log     *Log
	bound   Bound
	size    int64  // of the log, less what is dropped
	dropped uint64 // the last that is
	sealed  bool
}

// step drops what one transaction may, and reports whether there may be more to drop. It counts
// rows, not numbers: damage may have left holes of any size.
func (s *shedding) step(end uint64) (more bool, err error) {
	l, db := s.log, s.log.store.db
	from, size := s.dropped+1, s.size
	err = db.updateThen(reserved, func() error {
		s.dropped, s.size, more = from-1, size, false
		rows := 0
		err := db.rowsLocked(db.oldest, func(scan scanner) (bool, error) {
			var row, at, length int64
			if err := scan(&row, &at, &length); err != nil {
				return false, err
			}
			if s.size <= s.bound.Bytes && !time.Unix(0, at).Before(s.bound.Before) {
				return false, nil
			}
			s.dropped = uint64(row & maxSeq)
			s.size -= length + recordBytes
			rows++
			more = rows == shedStep
			return true, nil
		}, l.row(from), l.row(end), shedStep)
		if err != nil {
			return err
		}
		if rows == 0 && s.bound.Bytes == 0 && s.size == 0 { // a hole to the end
			s.dropped = end
		}
		if s.dropped < from {
			return nil
		}
		if err := db.execLocked(db.trim, l.row(from), l.row(s.dropped)); err != nil {
			return err
		}
		if s.sealed {
			if err := db.execLocked(db.count, s.size, l.Last(), l.id); err != nil {
				return err
			}
		}
		return db.execLocked(db.setFirst, s.dropped+1, l.id)
	}, func() { l.forget(s.dropped, size-s.size) })
	return more, err
}

// forget drops from memory what has been dropped from the database, which is locked: who misses a record there finds
// here whether it was dropped.
func (l *Log) forget(upTo uint64, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = max(l.first, upTo+1)
	l.bytes = max(0, l.bytes-bytes)
	l.dropTail(upTo)
	maps.DeleteFunc(l.calls, func(_, seq uint64) bool { return seq <= upTo })
}

// spareRoom is how many bytes of free pages the database keeps for what comes.
const spareRoom = 1 << 20

// shrinkStep is how many pages one transaction returns to the file system.
const shrinkStep = 256

// Tidy allocates the reserve again if there is room, and returns free pages of the database to the
// file system, if there are more than a few.
func (s *Store) Tidy() error {
	for {
		more, err := s.db.shrink()
		if err != nil || !more {
			return err
		}
	}
}

// shrink returns one step's worth of pages to the file system, and reports whether there are more.
// What has been cut off the database shows when its log has been copied into it.
func (d *database) shrink() (more bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return false, ErrClosed
	}
	var free, page int64
	if err := d.value("pragma freelist_count", &free); err != nil {
		return false, err
	}
	if err := d.value("pragma page_size", &page); err != nil {
		return false, err
	}
	if free*page <= spareRoom {
		d.reserve.ensure()
		return false, nil
	}
	if err := d.vacuum(); err != nil {
		return false, err
	}
	var left int64
	if err := d.value("pragma freelist_count", &left); err != nil {
		return false, err
	}
	if left < free && left*page > spareRoom {
		return true, nil
	}
	return false, d.run("pragma wal_checkpoint(passive)")
}

// vacuum returns pages back; the rows of the pragma are its steps.
func (d *database) vacuum() error {
	rows, err := d.conn.QueryContext(background, fmt.Sprintf("pragma incremental_vacuum(%d)", shrinkStep))
	if err != nil {
		return classify(d.path, err)
	}
	defer rows.Close()
	for rows.Next() {
	}
	return classify(d.path, rows.Err())
}
