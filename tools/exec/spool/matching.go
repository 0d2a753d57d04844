// The lines of an output that match.

package spool

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// maxLine is the longest line that is matched as a whole, in bytes; a longer one is matched in
// parts.
const maxLine = 64 << 10

// Matching is Since for the lines for which match, which gets them without their line ends, returns
// true. Matching lines that do not fit are counted at the end, with their bytes. An unfinished line
// is left for the next time.
func (o *Output) Matching(start int64, maxChars int, match func(line []byte) bool) (Excerpt, error) {
	s := o.snapshot()
	defer s.release()
	end := s.sizes.total()
	if s.fault != nil || s.raw == nil || start >= end {
		return Excerpt{End: min(start, end)}, s.fault
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(s.raw, start, end-start), maxLine)
	var head strings.Builder
	x := Excerpt{End: start}
	for {
		raw, err := lines.ReadSlice('\n')
		if last := errors.Is(err, io.EOF); last && (len(raw) == 0 || !s.ended) {
			x.Head = head.String()
			return x, nil
		} else if err != nil && !last && !errors.Is(err, bufio.ErrBufferFull) {
			return x, err
		}
		x.End += int64(len(raw))
		line := piece{}
		line.add(raw, false, math.MaxInt)
		if !match(bytes.TrimSuffix(line.text, []byte("\n"))) {
			continue
		}
		if chars := utf8.RuneCount(line.text); x.Bytes == 0 && chars <= maxChars {
			maxChars -= chars
			x.Replaced += line.replaced
			head.Write(line.text)
			continue
		}
		x.Bytes += int64(len(raw))
		x.Lines++
	}
}
