// Gaps: numbers whose records damage has taken.

package journal

import (
	"fmt"
	"slices"
)

// A Gap is a stretch of numbers whose records are lost.
type Gap struct {
	First, Last uint64
}

// Gaps are the stretches of the log that damage has taken, in order. Cursors
// pass over them.
func (l *Log) Gaps() []Gap { return slices.Clone(l.gaps) }

// past is the first number from seq on whose record is not lost.
func (l *Log) past(seq uint64) uint64 {
	for _, g := range l.gaps {
		if g.First <= seq && seq <= g.Last {
			seq = g.Last + 1
		}
	}
	return seq
}

// gaps reads those of a log; the database is locked.
func (s *Store) gaps(log int64) (gaps []Gap, err error) {
	err = s.db.rowsLocked("select first, last from gaps where log = ? order by first", func(scan scanner) (bool, error) {
		var g Gap
		if err := scan(&g.First, &g.Last); err != nil {
			return false, err
		}
		if g.First < 1 || g.Last < g.First || g.Last > maxSeq {
			return false, &CorruptError{Path: s.db.path, Err: fmt.Errorf("a gap from %d to %d", g.First, g.Last)}
		}
		gaps = append(gaps, g)
		return true, nil
	}, log)
	return gaps, err
}
