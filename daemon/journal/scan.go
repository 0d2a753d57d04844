// Scanning: finding the records in a database file page by page, without the tree that leads to
// them, for what hangs below a page that is lost. SQLite reads each page itself: it is shown a copy
// of the file in which that page is the whole table of records.

package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	pageSize = 4096 // of every database that this package has made
	// slot is the page that is the table of records in the copy. In a journal it is never one of that table.
	slot        = 2
	leafOfTable = 0x0d // the first byte of a page with rows
	counterAt   = 24   // where a file has its change counter: with another one SQLite reads all pages again
	pagesSuffix = ".pages"
)

// copySchema makes the table of records with those columns behind its first, and a view of those of its rows that can be records.
const copySchema = `pragma page_size = 4096;
create table records (id integer primary key%s);
create view found as select * from records where typeof(time) = 'integer' and typeof(kind) = 'integer' and kind between 0 and 255
	and typeof(call) = 'text' and typeof(prev) = 'integer' and typeof(turn) = 'integer' and turn >= 0 and typeof(body) = 'blob' and typeof(note) in ('blob', 'null')`

// columnsOf returns the columns of the table of records behind its first, in their order; of an older version with those that it
// lacks at the end, where its rows have nothing.
func columnsOf(d *database) (columns string) {
	const text = "select name from pragma_table_info('records') where name <> 'id' order by cid"
	err := d.rowsLocked(text, func(scan scanner) (bool, error) {
		var name string
		err := scan(&name)
		columns += ", " + name
		return true, err
	})
	switch {
	case err != nil || columns == "": // as a new one has them
		return ", time, kind, call, prev, turn, note, body"
	case !strings.Contains(columns, ", note"):
		columns += ", note"
	}
	return columns
}

// pages is a database file, and the copy that shows a page of it.
type pages struct {
	source, file *os.File // file: the copy
	db           *database
	counter      uint32
	shown        uint32           // the page in the slot
	rows         map[int64]uint32 // the page that has a record, by id
	ids          []int64          // of the records, in order
}

var errNoRow = errors.New("no row of a record stands here")

// scanPages looks through the file. A row that stands in it more than once, since
// its page was moved, is the same everywhere: records are never changed.
func scanPages(old *database) (*pages, error) {
	p := &pages{counter: 1 << 16, rows: map[int64]uint32{}}
	if err := p.open(old.path, columnsOf(old)); err != nil {
		return nil, errors.Join(err, p.close())
	}
	for number := uint32(slot + 1); ; number++ {
		switch leaf, err := p.show(number); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			p.ids = slices.Sorted(maps.Keys(p.rows))
			return p, nil
		case err != nil:
			return nil, errors.Join(err, p.close())
		case leaf:
			w := walk{db: p.db, columns: "id", table: "found", low: 1, high: 1 << 62}
			_ = w.run(func(scan scanner) (id int64, err error) { // what is damaged is not found
				if err = scan(&id); err == nil {
					p.rows[id] = number
				}
				return id, err
			})
		}
	}
}

// open makes the copy.
func (p *pages) open(path, columns string) (err error) {
	if p.source, err = os.Open(path); err != nil {
		return err
	}
	if err = removeAll(path + pagesSuffix); err != nil { // an earlier attempt's
		return err
	}
	if p.file, err = os.OpenFile(path+pagesSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if p.db, err = connect(path + pagesSuffix); err != nil {
		return err
	}
	if err = p.db.run(fmt.Sprintf(copySchema, columns)); err != nil {
		return err
	}
	_, err = p.source.Seek(slot*pageSize, io.SeekStart)
	if err == nil {
		_, err = p.file.Seek(slot*pageSize, io.SeekStart)
	}
	if err == nil {
		_, err = io.Copy(p.file, p.source)
	}
	return err
}

// close removes the copy.
func (p *pages) close() (err error) {
	if p.db != nil {
		err = p.db.close()
	}
	if p.file != nil {
		err = errors.Join(err, p.file.Close(), removeAll(p.file.Name()))
	}
	return errors.Join(err, p.source.Close())
}

// show puts a page into the slot, and reports whether it can have rows.
func (p *pages) show(number uint32) (leaf bool, err error) {
	page := make([]byte, pageSize)
	if _, err := p.file.ReadAt(page, int64(number-1)*pageSize); err != nil || page[0] != leafOfTable {
		return false, err
	}
	p.counter++
	_, err = p.file.WriteAt(page, (slot-1)*pageSize)
	_, counted := p.file.WriteAt(binary.BigEndian.AppendUint32(nil, p.counter), counterAt)
	p.shown = number
	return true, cmp.Or(err, counted)
}

// between returns the ids that were found from low to high, in order.
func (p *pages) between(low, high int64) []int64 {
	from, _ := slices.BinarySearch(p.ids, low)
	to, _ := slices.BinarySearch(p.ids, high+1)
	return p.ids[from:max(from, to)]
}

// read reads the row of that id.
func (p *pages) read(id int64) (r saved, err error) {
	if at := p.rows[id]; at != p.shown {
		if _, err := p.show(at); err != nil {
			return r, err
		}
	}
	err = p.db.rowsLocked("select id, time, kind, call, turn, body, note from found where id = ?", func(scan scanner) (bool, error) {
		return false, scan(&r.row, &r.at, &r.Kind, &r.Call, &r.Turn, &r.Body, &r.note)
	}, id)
	if err == nil && r.row != id {
		err = errNoRow
	}
	return r, err
}
