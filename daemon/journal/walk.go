// Walking: reading rows by their ids, around what cannot be read.

package journal

import (
	"cmp"
	"fmt"
	"slices"
)

// walkTrials is how many reads of one walk may fail; no file of a sensible size
// has as many pages.
const walkTrials = 1 << 20

// A walk reads rows by their ids, around what cannot be read.
type walk struct {
	db             *database
	columns, table string // the first column is the id
	low, high      int64

	broken error // the first damage that was met; nil: none yet
	tail   bool  // the damage reaches to the end of the rows
}

// row reads a row and returns its id.
type row func(scanner) (int64, error)

// run calls each for every row that can be read, in the order of their ids. The
// error is the first damage that it met, or that each found in a row.
func (w *walk) run(each row) error {
	at := w.low
	jump := int64(1)
	for trial := 0; at <= w.high && trial < walkTrials; trial++ {
		from := at
		err := w.read(w.columns, at, w.high, "asc", func(scan scanner) (int64, error) {
			id, err := each(scan)
			if err == nil {
				at, w.tail = id+1, false
			}
			return id, err
		})
		if err == nil {
			return w.broken
		}
		w.broken = cmp.Or(w.broken, err)
		w.tail = true
		if at > from {
			jump = 1
		}
		behind := at
		if jump > w.high-at {
			at = w.high + 1
		} else {
			at += jump
		}
		jump *= 2
		if w.back(behind, at-1, each) {
			w.tail = false
		}
	}
	return w.broken
}

// back reads the rows from low to high from behind, up to damage, and passes them on in their
// order. It reports whether there were any.
func (w *walk) back(low, high int64, each row) (some bool) {
	if low > high {
		return false
	}
	var ids []int64
	_ = w.read("id", low, high, "desc", func(scan scanner) (id int64, err error) { // the damage is known
		if err = scan(&id); err == nil {
			ids = append(ids, id)
		}
		return id, err
	})
	for _, id := range slices.Backward(ids) {
		if w.read(w.columns, id, id, "asc", each) == nil {
			some = true
		}
	}
	return some
}

// read reads the rows from low to high in that order, up to damage.
func (w *walk) read(columns string, low, high int64, order string, each row) error {
	text := fmt.Sprintf("select %s from %s where id between ? and ? order by id %s", columns, w.table, order)
	return w.db.rowsLocked(text, func(scan scanner) (bool, error) {
		id, err := each(scan)
		if err != nil {
			return false, err
		}
		if id < low || id > high { // also round and round
			return false, &CorruptError{Path: w.db.path, Err: fmt.Errorf("row %d is out of order", id)}
		}
		if order == "asc" {
			low = id + 1
		} else {
			high = id - 1
		}
		return true, nil
	}, low, high)
}
