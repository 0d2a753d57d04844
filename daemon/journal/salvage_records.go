// Salvage of one log: its records and its state, read from both ends as far as the
// database leads to them.

package journal

import (
	"errors"
	"fmt"
	"slices"
)

// readRows calls each for the rows with ids from low to high that can be read, in
// the order of their ids: those before the first damage and those behind the last.
// Each returns the id of its row. The error is the damage; tail reports whether
// nothing can be read behind it.
func (d *database) readRows(columns, table string, low, high int64, each func(scanner) (int64, error)) (tail bool, err error) {
	next := low
	err = d.readOrder(columns, table, low, high, "asc", func(scan scanner) (int64, error) {
		id, err := each(scan)
		if err == nil {
			next = id + 1
		}
		return id, err
	})
	if err == nil {
		return false, nil
	}
	var ids []int64
	_ = d.readOrder("id", table, next, high, "desc", func(scan scanner) (id int64, err error) { // the damage is known
		if err = scan(&id); err == nil {
			ids = append(ids, id)
		}
		return id, err
	})
	tail = true
	for _, id := range slices.Backward(ids) {
		if d.readOrder(columns, table, id, id, "asc", each) == nil {
			tail = false
		}
	}
	return tail, err
}

// readOrder reads the rows from low to high in that order, up to damage.
func (d *database) readOrder(columns, table string, low, high int64, order string, each func(scanner) (int64, error)) error {
	text := fmt.Sprintf("select %s from %s where id between ? and ? order by id %s", columns, table, order)
	rows, err := d.conn.QueryContext(background, text, low, high)
	if err != nil {
		return classify(d.path, err)
	}
	defer rows.Close()
	for rows.Next() {
		id, err := each(rows.Scan)
		if err != nil {
			return err
		}
		if id < low || id > high { // a damaged tree can be a circle
			return &CorruptError{Path: d.path, Err: fmt.Errorf("row %d is out of order", id)}
		}
		if order == "asc" {
			low = id + 1
		} else {
			high = id - 1
		}
	}
	return classify(d.path, rows.Err())
}

// records copies the records of a log in their order, within the transaction that
// copies the log, and notes which are missing. Its error is one of writing.
func (s *salvaging) records(f found, loss *Loss) error {
	l := &Log{id: f.id}
	expected := f.first
	newest := map[string]uint64{} // by call: its records link to the one before that is there
	var failed error              // of writing
	tail, broken := s.old.readRows("id, time, kind, call, turn, body", "records", l.row(f.first), l.row(maxSeq),
		func(scan scanner) (row int64, err error) {
			var r Record
			var at int64
			err = scan(&row, &at, &r.Kind, &r.Call, &r.Turn, &r.Body)
			if err == nil && r.Turn > 1<<62 {
				err = fmt.Errorf("turn %d", r.Turn)
			}
			seq := uint64(row & maxSeq)
			if err = errors.Join(err, failed); err != nil || seq < expected {
				return row, err
			}
			if seq > expected {
				loss.Gaps = append(loss.Gaps, Gap{expected, seq - 1})
			}
			failed = s.into.exec(s.into.insert, row, at, int64(r.Kind), r.Call, int64(newest[r.Call]), int64(r.Turn), blob(r.Body))
			if r.Call != "" {
				newest[r.Call] = seq
			}
			expected = seq + 1
			return row, failed
		})
	switch {
	case failed != nil:
		return failed
	case f.last >= int64(expected):
		loss.Gaps = append(loss.Gaps, Gap{expected, min(uint64(f.last), maxSeq)})
	case broken != nil && f.last < 0:
		loss.Tail = tail
	}
	for _, g := range loss.Gaps {
		if err := s.into.exec(s.into.addGap, l.id, int64(g.First), int64(g.Last)); err != nil {
			return err
		}
	}
	return nil
}

// state copies that of a log, from both ends as far as it can be read. Its error
// is one of writing.
func (s *salvaging) state(f found, loss *Loss) error {
	values := map[string][]byte{}
	for _, order := range []string{"asc", "desc"} {
		if s.readState(f.id, order, values) == nil {
			break
		}
		loss.State = true
	}
	for key, value := range values {
		if err := s.into.exec(s.into.setState, f.id, key, blob(value)); err != nil {
			return err
		}
	}
	return nil
}

// readState reads the state of a log in that order, up to damage.
func (s *salvaging) readState(log int64, order string, into map[string][]byte) error {
	rows, err := s.old.conn.QueryContext(background, "select key, value from state where log = ? order by key "+order, log)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		var value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		into[key] = value
	}
	return rows.Err()
}
