// Salvage of one log's records: through the tree as far as it leads, and from the
// pages themselves what hangs below those that are lost.

package journal

import "fmt"

// saved is a row of the records, with the time as it is kept.
type saved struct {
	Record
	note    []byte
	row, at int64
}

// rescue is the salvage of one log's records.
type rescue struct {
	*salvaging
	log   *Log
	walk  walk
	loss  *Loss
	next  uint64 // the number that is expected
	calls map[string]uint64
	batch []saved
	wrong error // of writing
}

// records saves those of a log, in their order, and notes which are missing. It returns the number after which the log goes on.
func (s *salvaging) records(f found, loss *Loss) (last uint64, err error) {
	l := &Log{id: f.id}
	r := rescue{salvaging: s, log: l, loss: loss, next: f.first, calls: map[string]uint64{}, walk: walk{
		db: s.old, columns: "id, time, kind, call, turn, body, " + s.since(3, "note", "null"), table: "records", low: l.row(f.first), high: l.row(maxSeq),
	}}
	broken := r.walk.run(r.scanned)
	if broken != nil {
		r.fill(maxSeq + 1)
	}
	r.flush()
	if r.wrong != nil {
		return 0, r.wrong
	}
	last = r.next - 1
	switch {
	case f.last >= int64(r.next):
		last = min(uint64(f.last), maxSeq)
		loss.Gaps = append(loss.Gaps, Gap{r.next, last})
	case broken != nil && f.last < 0:
		loss.Tail = r.walk.tail
	}
	return last, nil
}

// scanned takes a row that the tree has led to.
func (r *rescue) scanned(scan scanner) (int64, error) {
	var x saved
	err := scan(&x.row, &x.at, &x.Kind, &x.Call, &x.Turn, &x.Body, &x.note)
	if err == nil && x.Turn > 1<<62 {
		err = &CorruptError{Path: r.old.path, Err: fmt.Errorf("turn %d", x.Turn)}
	}
	if err != nil {
		return x.row, err
	}
	x.Seq = uint64(x.row & maxSeq)
	if r.walk.broken != nil && x.Seq > r.next {
		r.fill(x.Seq)
	}
	r.take(x)
	return x.row, r.wrong
}

// fill takes what the pages hold of the records before end that the tree has not
// led to.
func (r *rescue) fill(end uint64) {
	if r.pages == nil {
		if r.pages, r.wrong = scanPages(r.old); r.wrong != nil {
			return
		}
	}
	for _, id := range r.pages.between(r.log.row(r.next), r.log.row(end-1)) {
		if x, err := r.pages.read(id); err == nil && x.Turn <= 1<<62 {
			x.Seq = uint64(id & maxSeq)
			r.take(x)
		}
	}
}

// take takes the next record that there is.
func (r *rescue) take(x saved) {
	if x.Seq < r.next {
		return
	}
	if x.Seq > r.next {
		r.loss.Gaps = append(r.loss.Gaps, Gap{r.next, x.Seq - 1})
	}
	r.next = x.Seq + 1
	if r.batch = append(r.batch, x); len(r.batch) == salvageStep {
		r.flush()
	}
}

// flush writes the batch, with links that lead from each record to the one before of its call that is there.
func (r *rescue) flush() {
	batch := r.batch
	if r.batch = nil; r.wrong != nil || len(batch) == 0 {
		return
	}
	r.wrong = r.into.update(common, func() error {
		for _, x := range batch {
			var before uint64
			if x.Call != "" {
				before = r.calls[x.Call]
				r.calls[x.Call] = x.Seq
			}
			if err := r.into.insertLocked(&x, before); err != nil {
				return err
			}
		}
		return nil
	})
}
