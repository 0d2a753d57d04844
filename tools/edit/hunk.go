// Finding the places of a patch's hunks in a file, and the exact changes there. Pure.

package edit

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// A fuzz is which differences are ignored between a line of a patch and one of a file.
type fuzz struct {
	note string // about what was ignored, for the model; empty: nothing
	same func(string) string
}

// fuzzes are tried one after the other, each in the whole rest of the file.
var fuzzes = []fuzz{
	{"", func(line string) string { return line }},
	{"blanks at the ends of lines were ignored", func(line string) string { return strings.TrimRightFunc(line, unicode.IsSpace) }},
	{"blanks at the beginnings and ends of lines were ignored", strings.TrimSpace},
	{"typographic dashes, quotes and blanks were treated as the plain ones", plainLine},
}

// plainCharacters are typographic characters and their ASCII forms. Any other dash is one too.
var plainCharacters = strings.NewReplacer(
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "′", "'", "“", `"`, "”", `"`, "„", `"`, "‟", `"`, "″", `"`,
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2212", "-",
	"\u00a0", " ", "\u2002", " ", "\u2003", " ", "\u2004", " ", "\u2005", " ", "\u2006", " ", "\u2007", " ", "\u2008", " ", "\u2009", " ",
	"\u200a", " ", "\u202f", " ", "\u205f", " ", "\u3000", " ",
)

func plainLine(line string) string { return strings.TrimSpace(plainCharacters.Replace(line)) }

// A numberedText is a text as lines. A line break at the very end begins a further line, which is empty.
type numberedText struct {
	text   string
	lines  []string // without breaks
	starts []int    // offsets of the lines, and that of the end
}

func newNumberedText(s string) *numberedText {
	n := &numberedText{text: s}
	at := 0
	for i, line := range strings.Split(s, "\n") {
		n.starts = append(n.starts, at)
		at += len(line) + 1
		if i == 0 && strings.HasPrefix(line, "\ufeff") {
			n.starts[0] = len("\ufeff")
			line = line[n.starts[0]:]
		}
		n.lines = append(n.lines, strings.TrimSuffix(line, "\r"))
	}
	n.starts = append(n.starts, len(s))
	return n
}

// unbroken reports whether the last line has no break.
func (n *numberedText) unbroken() bool { return n.lines[len(n.lines)-1] != "" }

// find returns the first of the candidates where the lines are, under the least fuzz. A negative index: nowhere.
func (n *numberedText) find(wanted []string, candidates []int) (at int, past fuzz) {
	for _, f := range fuzzes {
		folded := make([]string, len(wanted))
		for i, w := range wanted {
			folded[i] = f.same(w)
		}
		for _, at := range candidates {
			if n.holds(folded, at, f) {
				return at, f
			}
		}
	}
	return -1, fuzz{}
}

func (n *numberedText) holds(folded []string, at int, f fuzz) bool {
	if at < 0 || at+len(folded) > len(n.lines) {
		return false
	}
	for i, w := range folded {
		if f.same(n.lines[at+i]) != w {
			return false
		}
	}
	return true
}

// from returns the indexes of lines from first on.
func (n *numberedText) from(first int) []int {
	all := make([]int, 0, len(n.lines)-first)
	for i := first; i < len(n.lines); i++ {
		all = append(all, i)
	}
	return all
}

// A patching is an update of one file in progress.
type patching struct {
	*numberedText
	s      *section
	cursor int // index of the line behind the previous hunk
	pieces []piece
	notes  []string // about ignored differences
}

// apply finds the hunks of the section in s, each behind the one before.
func (s *section) apply(doc string) (*patching, error) {
	p := &patching{numberedText: newNumberedText(doc), s: s}
	for i := range s.hunks {
		if err := p.hunk(i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *patching) hunk(i int) error {
	h := &p.s.hunks[i]
	anchored, err := p.seek(i)
	if err != nil {
		return err
	}
	old := h.old()
	at, past := p.locate(h, old, anchored)
	if trailing := len(old) - 1; at < 0 && trailing > 0 && old[trailing] == "" && h.lines[len(h.lines)-1] == " " {
		// A blank line behind the hunk, which belongs to the patch's layout.
		cut := *h
		cut.lines = h.lines[:len(h.lines)-1]
		if at, past = p.locate(&cut, old[:trailing], anchored); at >= 0 {
			h, old = &cut, old[:trailing]
		}
	}
	switch {
	case at < 0 && len(old) == 0:
		return p.fault(i, nil, "It only adds lines and does not show where. Add lines of the file around them, or a line behind @@ that comes before them.")
	case at < 0:
		return p.unmatched(i, old)
	}
	p.note(past.note)
	p.replace(h, at)
	p.cursor = at + len(old)
	return nil
}

func (p *patching) note(text string) {
	if text != "" && !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// seek moves the cursor behind the anchors of a hunk. One that occurs only before the cursor is taken to enclose both
// hunks. A single anchor that occurs nowhere is ignored, as the context decides. It reports whether there was one.
func (p *patching) seek(i int) (anchored bool, err error) {
	h := &p.s.hunks[i]
	for k, anchor := range h.anchors {
		at, past := p.find([]string{anchor}, p.from(p.cursor))
		before := -1
		if k == 0 {
			before, _ = p.find([]string{anchor}, p.from(0)[:p.cursor])
		}
		switch {
		case before >= 0:
		case at >= 0:
			p.cursor = at + 1
			p.note(past.note)
		case h.marks > 1 || len(h.old()) == 0:
			return false, p.fault(i, []string{anchor}, "The line behind its @@ does not occur in the file:")
		default:
			p.note("a line behind @@ that the file does not have was ignored")
			continue
		}
		anchored = true
	}
	return anchored, nil
}

// locate returns the index of the line where a hunk begins; negative: nowhere.
func (p *patching) locate(h *hunk, old []string, anchored bool) (int, fuzz) {
	end := len(p.lines)
	switch {
	case len(old) > 0 && h.atEnd:
		last := slices.DeleteFunc([]int{end - len(old), end - 1 - len(old)}, func(at int) bool { return at < p.cursor || at == end-1-len(old) && p.unbroken() })
		if at, past := p.find(old, last); at >= 0 {
			return at, past
		}
		at, past := p.find(old, p.from(p.cursor))
		if at >= 0 {
			p.note("a hunk for the end of the file was found before it")
		}
		return at, past
	case len(old) > 0:
		return p.find(old, p.from(p.cursor))
	case h.atEnd && p.unbroken():
		return end, fuzz{}
	case h.atEnd:
		return end - 1, fuzz{}
	case anchored || p.text == "":
		return p.cursor, fuzz{}
	}
	return -1, fuzz{}
}

// replace notes the changes of a hunk that begins at a line.
func (p *patching) replace(h *hunk, at int) {
	for i := 0; i < len(h.lines); {
		if h.lines[i][0] == ' ' {
			i, at = i+1, at+1
			continue
		}
		removed := 0
		var added []string
		for ; i < len(h.lines) && h.lines[i][0] != ' '; i++ {
			if h.lines[i][0] == '-' {
				removed++
			} else {
				added = append(added, h.lines[i][1:])
			}
		}
		p.pieces = append(p.pieces, p.piece(at, removed, added))
		at += removed
	}
}

// piece returns the replacement of so many lines from at on. New lines end as those around them.
func (p *patching) piece(at, removed int, added []string) piece {
	from, to := p.starts[at], p.starts[at+removed]
	ending := endingAt(p.text, from)
	if ending == "" {
		ending = "\n"
	}
	var b strings.Builder
	if at == len(p.lines) && p.text != "" {
		b.WriteString(ending) // behind a last line without a break
	}
	for i, line := range added {
		b.WriteString(line)
		if i < len(added)-1 || at+removed < len(p.lines) || p.text == "" {
			b.WriteString(ending)
		}
	}
	return piece{from, to, b.String()}
}

// Mismatch are the Details of no_match for a patch.
type Mismatch struct {
	File string `json:"file"` // as the patch names it
	Hunk int    `json:"hunk"` // from 1
	Line int    `json:"line"` // of the patch, where the hunk begins
	Nearest
}

// fault returns the fault of a hunk, with the lines of the file that are nearest to wanted.
func (p *patching) fault(i int, wanted []string, why string) error {
	details := Mismatch{File: p.s.path, Hunk: i + 1, Line: p.s.hunks[i].line}
	var b strings.Builder
	fmt.Fprintf(&b, "Hunk %d of %s, on line %d of the patch, cannot be applied. Nothing was changed. %s", details.Hunk, details.File, details.Line, why)
	if wanted == nil {
		return fault.Invalidf("no_match", "%s", b.String()).At("/patch").With(details)
	}
	b.WriteString("\n" + strings.Join(first(wanted, maxNearest), "\n") + "\n")
	details.Nearest = nearest(p.lines, wanted, "the patch")
	b.WriteString(details.Nearest.shown(p.lines))
	b.WriteString("Correct the hunk and send the whole patch again.")
	return fault.Invalidf("no_match", "%s", b.String()).At("/patch").With(details)
}

// unmatched returns the fault for lines that do not occur behind the cursor.
func (p *patching) unmatched(i int, old []string) error {
	why := "The file does not have these lines:"
	if at, _ := p.find(old, p.from(0)[:p.cursor]); at >= 0 {
		why = fmt.Sprintf("Hunks come in the order of the file, and these lines are on line %d, before the end of the hunk before or the line behind @@:", at+1)
	} else if p.cursor > 0 {
		why = fmt.Sprintf("The file does not have these lines behind line %d, where the hunk before it or the line behind its @@ ends:", p.cursor)
	}
	return p.fault(i, old, why)
}

func first(lines []string, n int) []string {
	var shown []string
	for _, l := range lines[:min(n, len(lines))] {
		shown = append(shown, text.Shown(l))
	}
	if len(lines) > n {
		shown = append(shown, fmt.Sprintf("... (%d more)", len(lines)-n))
	}
	return shown
}
