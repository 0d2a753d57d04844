// Our own engine: it searches the text of one file line by line, in windows of bounded size.

package grep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/toold/toold/tools/fs/index"
)

// A query is what both engines search for.
type query struct {
	expr          *expression
	mode          string
	only          bool // in mode content: matching parts of lines, not whole lines
	multiline     bool
	before, after int64 // lines of context
	keep          int64 // lines of one file that a page could need; 0: all
}

const (
	window    = 256 << 10 // bytes read at once; most files fit
	longest   = 16 << 20  // of a line, in bytes; the rest is not searched
	wholeFile = 64 << 20  // largest file, in bytes, that is searched across lines
	mostSpans = 1 << 20   // matches across lines that are found in one file
)

// Reasons why the search of one file is incomplete.
var (
	errBinary    = errors.New("a binary file")
	errLongLine  = errors.New("a line of more than 16 MiB was searched in part")
	errTooLarge  = errors.New("larger than 64 MiB, which is too much to search across lines")
	errManySpans = errors.New("more than 1,048,576 matches across lines")
)

// A scanner searches one file after another, on one goroutine, in the same memory.
type scanner struct {
	*query
	in      io.Reader
	ended   bool   // in is at its end
	buf     []byte // read and not yet released
	low     []byte // the same in lower case, if the needles need it
	from    int    // buf is searched up to here, the start of a line
	seen    []int  // the next position of each needle in buf
	number  int64  // of the line that begins at counted
	counted int
	shown   int   // the end of what was shown of buf: context does not begin earlier
	pending int64 // lines of context that are still to be shown after the last match
	found   *hits
}

func newScanner(q *query) *scanner {
	s := &scanner{query: q, buf: make([]byte, 0, window)}
	if q.expr != nil {
		s.seen = make([]int, len(q.expr.needles))
	}
	return s
}

// scan searches the content of r. The hits count even after an error.
func (s *scanner) scan(r io.Reader) (*hits, error) {
	s.in, s.ended, s.buf = r, false, s.buf[:0]
	s.from, s.number, s.counted, s.shown, s.pending = 0, 1, 0, 0, 0
	s.found = &hits{}
	if err := s.open(); err != nil {
		return s.found, err
	}
	if s.multiline {
		return s.found, s.across()
	}
	return s.found, s.windows()
}

// fill reads until buf is full or the text ends.
func (s *scanner) fill() error {
	for !s.ended && len(s.buf) < cap(s.buf) {
		n, err := s.in.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if s.ended = err == io.EOF; err != nil && !s.ended {
			return err
		}
	}
	return nil
}

// open reads the first window and detects the kind of file: UTF-16 is converted to UTF-8.
func (s *scanner) open() error {
	if err := s.fill(); err != nil {
		return err
	}
	if index.IsUTF16(s.buf) {
		all := io.MultiReader(bytes.NewReader(slices.Clone(s.buf)), s.in)
		s.in = transform.NewReader(all, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder())
		s.buf, s.ended = s.buf[:0], false
		return s.fill()
	}
	if index.IsBinary(s.buf) {
		return errBinary
	}
	if mark := []byte("\ufeff"); bytes.HasPrefix(s.buf, mark) {
		s.from, s.counted, s.shown = len(mark), len(mark), len(mark)
	}
	return nil
}

// windows searches line by line.
func (s *scanner) windows() error {
	var short error
	for {
		end := len(s.buf)
		if !s.ended {
			end = s.from + bytes.LastIndexByte(s.buf[s.from:], '\n') + 1
		}
		if end == s.from && !s.ended {
			if len(s.buf)-s.from < longest {
				s.buf = slices.Grow(s.buf, cap(s.buf))
			} else if err := s.cutLine(); err != nil {
				return err
			} else {
				short = errLongLine
			}
		} else {
			s.lines(end)
			if s.ended || s.satisfied() {
				return short
			}
			s.shift()
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// satisfied reports whether one match is enough, as in mode files_with_matches.
func (s *scanner) satisfied() bool { return s.mode == modeFiles && s.found.matches > 0 }

// cutLine ends a line that fills buf where buf ends, and skips the rest of it.
func (s *scanner) cutLine() error {
	s.buf[len(s.buf)-1] = '\n'
	var skip [32 << 10]byte
	for !s.ended {
		n, err := s.in.Read(skip[:])
		if s.ended = err == io.EOF; err != nil && !s.ended {
			return err
		}
		if i := bytes.IndexByte(skip[:n], '\n'); i >= 0 {
			s.in, s.ended = io.MultiReader(bytes.NewReader(slices.Clone(skip[i+1:n])), s.in), false
			break
		}
	}
	return nil
}

// shift releases what is searched, except for lines that may become context.
func (s *scanner) shift() {
	from := s.lineBefore(s.from, s.before)
	if s.from-from > longest {
		from = s.from
	}
	s.lineAt(from)
	s.buf = s.buf[:copy(s.buf, s.buf[from:])]
	s.from -= from
	s.counted, s.shown = 0, max(0, s.shown-from)
}

// lineBefore goes back n lines from the start of one, but not beyond what was shown.
func (s *scanner) lineBefore(at int, n int64) int {
	for ; n > 0 && at > s.shown; n-- {
		at = s.shown + bytes.LastIndexByte(s.buf[s.shown:at-1], '\n') + 1
	}
	return at
}

// lineAt returns the number of the line that begins at at, which must not be before the last one.
func (s *scanner) lineAt(at int) int64 {
	s.number += int64(bytes.Count(s.buf[s.counted:at], []byte{'\n'}))
	s.counted = at
	return s.number
}

// lines searches buf up to end, which is the end of a line.
func (s *scanner) lines(end int) {
	text := s.buf[:end]
	s.ready(text)
	for s.from < end {
		start, stop, match := s.nextLine(text)
		if start < 0 {
			break
		}
		s.from = min(end, stop+1)
		if !s.only {
			s.take(start+match, stop)
		} else {
			for _, loc := range s.expr.re.FindAllIndex(text[start:stop], -1) {
				s.take(start+loc[0], start+loc[1])
			}
		}
		if s.satisfied() {
			return
		}
	}
	s.from = end
	s.owed(end)
}

// ready resets the needles for new text.
func (s *scanner) ready(text []byte) {
	for i := range s.seen {
		s.seen[i] = -1
	}
	if s.expr.fold && len(s.seen) > 0 {
		s.low = append(s.low[:0], text...)
		lowerASCIIBytes(s.low)
	}
}

// lowerASCIIBytes replaces the capital letters of ASCII by small ones, eight bytes at once: the sums
// set the highest bit of each byte that is above 'Z', or at least 'A'.
func lowerASCIIBytes(text []byte) {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		x := binary.LittleEndian.Uint64(text)
		low := x &^ high
		capitals := (low + (0x80-'A')*each) &^ (low + (0x7f-'Z')*each) &^ x & high
		binary.LittleEndian.PutUint64(text, x|capitals>>2)
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
}

// nextLine finds the next matching line: where it starts and stops, and where in it the match
// begins. start is -1 if there is none.
func (s *scanner) nextLine(text []byte) (start, stop, match int) {
	for at := s.from; at < len(text); at = stop + 1 {
		start = at
		hit := at
		if len(s.seen) > 0 {
			if hit = s.needle(text, at); hit == len(text) {
				break
			}
			start += bytes.LastIndexByte(text[at:hit], '\n') + 1
		}
		if stop = len(text); hit < stop {
			if n := bytes.IndexByte(text[hit:], '\n'); n >= 0 {
				stop = hit + n
			}
		}
		if s.expr.literal {
			return start, stop, hit - start
		}
		if loc := s.expr.re.FindIndex(text[start:stop]); loc != nil {
			return start, stop, loc[0]
		}
	}
	return -1, 0, 0
}

// needle returns the position of the first needle from at on, or len(text) if there is none.
func (s *scanner) needle(text []byte, at int) int {
	if s.expr.fold {
		text = s.low
	}
	first := len(text)
	for i, needle := range s.expr.needles {
		if s.seen[i] < at {
			s.seen[i] = len(text)
			if n := bytes.Index(text[at:], []byte(needle)); n >= 0 {
				s.seen[i] = at + n
			}
		}
		first = min(first, s.seen[i])
	}
	return first
}

// take records a match, which may cross lines, with its context. A match at the very end, after the
// last line, does not count, and neither does an empty part of a line.
func (s *scanner) take(start, stop int) {
	switch {
	case start == len(s.buf) && (start == 0 || s.buf[start-1] == '\n'):
	case s.mode != modeContent:
		s.found.entries = 1
		s.found.matches++
	case s.only:
		for part := range bytes.Lines(s.buf[start:stop]) {
			if text := bytes.TrimSuffix(part, []byte{'\n'}); len(text) > 0 {
				s.found.matches++
				s.keepLine(s.lineAt(start), text, 0, false)
			}
			start += len(part)
		}
	default:
		at := max(s.shown, bytes.LastIndexByte(s.buf[:start], '\n')+1)
		s.owed(at)
		for before := s.lineBefore(at, s.before); before < at; {
			before = s.show(before, 0, true)
		}
		for at < max(stop, start+1) && at < len(s.buf) {
			at = s.show(at, int64(max(0, start-at)), false)
			s.shown, s.pending = at, s.after
			s.found.matches++
		}
	}
}

// owed shows the remaining lines of context after the last match, up to limit.
func (s *scanner) owed(limit int) {
	for s.pending > 0 && s.shown < limit {
		s.shown = s.show(s.shown, 0, true)
		s.pending--
	}
}

// show records the line that begins at start and returns where the next one begins.
func (s *scanner) show(start int, match int64, context bool) (next int) {
	text := s.buf[start:]
	next = len(s.buf)
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		text, next = text[:n], start+n+1
	}
	s.keepLine(s.lineAt(start), text, match, context)
	return next
}

func (s *scanner) keepLine(number int64, text []byte, match int64, context bool) {
	s.found.entries++
	if s.keep > 0 && int64(len(s.found.lines)) >= s.keep {
		return
	}
	start := clipStart(int64(len(text)), match)
	s.found.lines = append(s.found.lines, line{number, clip(text[start:], start, int64(len(text))), context})
}

// across searches the whole text at once.
func (s *scanner) across() error {
	for !s.ended {
		if len(s.buf) > wholeFile {
			return errTooLarge
		}
		s.buf = slices.Grow(s.buf, cap(s.buf))
		if err := s.fill(); err != nil {
			return err
		}
	}
	text := s.buf[s.from:]
	s.ready(text)
	if len(s.seen) > 0 && s.needle(text, 0) == len(text) {
		return nil
	}
	most := mostSpans
	if s.mode == modeFiles {
		most = 1
	}
	spans := s.expr.re.FindAllIndex(text, most)
	for _, span := range spans {
		s.take(span[0]+s.from, span[1]+s.from)
	}
	s.owed(len(s.buf))
	if len(spans) == mostSpans {
		return errManySpans
	}
	return nil
}
