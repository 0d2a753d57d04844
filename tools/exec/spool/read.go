// Reading an output, while it grows and after: by position among all bytes, or by position in one
// channel.

package spool

import (
	"errors"
	"io"
	"os"
)

// A Run is a range of bytes of one channel.
type Run struct {
	Channel Channel
	Offset  int64  // position of Data in its channel, in bytes
	Data    []byte // a part of the reader's own buffer
}

// Next reads into buf from pos, a position among the bytes of both channels, and returns bytes of
// the one run there. If Data is empty, nothing has come there yet (see Changed); io.EOF means that
// nothing will.
func (o *Output) Next(pos int64, buf []byte) (Run, error) {
	s := o.snapshot()
	defer s.release()
	if pos >= s.sizes.total() || pos < 0 || len(buf) == 0 {
		return Run{}, s.end(pos >= s.sizes.total())
	}
	r, end := s.at(s.last(func(r run) bool { return r.start <= pos }))
	n := s.read(buf[:max(0, min(int64(len(buf)), end-pos))], pos)
	return Run{Channel: r.channel, Offset: r.offset + pos - r.start, Data: buf[:n]}, s.fault
}

// NextOf is Next for one channel: offset is a position in ch, and Data continues over runs of the
// other channel.
func (o *Output) NextOf(ch Channel, offset int64, buf []byte) (Run, error) {
	s := o.snapshot()
	defer s.release()
	if offset >= s.sizes[ch] || offset < 0 {
		return Run{}, s.end(offset >= s.sizes[ch])
	}
	got := 0
	for i := s.last(func(r run) bool { return r.position(ch) <= offset }); got < len(buf) && i < s.count; i += channels { // runs alternate
		r, end := s.at(i)
		from := r.start + offset + int64(got) - r.offset
		if got += s.read(buf[got:][:max(0, min(int64(len(buf)-got), end-from))], from); s.fault != nil {
			return Run{}, s.fault
		}
	}
	return Run{Channel: ch, Offset: offset, Data: buf[:got]}, s.fault
}

// A snapshot is an output at one moment, ready to be read. Later additions do not change it.
type snapshot struct {
	of       *Output
	raw, idx *os.File // idx is nil if count is 0
	count    int64    // of records in the index
	sizes    channelSizes
	lines    int64
	borrowed bool // the files are the output's own
	ended    bool
	fault    error // the first that was met; nothing is read after it
}

// snapshot returns the output's present extent. While the output grows or is held, its own files are
// used; afterwards files are opened only for reading, so that an output without readers holds nothing
// open.
func (o *Output) snapshot() snapshot {
	o.mu.Lock()
	s := snapshot{of: o, count: o.runs, sizes: o.sizes, lines: o.lines, ended: o.ended, borrowed: !o.ended || o.readers > 0}
	if s.borrowed {
		o.readers++
		s.raw, s.idx = o.raw, o.idx
	}
	o.mu.Unlock()
	if !s.borrowed {
		s.open()
	}
	return s
}

// open opens what the snapshot needs.
func (s *snapshot) open() {
	if s.sizes.total() > 0 {
		s.raw, s.fault = os.Open(s.of.base + rawSuffix)
	}
	if s.count > 0 && s.fault == nil {
		s.idx, s.fault = os.Open(s.of.base + indexSuffix)
	}
	if s.count > 0 && s.fault != nil {
		s.count = 0 // without its index no position can be found; read returns the error
	}
}

func (s *snapshot) release() {
	if s.borrowed {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		s.of.readers--
		_ = s.of.closeFiles() // Close has already reported success; what was written was checked then
		return
	}
	for _, f := range []*os.File{s.raw, s.idx} {
		if f != nil {
			_ = f.Close() // only read
		}
	}
}

// end returns the error of a reader at the end of the data.
func (s *snapshot) end(all bool) error {
	if s.ended && all {
		return io.EOF
	}
	return nil
}

// read returns how many bytes it has read. A file that another program has shortened ends early; if
// nothing is left, that is a fault.
func (s *snapshot) read(buf []byte, at int64) int {
	if s.fault != nil || len(buf) == 0 {
		return 0
	}
	n, err := s.raw.ReadAt(buf, at)
	if n == 0 || !errors.Is(err, io.EOF) {
		s.fault = err
	}
	return n
}
