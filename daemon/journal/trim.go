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
	return bytes, db.update(reserved, func() error { return db.execLocked(setCount, bytes, last, l.id) })
}

// Oldest is when the oldest record that is kept was made; the zero time if there
// is none.
func (l *Log) Oldest() (at time.Time, err error) {
	db := l.store.db
	err = db.query(selectOldest, func(scan scanner) (bool, error) {
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
		if more, err := l.shedSome(b); err != nil || !more {
			return err
		}
	}
}

// shedSome drops what one transaction may, and reports whether there may be more to drop. It counts
// rows, not numbers: damage may have left holes of any size.
func (l *Log) shedSome(b Bound) (more bool, err error) {
	db := l.store.db
	l.mu.Lock()
	first, end, size, sealed := l.first, min(b.UpTo, l.last), l.bytes, l.sealed
	l.mu.Unlock()
	if first > end {
		return false, nil
	}
	var dropped uint64 // the last that is
	var left int64     // the size without them
	err = db.updateThen(reserved, func() error {
		rows := 0
		dropped, left, more = first-1, size, false
		err := db.rowsLocked(selectOldest, func(scan scanner) (bool, error) {
			var row, at, length int64
			if err := scan(&row, &at, &length); err != nil {
				return false, err
			}
			if left <= b.Bytes && !time.Unix(0, at).Before(b.Before) {
				return false, nil
			}
			dropped = uint64(row & maxSeq)
			left -= length + recordBytes
			rows++
			more = rows == shedStep
			return true, nil
		}, l.row(first), l.row(end), shedStep)
		if rows == 0 && b.Bytes == 0 && left == 0 { // a hole to the end
			dropped = end
		}
		if err != nil || dropped < first {
			return err
		}
		if err := l.moveNotes(first, dropped); err != nil {
			return err
		}
		if err := db.execLocked(trimRecords, l.row(first), l.row(dropped)); err != nil {
			return err
		}
		if sealed {
			if err := db.execLocked(setCount, left, l.Last(), l.id); err != nil {
				return err
			}
		}
		return db.execLocked("update logs set first = max(first, ?) where id = ?", dropped+1, l.id)
	}, func() { l.forget(dropped, size-left) })
	return more, err
}

// forget drops from memory what has been dropped from the database, which is locked: who misses a record there finds
// here whether it was dropped.
func (l *Log) forget(upTo uint64, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = max(l.first, upTo+1)
	l.bytes = max(0, l.bytes-bytes)
	l.dropTail(upTo, math.MaxInt)
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
	err = d.locked(func() error {
		before, err := d.free()
		if err != nil {
			return err
		}
		if before <= spareRoom {
			d.reserve.ensure()
			return nil
		}
		// The rows of the pragma are its steps.
		step := func(scanner) (bool, error) { return true, nil }
		if err := d.rowsLocked(fmt.Sprintf("pragma incremental_vacuum(%d)", shrinkStep), step); err != nil {
			return err
		}
		left, err := d.free()
		if more = left < before && left > spareRoom; more || err != nil {
			return err
		}
		return d.run("pragma wal_checkpoint(passive)")
	})
	return more, err
}

// free returns how many bytes the free pages of the database have.
func (d *database) free() (int64, error) {
	var pages, size int64
	err := d.value("pragma freelist_count", &pages)
	if err == nil {
		err = d.value("pragma page_size", &size)
	}
	return pages * size, err
}
