// Finding what to replace, and the exact changes there. Pure.

package edit

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// A Replacement is one change of a text.
type Replacement struct {
	OldString  string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file; empty to create a file"`
	NewString  string `json:"new_string" jsonschema:"the text to put in its place; must differ from old_string"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence instead of exactly one" default:"false"`
}

// A match is where old_string was found, in offsets of a text's String.
type match struct{ from, to int }

// A found is every match of one replacement, and the tolerance that was needed.
type found struct {
	matches []match
	past    tolerance
}

// A piece is the replacement of a range of a text.
type piece struct {
	from, to int
	text     string
}

// find searches for old_string, which is not empty. Line endings never matter, unless old_string
// contains CRLF and occurs exactly. Quotes matter if there is a match in which they are equal.
func find(s string, r Replacement) (found, error) {
	f := found{}
	order := []tolerance{endings, quotes}
	if strings.Contains(r.OldString, "\r") {
		order = []tolerance{literal, endings, quotes}
	}
	for _, f.past = range order {
		f.matches = occurrences(s, r.OldString, f.past)
		if len(f.matches) > 0 {
			break
		}
	}
	switch n := len(f.matches); {
	case n == 0:
		return f, noMatch(s, r.OldString)
	case n > 1 && !r.ReplaceAll:
		return f, multiple(s, f.matches)
	case r.ReplaceAll:
		f.matches = apart(f.matches)
	}
	return f, nil
}

// occurrences returns every position of old in s, including overlapping ones, in ascending order.
func occurrences(s, old string, t tolerance) []match {
	in, want := fold(s, t), fold(old, t).text
	var all []match
	for at := 0; ; {
		i := strings.Index(in.text[at:], want)
		if i < 0 {
			return all
		}
		at += i
		all = append(all, match{in.back(at), in.back(at + len(want))})
		at++
	}
}

// apart removes matches that overlap the one before.
func apart(all []match) []match {
	kept := all[:1]
	for _, m := range all[1:] {
		if m.from >= kept[len(kept)-1].to {
			kept = append(kept, m)
		}
	}
	return kept
}

// Multiple are the Details of multiple_matches.
type Multiple struct {
	Count int   `json:"count"`
	Lines []int `json:"lines"` // where each begins, the first hundred
}

func multiple(s string, all []match) error {
	details := Multiple{Count: len(all)}
	line, at := 1, 0
	for _, m := range all[:min(len(all), 100)] {
		line += strings.Count(s[at:m.from], "\n")
		at = m.from
		details.Lines = append(details.Lines, line)
	}
	return fault.Invalidf("multiple_matches", "old_string occurs %d times, beginning on lines %s. Add enough of the text around the place you mean to make it unique, or set replace_all.",
		len(all), list(details.Lines, len(all))).With(details)
}

// list lists numbers; of more than ten it lists the first ten.
func list(numbers []int, total int) string {
	shown := numbers[:min(len(numbers), 10)]
	s := strings.Trim(strings.ReplaceAll(fmt.Sprint(shown), " ", ", "), "[]")
	if total > len(shown) {
		s += ", ..."
	}
	return s
}

// pieces returns the changes of doc for one match. They cover only the differing parts if something
// of the file must be kept: its line endings, its quotes, and bytes that a conversion to text would
// not preserve. whole is how the lines of doc end.
func (f *found) pieces(doc *text.Text, whole text.Ending, m match, r Replacement) []piece {
	past := max(f.past, endings)
	switch {
	case fold(r.OldString, endings).text == fold(r.NewString, endings).text:
		// The ignored differences are the whole change.
		return []piece{{m.from, m.to, r.NewString}}
	case fold(r.OldString, past).text == fold(r.NewString, past).text, whole != text.Mixed && past != quotes && doc.Encoding.Decoder() == nil:
		return []piece{{m.from, m.to, ended(r.NewString, endingAt(doc.String, m.from))}}
	}
	return differing(doc.String, m, r.NewString, past)
}

// differing returns the parts of a match that differ from next under t.
func differing(s string, m match, next string, t tolerance) []piece {
	before, after := fold(s[m.from:m.to], t), fold(next, t)
	var out []piece
	shift := 0 // how far the folded new text is ahead of the folded old one
	for _, e := range udiff.Strings(before.text, after.text) {
		from := e.Start + shift
		inserted := next[after.back(from):after.back(from+len(e.New))]
		shift += len(e.New) - (e.End - e.Start)
		start, end := m.from+before.back(e.Start), m.from+before.back(e.End)
		out = append(out, piece{start, end, ended(inserted, endingAt(s, start))})
	}
	return out
}

// endingAt returns the ending of the line at offset at; for a last line without a break, that of
// the line before; empty if there is no line break at all.
func endingAt(s string, at int) string {
	n := strings.IndexByte(s[at:], '\n')
	if n >= 0 {
		n += at
	} else if n = strings.LastIndexByte(s[:at], '\n'); n < 0 {
		return ""
	}
	if n > 0 && s[n-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// ended returns s with its line breaks replaced by ending; unchanged if ending is empty.
func ended(s, ending string) string {
	if ending == "" {
		return s
	}
	s = fold(s, endings).text
	if ending == "\r\n" {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// splice returns doc's bytes with the pieces replaced, which are in ascending order and do not
// overlap.
func splice(raw []byte, doc *text.Text, pieces []piece) ([]byte, error) {
	grown := 0
	for _, p := range pieces {
		grown += len(p.text)
	}
	out := make([]byte, 0, len(raw)+grown)
	at := 0
	for _, p := range pieces {
		coded, err := doc.Encoding.Encode(p.text)
		if err != nil {
			return nil, err
		}
		out = append(out, raw[at:doc.Offset(p.from)]...)
		out = append(out, coded...)
		at = doc.Offset(p.to)
	}
	return append(out, raw[at:]...), nil
}
