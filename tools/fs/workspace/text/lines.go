// Lines: how they end, and how they are shown with their numbers.

package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Ending is how the lines of a text end.
type Ending string

// The endings of a text. None: it has no line break.
const (
	None  Ending = "none"
	LF    Ending = "lf"
	CRLF  Ending = "crlf"
	Mixed Ending = "mixed"
)

// EndingOf returns the ending for the number of all line breaks and of those that are CRLF.
func EndingOf(breaks, crlf int) Ending {
	switch {
	case breaks == 0:
		return None
	case crlf == 0:
		return LF
	case crlf == breaks:
		return CRLF
	}
	return Mixed
}

// Endings returns the ending of the lines of s. It reads all of s.
func Endings(s string) Ending {
	return EndingOf(strings.Count(s, "\n"), strings.Count(s, "\r\n"))
}

// LikeEndings returns next with CRLF line endings, and true, if all lines of old end in CRLF and
// none of next does.
func LikeEndings(old, next string) (string, bool) {
	if Endings(old) != CRLF || Endings(next) != LF {
		return next, false
	}
	return strings.ReplaceAll(next, "\n", "\r\n"), true
}

// LineAt returns the number, from 1, of the line that holds offset at of s.
func LineAt(s string, at int) int { return strings.Count(s[:at], "\n") + 1 }

// AppendNumbered appends a line with its number as Read shows it: the number right-aligned in six
// columns, a tab, the line. The line has no line break.
func AppendNumbered[L string | []byte](out []byte, number int, line L) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(number), 10)
	for range 6 - len(d) {
		out = append(out, ' ')
	}
	out = append(out, d...)
	out = append(out, '\t')
	out = append(out, line...)
	return append(out, '\n')
}

// A Span is a run of lines, both ends included, from 1.
type Span struct{ First, Last int }

// The shape of a snippet. The numbers are our own: enough to see that a change is in the right
// place.
const (
	around     = 4   // unchanged lines shown before and after each change
	maxSnippet = 100 // lines of a whole snippet
	maxWidth   = 500 // characters of a line in it
)

// Snippet shows the lines of s around the spans, numbered, with "..." between parts that do not
// touch. It is valid UTF-8 and reports how much it leaves out if it is too long.
func Snippet(s string, spans []Span) string {
	var out []byte
	shown, last := 0, 0 // lines in out, and the number of the last one
	for i, span := range spans {
		first := max(span.First-around, last+1, 1)
		if shown > 0 && first > last+1 {
			out = append(out, "...\n"...)
		}
		s = behind(s, first-last-1)
		for last = first - 1; last < span.Last+around && s != ""; last++ {
			if shown == maxSnippet {
				return string(fmt.Appendf(out, "... (the rest is left out: %d of %d changed places are not shown, or not completely)\n", len(spans)-i, len(spans)))
			}
			line, rest, _ := strings.Cut(s, "\n")
			out = AppendNumbered(out, last+1, Shown(line))
			shown, s = shown+1, rest
		}
	}
	return string(out)
}

// behind returns what follows the first n lines of s.
func behind(s string, n int) string {
	for ; n > 0; n-- {
		_, s, _ = strings.Cut(s, "\n")
	}
	return s
}

// Shown returns a line for a message: without its line break, valid UTF-8, and not too long.
func Shown(line string) string {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	line = strings.ToValidUTF8(strings.TrimPrefix(line, "\ufeff"), "\ufffd")
	if len(line) <= maxWidth {
		return line
	}
	left := utf8.RuneCountInString(line) - maxWidth
	if left <= 0 {
		return line
	}
	return string([]rune(line)[:maxWidth]) + "... (" + strconv.Itoa(left) + " characters left out)"
}
