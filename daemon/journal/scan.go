// Scanning: finding the records in a database file page by page, without the tree that leads to
// them, for what hangs below a page that is lost.

package journal

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
)

// pageSize is that of every database that this package has made.
const pageSize = 4096

// pages is a database file.
type pages struct {
	file *os.File
	rows map[int64]cell // of the table of records, by id
	ids  []int64        // theirs, in order
}

// cell is where a row stands: the page's number from 1, the offset in it.
type cell struct {
	page   uint32
	offset int
}

var errNoRow = errors.New("no row of a record stands here")

// scanPages looks through the file. A row that stands in it more than once, since
// its page was moved, is the same everywhere: records are never changed.
func scanPages(path string) (*pages, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &pages{file: f, rows: map[int64]cell{}}
	page := make([]byte, pageSize)
	for number := uint32(1); ; number++ {
		if _, err := io.ReadFull(f, page); err != nil {
			p.ids = slices.Sorted(maps.Keys(p.rows))
			return p, nil // the end, or as far as it can be read
		}
		for _, offset := range cellsOf(page) {
			if id, _, _, err := payloadOf(page, offset); err == nil && id > 0 {
				p.rows[id] = cell{number, offset}
			}
		}
	}
}

func (p *pages) close() error { return p.file.Close() }

// between returns the ids that were found from low to high, in order.
func (p *pages) between(low, high int64) []int64 {
	from, _ := slices.BinarySearch(p.ids, low)
	to, _ := slices.BinarySearch(p.ids, high+1)
	return p.ids[from:max(from, to)]
}

// cellsOf returns the offsets of a page's cells, if it is a leaf of a table.
func cellsOf(page []byte) (offsets []int) {
	const leaf, header = 0x0d, 8
	if page[0] != leaf {
		return nil
	}
	count := int(binary.BigEndian.Uint16(page[3:]))
	for i := range min(count, (pageSize-header)/2) {
		if offset := int(binary.BigEndian.Uint16(page[header+2*i:])); offset >= header && offset < pageSize {
			offsets = append(offsets, offset)
		}
	}
	return offsets
}

// varint reads one of SQLite's integers; nothing is left of bytes if it is cut
// off.
func varint(bytes []byte) (value uint64, rest []byte) {
	for i := range min(len(bytes), 9) {
		if i == 8 {
			return value<<8 | uint64(bytes[i]), bytes[i+1:]
		}
		value = value<<7 | uint64(bytes[i]&0x7f)
		if bytes[i] < 0x80 {
			return value, bytes[i+1:]
		}
	}
	return 0, nil
}

// payloadOf returns a cell's row id, how long its payload is and the part of that
// which stands on the page, with the number of the page that holds more behind it.
func payloadOf(page []byte, offset int) (id int64, size int, local []byte, err error) {
	length, rest := varint(page[offset:])
	rowid, rest := varint(rest)
	if rest == nil || length < 8 || length > MaxBody+1<<16 || rowid > 1<<62 {
		return 0, 0, nil, errNoRow
	}
	const most = pageSize - 35
	here := int(length)
	if here > most {
		const least = (pageSize-12)*32/255 - 23
		if here = least + (here-least)%(pageSize-4); here > most {
			here = least
		}
		here += 4
	}
	if here > len(rest) {
		return 0, 0, nil, errNoRow
	}
	return int64(rowid), int(length), rest[:here], nil
}

// read reads the row of that id.
func (p *pages) read(id int64) (r saved, err error) {
	at := p.rows[id]
	page := make([]byte, pageSize)
	if err := p.page(at.page, page); err != nil {
		return r, err
	}
	_, size, local, err := payloadOf(page, at.offset)
	if err != nil {
		return r, err
	}
	payload := local
	if len(local) < size {
		if payload, err = p.overflow(local, size); err != nil {
			return r, err
		}
	}
	r, err = decodeRow(payload)
	r.row = id
	return r, err
}

// overflow follows a payload through the pages that hold the rest of it.
func (p *pages) overflow(local []byte, size int) ([]byte, error) {
	end := len(local) - 4
	next := binary.BigEndian.Uint32(local[end:])
	payload := slices.Clone(local[:end])
	page := make([]byte, pageSize)
	for len(payload) < size {
		if err := p.page(next, page); err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(page)
		payload = append(payload, page[4:min(pageSize, 4+size-len(payload))]...)
	}
	return payload, nil
}

func (p *pages) page(number uint32, into []byte) error {
	if number < 1 {
		return errNoRow
	}
	_, err := p.file.ReadAt(into, int64(number-1)*pageSize)
	return err
}

// decodeRow reads the columns of a record: id, time, kind, call, prev, turn, body.
func decodeRow(payload []byte) (r saved, err error) {
	length, rest := varint(payload)
	if rest == nil || length > uint64(len(payload)) {
		return r, errNoRow
	}
	types := payload[len(payload)-len(rest) : max(length, uint64(len(payload)-len(rest)))]
	values := payload[length:]
	var numbers [7]int64
	var blobs [7][]byte
	for column := range 7 {
		var kind uint64
		if kind, types = varint(types); types == nil {
			return r, errNoRow
		}
		text := column == 3 || column == 6
		size, ok := columnSize(kind)
		if !ok || size > len(values) || text != (kind >= 12) || column == 0 && kind != 0 {
			return r, errNoRow
		}
		blobs[column] = values[:size]
		numbers[column] = integer(kind, values[:size])
		values = values[size:]
	}
	if len(types) > 0 || numbers[2] < 0 || numbers[2] > 255 || numbers[5] < 0 {
		return r, errNoRow
	}
	r.at, r.Kind, r.Call, r.Turn, r.Body = numbers[1], Kind(numbers[2]), string(blobs[3]), uint64(numbers[5]), slices.Clone(blobs[6])
	return r, nil
}

// columnSize is how many bytes a column of that type has.
func columnSize(kind uint64) (size int, ok bool) {
	switch {
	case kind <= 4:
		return int(kind), true
	case kind == 5:
		return 6, true
	case kind == 6:
		return 8, true
	case kind == 8 || kind == 9:
		return 0, true
	case kind >= 12 && kind <= 2*(MaxBody+1<<16):
		return int(kind-12) / 2, true
	}
	return 0, false
}

func integer(kind uint64, bytes []byte) (value int64) {
	if kind == 9 {
		return 1
	}
	if len(bytes) == 0 || kind >= 12 {
		return 0
	}
	value = int64(int8(bytes[0]))
	for _, b := range bytes[1:] {
		value = value<<8 | int64(b)
	}
	return value
}
