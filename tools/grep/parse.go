// A parser of rg's output: a path, a NUL, and depending on the mode nothing, a count, or a line
// number and a line. Lines may have any length; only a bounded part is kept.

package grep

import "bytes"

// A parser is an io.Writer. It delivers the hits of one file when those of the next begin.
type parser struct {
	*query
	deliver func(*hits)

	now    *hits
	state  parserState
	path   []byte
	number int64
	near   bool   // a line of context
	length int64  // of the line so far
	head   []byte // the line, up to heldLine
}

type parserState uint8

const (
	inPath parserState = iota
	inNumber
	inText
)

// heldLine is how many bytes of a line are searched for the match.
const heldLine = 1 << 20

// Write parses a piece of output. It never returns an error.
func (p *parser) Write(data []byte) (int, error) {
	for i := 0; i < len(data); {
		if p.state == inText {
			i += p.text(data[i:])
			continue
		}
		p.byte(data[i])
		i++
	}
	return len(data), nil
}

// byte parses one byte before the text of a line.
func (p *parser) byte(c byte) {
	switch {
	case p.state == inPath && c == 0:
		p.file()
	case p.state == inPath:
		p.path = append(p.path, c)
	case '0' <= c && c <= '9':
		p.number = p.number*10 + int64(c-'0')
	case p.mode == modeCount:
		p.now.entries, p.now.matches = 1, p.number
		p.state, p.path = inPath, p.path[:0]
	default:
		p.near, p.state = c == '-', inText
		p.length, p.head = 0, p.head[:0]
	}
}

// file handles a path, which begins with "./".
func (p *parser) file() {
	if path := string(p.path[2:]); p.now == nil || p.now.path != path {
		p.close()
		p.now = &hits{path: path}
	}
	p.number, p.state = 0, inNumber
	if p.mode == modeFiles {
		p.now.entries, p.now.matches = 1, 1
		p.state, p.path = inPath, p.path[:0]
	}
}

// text parses the rest of a line, as far as data goes, and returns its length.
func (p *parser) text(data []byte) int {
	line, n := data, len(data)
	end := bytes.IndexByte(data, '\n')
	if end >= 0 {
		line, n = data[:end], end+1
	}
	p.length += int64(len(line))
	p.head = append(p.head, line[:min(len(line), heldLine-len(p.head))]...)
	if end >= 0 {
		p.endLine()
	}
	return n
}

func (p *parser) endLine() {
	p.state, p.path = inPath, p.path[:0]
	if p.only && p.length == 0 {
		return // an empty match is not a part of a line
	}
	p.now.entries++
	if !p.near {
		p.now.matches++
	}
	if p.keep > 0 && int64(len(p.now.lines)) >= p.keep {
		return
	}
	start := clipStart(p.length, p.match())
	p.now.lines = append(p.now.lines, line{p.number, clip(p.head[start:], start, p.length), p.near})
}

// match returns where the line matches, according to our own engine; it only matters for a line
// that is shown in part.
func (p *parser) match() int64 {
	if p.length <= maxLine || p.near || p.only || p.expr == nil {
		return 0
	}
	if loc := p.expr.re.FindIndex(p.head); loc != nil {
		return int64(loc[0])
	}
	return 0
}

// close delivers the rest. A line without its ending is incomplete and does not count.
func (p *parser) close() {
	if p.now != nil && p.now.entries > 0 {
		p.deliver(p.now)
	}
	p.now = nil
}
