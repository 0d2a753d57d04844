// The head and the tail of an output, as text for a model, with exact counts of what is between
// them. The memory depends on the requested length, not on the size of the output.

package spool

import (
	"bytes"
	"errors"
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
		if trimmed, err := wholeEnd(s.raw, start, end); err != nil {
			return Excerpt{}, err
		} else if end = trimmed; end == start {
			return Excerpt{End: end}, nil
		}
	}
	lines := int64(-1)
	if start == 0 && end == s.sizes.total() {
		lines = s.lines
	}
	return between(s.raw, start, end, maxChars, lines)
}

// wholeEnd moves end to before an incomplete character or escape.
func wholeEnd(raw io.ReaderAt, start, end int64) (int64, error) {
	from, err := boundary(raw, max(start, end-maxEscape), start)
	if err != nil {
		return 0, err
	}
	window := make([]byte, end-from)
	if _, err := raw.ReadAt(window, from); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for len(window) > 0 {
		t, ok := next(window, true)
		if !ok {
			break
		}
		window = window[t.size:]
	}
	return end - int64(len(window)), nil
}

// between returns the excerpt of the raw bytes from start to end, which have lines line ends; -1:
// they must be counted.
func between(raw io.ReaderAt, start, end int64, maxChars int, lines int64) (Excerpt, error) {
	all, err := clean(raw, start, end, maxChars)
	if err != nil {
		return Excerpt{}, err
	}
	if all.end == end {
		return Excerpt{Head: string(all.text), Replaced: all.replaced, End: end}, nil
	}
	head, err := clean(raw, start, end, maxChars/2)
	if err != nil {
		return Excerpt{}, err
	}
	head.cutAtLine()
	tail, err := tailOf(raw, head.end, end, maxChars-maxChars/2)
	if err != nil {
		return Excerpt{}, err
	}
	x := Excerpt{
		Head: string(head.text), Tail: string(tail.text), End: end,
		Bytes: tail.start - head.end, Replaced: head.replaced + tail.replaced,
	}
	if lines < 0 {
		x.Lines, err = countLines(raw, head.end, tail.start)
		return x, err
	}
	before, err := countLines(raw, start, head.end)
	if err != nil {
		return x, err
	}
	after, err := countLines(raw, tail.start, end)
	x.Lines = lines - before - after
	return x, err
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
func clean(raw io.ReaderAt, start, end int64, chars int) (piece, error) {
	p := piece{start: start, end: start}
	buf := make([]byte, min(end-start, 64<<10))
	for p.end < end && chars > 0 {
		n, err := raw.ReadAt(buf[:min(int64(len(buf)), end-p.end)], p.end)
		if n == 0 && err != nil {
			return p, err
		}
		chars = p.add(buf[:n], p.end+int64(n) < end, chars)
	}
	return p, nil
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
func tailOf(raw io.ReaderAt, from, end int64, chars int) (piece, error) {
	for window := int64(chars)*utf8.UTFMax + maxEscape; ; window *= 4 {
		start, err := boundary(raw, max(from, end-window), from)
		if err != nil {
			return piece{}, err
		}
		found, err := clean(raw, start, end, int(end-start)+1)
		if err != nil {
			return piece{}, err
		}
		have := utf8.RuneCount(found.text)
		if have >= chars || start == from || window >= maxTail {
			return last(raw, found, have-chars)
		}
	}
}

// boundary moves start past the bytes of a character that began before it.
func boundary(raw io.ReaderAt, start, from int64) (int64, error) {
	if start == from {
		return start, nil
	}
	var buf [utf8.UTFMax]byte
	n, err := raw.ReadAt(buf[:], start)
	if n == 0 {
		return start, err
	}
	for i, c := range buf[:n] {
		if utf8.RuneStart(c) {
			return start + int64(i), nil
		}
	}
	return start, nil
}

// last drops the first drop characters of p, and the rest of the line that this cuts if it is less
// than half of the remainder.
func last(raw io.ReaderAt, p piece, drop int) (piece, error) {
	if drop <= 0 {
		return p, nil
	}
	dropped, err := clean(raw, p.start, p.end, drop)
	if err != nil {
		return piece{}, err
	}
	kept := p.text[len(dropped.text):]
	if cut := bytes.IndexByte(kept, '\n') + 1; cut > 0 && cut*2 < len(kept) && !bytes.HasSuffix(dropped.text, []byte("\n")) {
		chars := utf8.RuneCount(kept[:cut])
		if dropped, err = clean(raw, p.start, p.end, drop+chars); err != nil {
			return piece{}, err
		}
		kept = kept[cut:]
	}
	return piece{text: kept, start: dropped.end, end: p.end, replaced: p.replaced - dropped.replaced}, nil
}

// countLines returns the number of line ends between two positions.
func countLines(raw io.ReaderAt, start, end int64) (int64, error) {
	var lines lineCounter
	_, err := io.Copy(&lines, io.NewSectionReader(raw, start, end-start))
	return int64(lines), err
}

// A lineCounter counts the line ends that are written to it.
type lineCounter int64

// Write implements io.Writer.
func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, newline))
	return len(p), nil
}
