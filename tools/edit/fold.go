// Comparison of texts with tolerances, and the mapping from the folded text back to the original.

package edit

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// A tolerance is which differences a comparison of texts ignores.
type tolerance uint8

const (
	literal tolerance = iota // none
	endings                  // whether a line ends in CRLF or LF
	quotes                   // that, and whether quotes are typographic or ASCII
)

// asciiQuotes are the typographic quotes and primes, and their ASCII forms.
var asciiQuotes = map[rune]byte{'’': '\'', '‘': '\'', '′': '\'', '“': '"', '”': '"', '″': '"'}

// A folded text is a text without the differences that a tolerance ignores, with a mapping back to
// the original.
type folded struct {
	text string
	cuts []cut
}

// From offset at of the folded text on, the original is ahead by shift bytes.
type cut struct{ at, shift int }

// back returns the offset in the original of a character at an offset in the folded text, or of its
// end.
func (f *folded) back(at int) int {
	i := sort.Search(len(f.cuts), func(i int) bool { return f.cuts[i].at > at })
	if i == 0 {
		return at
	}
	return at + f.cuts[i-1].shift
}

// fold returns s in the form in which texts are compared under t.
func fold(s string, t tolerance) folded {
	if t == literal || !strings.Contains(s, "\r\n") && (t == endings || !strings.ContainsAny(s, "’‘′“”″")) {
		return folded{text: s}
	}
	f := folded{}
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		b, n := folding(s[i:], t)
		if n == 0 {
			out.WriteByte(s[i])
			i++
			continue
		}
		out.WriteByte(b)
		i += n
		f.cuts = append(f.cuts, cut{at: out.Len(), shift: i - out.Len()})
	}
	f.text = out.String()
	return f
}

// folding returns the byte that replaces the first n bytes of s; n is 0 if they stay.
func folding(s string, t tolerance) (b byte, n int) {
	switch {
	case s[0] == '\r' && len(s) > 1 && s[1] == '\n':
		return '\n', 2
	case s[0] < utf8.RuneSelf || t != quotes:
		return 0, 0
	}
	r, n := utf8.DecodeRuneInString(s)
	if q, ok := asciiQuotes[r]; ok {
		return q, n
	}
	return 0, 0
}
