// The head and the tail of an output, as text for a model, with exact counts of what is between
// them. The memory depends on the requested length, not on the size of the output.

package spool

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// An Excerpt is part of an output as text: valid UTF-8 without terminal escapes, both channels in
// the observed order. If Bytes is 0, nothing is left out, and Head is all of it.
type Excerpt struct {
	Head, Tail string
	// Bytes and Lines are what is left out between Head and Tail: bytes of the raw file, and line
	// ends among them.
	Bytes, Lines int64
	// Replaced is how many bytes in Head and Tail were not UTF-8 and are shown as U+FFFD.
	Replaced int64
	// End is the position after the last byte that the excerpt covers.
	End int64
}

// Text returns the excerpt, with a line between head and tail about what is left out and the path
// of the file with all of it.
func (x Excerpt) Text(path string) string {
	if x.Bytes == 0 {
		return x.Head
	}
	gap := fmt.Sprintf("[%d lines (%d bytes) are left out here; the whole output is in %s]\n", x.Lines, x.Bytes, path)
	return EndLine(x.Head) + gap + x.Tail
}

// EndLine returns text with a line break at its end, unless it is empty.
func EndLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// Excerpt returns at most maxChars characters of the whole output, half of them from the beginning
// and half from the end, cut at line ends where possible.
func (o *Output) Excerpt(maxChars int) (Excerpt, error) { return o.Since(0, maxChars) }

// Since returns an excerpt of what has been written since the position start. While the output
// grows, an incomplete character or escape at its end is left for the next time.
func (o *Output) Since(start int64, maxChars int) (Excerpt, error) {
	s := o.snapshot()
	defer s.release()
	end := s.sizes.total()
	if s.fault != nil || s.raw == nil || start >= end {
		return Excerpt{End: min(start, end)}, s.fault
	}
	if !s.ended {
		end = s.wholeEnd(start, end)
	}
	return s.between(start, end, maxChars), s.fault
}

// wholeEnd moves end to before an incomplete character or escape.
func (s *snapshot) wholeEnd(start, end int64) int64 {
	from := s.boundary(max(start, end-maxEscape), start)
	window := make([]byte, end-from)
	window = window[:s.read(window, from)]
	for len(window) > 0 {
		t, ok := next(window, true)
		if !ok {
			break
		}
		window = window[t.size:]
	}
	return end - int64(len(window))
}

// between returns the excerpt of the raw bytes from start to end.
func (s *snapshot) between(start, end int64, maxChars int) Excerpt {
	all := s.clean(start, end, maxChars)
	if all.end == end {
		return Excerpt{Head: string(all.text), Replaced: all.replaced, End: end}
	}
	head := s.clean(start, end, maxChars/2)
	head.cutAtLine()
	tail := s.tailOf(head.end, end, maxChars-maxChars/2)
	x := Excerpt{
		Head: string(head.text), Tail: string(tail.text), End: end,
		Bytes: tail.start - head.end, Replaced: head.replaced + tail.replaced,
	}
	if s.lines >= 0 && start == 0 && end == s.sizes.total() { // most of them need not be read again
		x.Lines = s.lines - s.countLines(start, head.end) - s.countLines(tail.start, end)
	} else {
		x.Lines = s.countLines(head.end, tail.start)
	}
	return x
}

// A piece is cleaned text and the raw range that it stands for.
type piece struct {
	text       []byte
	start, end int64
	replaced   int64
	lineText   int   // length of text up to the last line end
	lineEnd    int64 // the raw position after it
	lineBad    int64 // replaced up to it
}

// clean reads characters of the raw range from start to end until it has chars of them.
func (s *snapshot) clean(start, end int64, chars int) piece {
	p := piece{start: start, end: start}
	buf := make([]byte, min(end-start, 64<<10))
	for p.end < end && chars > 0 {
		n := s.read(buf[:min(int64(len(buf)), end-p.end)], p.end)
		if n == 0 {
			break
		}
		chars = p.add(buf[:n], p.end+int64(n) < end, chars)
	}
	return p
}

// add appends characters of window until chars are read, and returns how many are still missing. It
// also skips escapes that follow the last character, so that the whole text is covered when all its
// characters are.
func (p *piece) add(window []byte, more bool, chars int) int {
	for len(window) > 0 {
		t, ok := next(window, more)
		if !ok || (chars == 0 && !t.escape) {
			break
		}
		window = window[t.size:]
		p.end += int64(t.size)
		if t.escape {
			continue
		}
		if t.bad {
			p.replaced++
		}
		p.text = utf8.AppendRune(p.text, t.r)
		if chars--; t.r == '\n' {
			p.lineText, p.lineEnd, p.lineBad = len(p.text), p.end, p.replaced
		}
	}
	return chars
}

// cutAtLine drops what follows the last line end, unless that is more than half of the text.
func (p *piece) cutAtLine() {
	if p.lineText*2 >= len(p.text) && p.lineText > 0 {
		p.text, p.end, p.replaced = p.text[:p.lineText], p.lineEnd, p.lineBad
	}
}

// maxTail limits how far back a tail searches for its characters if nearly all bytes are escapes.
const maxTail = 1 << 20

// tailOf returns the last chars characters before end, but none before the raw position from.
func (s *snapshot) tailOf(from, end int64, chars int) piece {
	for window := int64(chars)*utf8.UTFMax + maxEscape; ; window *= 4 {
		start := s.boundary(max(from, end-window), from)
		found := s.clean(start, end, int(end-start)+1)
		have := utf8.RuneCount(found.text)
		if have >= chars || start == from || window >= maxTail {
			return s.dropFirst(found, have-chars)
		}
	}
}

// boundary moves start past the bytes of a character that began before it.
func (s *snapshot) boundary(start, from int64) int64 {
	if start == from {
		return start
	}
	var buf [utf8.UTFMax]byte
	for i, c := range buf[:s.read(buf[:], start)] {
		if utf8.RuneStart(c) {
			return start + int64(i)
		}
	}
	return start
}

// dropFirst drops the first characters of p, and the rest of the line that this cuts if it is less
// than half of the remainder.
func (s *snapshot) dropFirst(p piece, drop int) piece {
	if drop <= 0 {
		return p
	}
	dropped := s.clean(p.start, p.end, drop)
	kept := p.text[len(dropped.text):]
	if cut := bytes.IndexByte(kept, '\n') + 1; cut > 0 && cut*2 < len(kept) && !bytes.HasSuffix(dropped.text, newline) {
		dropped = s.clean(p.start, p.end, drop+utf8.RuneCount(kept[:cut]))
		kept = kept[cut:]
	}
	return piece{text: kept, start: dropped.end, end: p.end, replaced: p.replaced - dropped.replaced}
}

// countLines returns the number of line ends between two positions.
func (s *snapshot) countLines(start, end int64) int64 {
	var lines lineCounter
	if _, err := io.Copy(&lines, io.NewSectionReader(s.raw, start, end-start)); err != nil {
		s.fault = err
	}
	return int64(lines)
}

// A lineCounter counts the line ends that are written to it.
type lineCounter int64

// Write implements io.Writer.
func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, newline))
	return len(p), nil
}
