// Cursors: reading a log from any number on and going on live. A cursor that is behind reads the
// database; one that has caught up is given the newest records from memory.

package journal

import (
	"math"
	"slices"
)

// tailLimit bounds what a log keeps in memory for cursors that have not read
// it yet, in bytes of bodies. A slower cursor reads the database.
const tailLimit = 128 << 10

// recordCost is what a record in memory costs besides its body.
const recordCost = 128

// Cursor reads a log in order. Next and Close belong to one goroutine.
type Cursor struct {
	log  *Log
	wake chan struct{}
	pos  uint64 // guarded by log.mu: up to here everything was returned
}

// Follow returns a cursor that stands behind the record after: 0 is the
// beginning, Last the end. It costs next to nothing while it has caught up, or
// is never read. It must be closed.
func (l *Log) Follow(after uint64) *Cursor {
	c := &Cursor{log: l, wake: make(chan struct{}, 1), pos: after}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cursors = append(l.cursors, c)
	return c
}

// Next returns the records that follow, none if the cursor has caught up: at
// most 256 or about 256 KiB, but one at least. Every record comes once, in
// order and without a gap, except that those that were trimmed before they
// were read, and those that are lost ([Log.Gaps]), are passed over. A [*CorruptError] says that the next record
// cannot be read; asking again tells the same.
func (c *Cursor) Next() ([]Record, error) {
	l := c.log
	records, upTo, err := l.ready(c)
	if err != nil || records != nil || upTo == 0 {
		return records, err
	}
	after := c.pos // only this goroutine changes it
	if records, err = l.read(after, upTo); err != nil {
		return nil, err
	}
	if len(records) == 0 { // trimmed under our eyes
		return c.Next()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(c, records[len(records)-1].Seq)
	return records, nil
}

// Read is the number up to which every cursor has returned the records; Last if
// there is none.
func (l *Log) Read() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readByAll()
}

// Wake returns a channel that is signalled after records were committed that
// Next has yet to return, and when the log is removed. It has one slot: read
// Next until it is empty, then wait.
func (c *Cursor) Wake() <-chan struct{} { return c.wake }

// Close lets the cursor go.
func (c *Cursor) Close() {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cursors = slices.DeleteFunc(l.cursors, func(other *Cursor) bool { return other == c })
	l.dropTail(l.readByAll(), math.MaxInt)
}

// ready returns the records after the cursor if they are in memory; otherwise
// up to which number they are in the database, 0 if there are none.
func (l *Log) ready(c *Cursor) (records []Record, upTo uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil, 0, ErrNotFound
	}
	c.pos = l.past(max(c.pos, l.first-1)+1) - 1
	if c.pos >= l.last {
		return nil, 0, nil
	}
	if len(l.tail) == 0 {
		return nil, l.last, nil
	}
	if begin := l.tail[0].Seq; c.pos+1 < begin {
		return nil, begin - 1, nil
	}
	records = l.tail[c.pos+1-l.tail[0].Seq:]
	records = slices.Clone(records[:min(len(records), readRecords)])
	l.advance(c, records[len(records)-1].Seq)
	return records, 0, nil
}

// The functions below are called with mu held. The tail, if it is not empty,
// has no gap and ends with the newest record.

// readByAll is Read with mu held.
func (l *Log) readByAll() uint64 {
	read := l.last
	for _, c := range l.cursors {
		read = min(read, c.pos)
	}
	return read
}

// advance moves a cursor and drops what every cursor has read.
func (l *Log) advance(c *Cursor, to uint64) {
	c.pos = to
	l.dropTail(l.readByAll(), math.MaxInt)
}

func (l *Log) addTail(r Record) {
	l.tail = append(l.tail, r)
	l.tailBytes += len(r.Body) + recordCost
	if l.tailBytes > tailLimit {
		// Half of it goes at once: dropping one by one would move all the others for each record.
		l.dropTail(0, tailLimit/2)
	}
}

// dropTail drops the records up to and including upTo from memory, and more while they take more than most bytes.
func (l *Log) dropTail(upTo uint64, most int) {
	drop := 0
	for drop < len(l.tail) && (l.tail[drop].Seq <= upTo || l.tailBytes > most) {
		l.tailBytes -= len(l.tail[drop].Body) + recordCost
		drop++
	}
	if drop == 0 {
		return
	}
	l.tail = slices.Delete(l.tail, 0, drop)
	if len(l.tail) == 0 && cap(l.tail) > 16 {
		l.tail = nil
	}
}

func (l *Log) wakeCursors() {
	for _, c := range l.cursors {
		signal(c.wake)
	}
}
