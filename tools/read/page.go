// The requested lines, collected from pieces of text.

package read

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools/fs/workspace/text"
)

// A page collects the requested lines from pieces of UTF-8 text. A piece may begin and end
// anywhere.
type page struct {
	first, lines, chars int // the first requested line, how many lines at most, how many characters at most
	width               int // characters of one line, at most maxLine

	out      strings.Builder
	label    []byte // number of the last line in out, and the tab
	given    int    // lines in out
	used     int    // characters in out
	full     bool   // no more lines are needed
	more     bool   // there is a line after those in out
	ended    bool
	replaced int // bytes that were not UTF-8

	line    int    // lines that have ended so far
	breaks  int    // line breaks so far
	crlf    int    // of them CRLF
	before  byte   // the last byte of the previous piece
	begun   bool   // the last line has bytes but no end yet
	part    []byte // of that line, if it is needed: its beginning, at most keepLine bytes
	dropped int    // and how many characters follow
	ascii   bool   // the present piece is ASCII, so that its lines need no conversion
}

// keepLine is how many bytes of a line are kept until its end: enough for one character more than
// maxLine.
const keepLine = (maxLine + 1) * utf8.UTFMax

var (
	newline = []byte{'\n'}
	crlf    = []byte("\r\n")
)

// last returns the number of the last line in out.
func (p *page) last() int { return p.first + p.given - 1 }

// take adds a piece.
func (p *page) take(piece []byte) {
	p.ascii = !p.full && isASCII(piece)
	if p.line+1 < p.first && !p.full {
		piece = p.forward(piece)
	}
	for len(piece) > 0 && !p.full {
		if p.ascii && !p.begun {
			if piece = p.takePlain(piece); len(piece) == 0 || p.full {
				break
			}
		}
		n := bytes.IndexByte(piece, '\n')
		if n < 0 {
			p.keep(piece)
			return
		}
		p.finish(piece[:n])
		piece = piece[n+1:]
	}
	if len(piece) > 0 {
		p.more = true
		p.skip(piece)
	}
}

// takePlain adds the lines at the beginning of an ASCII piece as long as they fit as they are, and
// returns what follows them. It does what finish does, at half the cost.
func (p *page) takePlain(piece []byte) []byte {
	for !p.full {
		n := bytes.IndexByte(piece, '\n')
		if n < 0 || n > p.width || p.used+n+around > p.chars {
			break
		}
		line := piece[:n]
		if n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
			p.crlf++
		}
		p.line++
		if last := len(p.label) - 2; p.given > 0 && p.label[last] < '9' {
			p.label[last]++
		} else {
			p.countUp()
		}
		p.out.Write(p.label)
		p.out.Write(line)
		p.out.WriteByte('\n')
		p.given++
		p.used += len(line) + around
		p.full = p.given == p.lines
		p.breaks, p.before, piece = p.breaks+1, '\n', piece[n+1:]
	}
	return piece
}

// around is how many characters the number, the tab and the break of a line take.
const around = 8

// forward skips lines before the first requested one, and returns what follows them.
func (p *page) forward(piece []byte) []byte {
	missing := p.first - 1 - p.line
	if bytes.Count(piece, newline) < missing {
		p.skip(piece)
		return nil
	}
	end := 0
	for range missing {
		end += bytes.IndexByte(piece[end:], '\n') + 1
	}
	p.skip(piece[:end])
	return piece[end:]
}

// skip counts what is not shown.
func (p *page) skip(piece []byte) {
	if len(piece) == 0 {
		return
	}
	n := bytes.Count(piece, newline)
	p.line += n
	p.breaks += n
	if piece[0] == '\n' && p.before == '\r' {
		p.crlf++
	}
	if bytes.IndexByte(piece, '\r') >= 0 {
		p.crlf += bytes.Count(piece, crlf)
	}
	p.before = piece[len(piece)-1]
	p.begun = p.before != '\n'
}

// keep keeps the beginning of a requested line whose end has not come.
func (p *page) keep(piece []byte) {
	if len(piece) == 0 {
		return
	}
	p.begun, p.before = true, piece[len(piece)-1]
	room := min(keepLine-len(p.part), len(piece))
	p.part = append(p.part, piece[:room]...)
	p.dropped += characters(piece[room:])
}

// isASCII looks at eight bytes at a time.
func isASCII(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.NativeEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// characters returns how many characters begin in b.
func characters(b []byte) int {
	n := 0
	for _, c := range b {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// finish ends a requested line whose last bytes are tail.
func (p *page) finish(tail []byte) {
	line := tail
	if p.begun {
		p.keep(tail)
		line = p.part
	} else if len(tail) > 0 {
		p.before = tail[len(tail)-1]
	}
	p.breaks++
	if p.before == '\r' {
		p.crlf++
		if p.dropped > 0 {
			p.dropped--
		} else {
			line = line[:len(line)-1]
		}
	}
	p.before = '\n'
	p.give(line)
}

// end marks the end of the text.
func (p *page) end() {
	p.ended = true
	switch {
	case !p.begun:
	case p.full || p.line+1 < p.first:
		p.line++
	default:
		p.give(p.part)
	}
}

// give adds a requested line, without its break, to the result, if there is room.
func (p *page) give(line []byte) {
	p.line++
	if p.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	plain := p.ascii && !p.begun
	count := len(line)
	if !plain {
		count = utf8.RuneCount(line)
	}
	if left := count + p.dropped - p.width; left > 0 {
		line, count = p.cut(line, left)
	}
	if !plain && !utf8.Valid(line) {
		line = p.repair(line)
	}
	p.part, p.dropped, p.begun = p.part[:0], 0, false
	count += around
	if p.given > 0 && p.used+count > p.chars {
		p.full, p.more = true, true
		return
	}
	p.countUp()
	p.out.Write(p.label)
	p.out.Write(line)
	p.out.WriteByte('\n')
	p.given++
	p.used += count
	p.full = p.given == p.lines
}

// countUp sets label to that of the line. Since lines follow each other, mostly only its last digit
// changes.
func (p *page) countUp() {
	if p.given > 0 {
		for i := len(p.label) - 2; i >= 0; i-- {
			switch p.label[i] {
			case '9':
				p.label[i] = '0'
				continue
			case ' ':
				p.label[i] = '1'
			default:
				p.label[i]++
			}
			return
		}
	}
	p.label = bytes.TrimSuffix(text.AppendNumbered(p.label[:0], p.line, ""), newline)
}

// cut shortens a line to width characters and a mark.
func (p *page) cut(line []byte, left int) ([]byte, int) {
	end := 0
	for range p.width {
		_, n := utf8.DecodeRune(line[end:])
		end += n
	}
	mark := "... [" + strconv.Itoa(left) + " characters left out]"
	return append(line[:end:end], mark...), p.width + len(mark)
}

// repair replaces invalid UTF-8.
func (p *page) repair(line []byte) []byte {
	var out []byte
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		if r == utf8.RuneError && n == 1 {
			p.replaced++
		}
		out = utf8.AppendRune(out, r)
		line = line[n:]
	}
	return out
}
