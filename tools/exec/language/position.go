//go:build !no_lsp

// Positions in a text: lines and characters as an editor shows them, and as the protocol counts
// them.

package language

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
)

// A unit is what a server counts the characters of a line in.
type unit string

const (
	utf8Units  unit = "utf-8"
	utf16Units unit = "utf-16" // the default of the protocol
	utf32Units unit = "utf-32"
)

// of returns how many units a character has. Invalid UTF-8 is sent as U+FFFD, one for each byte.
func (u unit) of(r rune) int {
	switch {
	case u == utf8Units:
		return utf8.RuneLen(r)
	case u == utf16Units && r > 0xffff:
		return 2
	}
	return 1
}

// A content is a text split into lines: at \n, \r\n and \r, as the protocol defines.
type content []string

func newContent(text []byte) content {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return strings.Split(string(text), "\n")
}

// line returns a line by its number from 0; empty: there is none.
func (c content) line(n int) string {
	if n < 0 || n >= len(c) {
		return ""
	}
	return c[n]
}

// outward converts an editor's position to the protocol's. Its error is a fault that names the
// field.
func (c content) outward(at Position, u unit) (wirePosition, error) {
	lines := len(c)
	if lines > 1 && c[lines-1] == "" {
		lines-- // an editor shows no line after the last line break
	}
	if at.Line < 1 || at.Line > len(c) {
		return wirePosition{}, fault.Invalidf("invalid_input", "line is %d; the file has %d.", at.Line, lines).At("/line")
	}
	line := c[at.Line-1]
	long := utf8.RuneCountInString(line)
	if at.Character < 1 || at.Character > long+1 {
		return wirePosition{}, fault.Invalidf("invalid_input", "character is %d; line %d has %d: %.200q", at.Character, at.Line, long, line).At("/character")
	}
	p := wirePosition{Line: at.Line - 1}
	left := at.Character - 1
	for _, r := range line {
		if left == 0 {
			break
		}
		left--
		p.Character += u.of(r)
	}
	return p, nil
}

// inward converts a protocol's position to an editor's. One past the end of its line means that
// end, as the protocol defines.
func (c content) inward(p wirePosition, u unit) Position {
	at := Position{Line: max(p.Line, 0) + 1, Character: 1}
	units := p.Character
	for _, r := range c.line(p.Line) {
		if units -= u.of(r); units < 0 {
			break
		}
		at.Character++
	}
	return at
}

func (c content) rangeOf(r wireRange, u unit) Range {
	return Range{Start: c.inward(r.Start, u), End: c.inward(r.End, u)}
}

// plain returns a range in the server's own units.
func (r wireRange) plain() Range {
	return Range{
		Start: Position{max(r.Start.Line, 0) + 1, max(r.Start.Character, 0) + 1},
		End:   Position{max(r.End.Line, 0) + 1, max(r.End.Character, 0) + 1},
	}
}

// offset returns the byte offset of a protocol's position in text. One past the end of a line means
// its end.
func offset(text string, p wirePosition, u unit) int {
	from := 0
	for n := 0; n < p.Line; n++ {
		_, next := lineEnd(text, from)
		if next < 0 {
			return len(text)
		}
		from = next
	}
	end, _ := lineEnd(text, from)
	units := p.Character
	for i, r := range text[from:end] {
		if units -= u.of(r); units < 0 {
			return from + i
		}
	}
	return end
}

// lineEnd returns where the line that begins at from ends, and where the next begins; -1: there is
// none.
func lineEnd(text string, from int) (end, next int) {
	i := strings.IndexAny(text[from:], "\r\n")
	if i < 0 {
		return len(text), -1
	}
	end = from + i
	if strings.HasPrefix(text[end:], "\r\n") {
		return end, end + 2
	}
	return end, end + 1
}
