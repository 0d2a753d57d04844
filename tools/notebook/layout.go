// Writing JSON into a notebook in the style of the JSON around it: one line or many, indentation,
// line endings, escapes.

package notebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toold/toold/tools/media/ipynb"
)

// A layout is the style of a file.
type layout struct {
	book *ipynb.Notebook
	end  string // of a line; empty: everything is on one line
	unit string // one level of indentation
	colon,
	comma string // between a key and its value, and between elements on one line
	ascii bool // what is not ASCII is escaped
}

// escaped finds escapes of characters that need none.
var escaped = regexp.MustCompile(`\\u(?:[1-9a-fA-F]|0[1-9a-fA-F]|00[89a-fA-F])`)

func layoutOf(n *ipynb.Notebook) layout {
	l := layout{book: n, colon: ": ", comma: ","}
	first := n.Top[0] // there are cells, at least
	if gap := blankBefore(n.Raw, first.At); strings.Contains(gap, "\n") {
		l.end = "\n"
		if strings.Contains(gap, "\r\n") {
			l.end = "\r\n"
		}
		l.unit = gap[strings.LastIndexByte(gap, '\n')+1:]
	} else if len(n.Top) > 1 {
		l.comma += blankBefore(n.Raw, n.Top[1].At)
	}
	between := n.Raw[first.At:first.Value.From]
	l.colon = string(between[bytes.LastIndexByte(between, '"')+1:])
	l.ascii = isASCII(n.Raw[first.At:]) && escaped.Match(n.Raw)
	return l
}

func isASCII(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf })
}

// blankBefore returns the white space that stands before at.
func blankBefore(raw []byte, at int) string {
	from := at
	for from > 0 && strings.IndexByte(" \t\r\n", raw[from-1]) >= 0 {
		from--
	}
	return string(raw[from:at])
}

// indent returns the indentation at at, and whether at begins its line.
func (l layout) indent(at int) (string, bool) {
	gap := blankBefore(l.book.Raw, at)
	line := strings.LastIndexByte(gap, '\n')
	return gap[line+1:], line >= 0
}

// A form is how a list is written.
type form uint8

const (
	lined form = iota // with a line for each element
	flat              // on one line
	whole             // not as a list, but as one string
)

// bracketed writes items, which are JSON or members, between two brackets: each on its line,
// indented below indent, or all on one.
func (l layout) bracketed(pair, items []string, indent string, f form) string {
	switch {
	case len(items) == 0:
		return pair[0] + pair[1]
	case f != lined || l.end == "":
		return pair[0] + strings.Join(items, l.comma) + pair[1]
	}
	in := l.end + indent + l.unit
	return pair[0] + in + strings.Join(items, ","+in) + l.end + indent + pair[1]
}

var list, object = []string{"[", "]"}, []string{"{", "}"}

// quoted writes a string as JSON.
func (l layout) quoted(s string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("BUG: a string is not JSON: " + err.Error())
	}
	coded := strings.TrimSuffix(out.String(), "\n")
	if !l.ascii {
		return coded
	}
	var b strings.Builder
	for _, r := range coded {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// source writes the source of a cell: as one string, or as a list of its lines.
func (l layout) source(s, indent string, f form) string {
	if f == whole {
		return l.quoted(s)
	}
	var items []string
	for line := range strings.Lines(s) {
		items = append(items, l.quoted(line))
	}
	return l.bracketed(list, items, indent, f)
}

// A sequence is the members of an object, or the elements of a list, that is being changed.
type sequence struct {
	raw   []byte // the notebook
	items []item
	end   []byte // what follows the last item
}

// An item is one of them, with what stands between it and the one before.
type item struct{ before, text []byte }

// sequence returns the object or list at whole, which has count parts.
func (l layout) sequence(whole ipynb.Span, count int, part func(i int) ipynb.Span) sequence {
	s := sequence{raw: l.book.Raw}
	from := whole.From
	for i := range count {
		at := part(i)
		s.items = append(s.items, item{s.raw[from:at.From], s.raw[at.From:at.To]})
		from = at.To
	}
	s.end = s.raw[from:whole.To]
	return s
}

// members returns the members of a cell.
func (l layout) members(c ipynb.Cell) sequence {
	return l.sequence(c.Span, len(c.Members), func(i int) ipynb.Span {
		return ipynb.Span{From: c.Members[i].At, To: c.Members[i].Value.To}
	})
}

// cells returns the list of cells.
func (l layout) cells() sequence {
	return l.sequence(l.book.List, len(l.book.Cells), func(i int) ipynb.Span { return l.book.Cells[i].Span })
}

// drop removes an item, which must not be the only one.
func (s *sequence) drop(i int) {
	if i+1 < len(s.items) {
		s.items[i+1].before = s.items[i].before
	}
	s.items = slices.Delete(s.items, i, i+1)
}

// insert adds an item to others, from which gap separates it.
func (s *sequence) insert(i int, text, gap string) {
	added := item{[]byte(gap), []byte(text)}
	if i == 0 {
		added.before, s.items[0].before = s.items[0].before, added.before
	}
	s.items = slices.Insert(s.items, i, added)
}

// replacing returns the notebook's bytes with the sequence in place of those at whole.
func (s *sequence) replacing(whole ipynb.Span) []byte {
	out := slices.Clip(s.raw[:whole.From])
	for _, i := range s.items {
		out = append(append(out, i.before...), i.text...)
	}
	return append(append(out, s.end...), s.raw[whole.To:]...)
}

// sourceForm returns how the source of a cell is written, and the indentation of its member.
func (l layout) sourceForm(c ipynb.Cell) (form, string) {
	i := ipynb.Find(c.Members, "source")
	indent, own := l.indent(c.Members[max(i, 0)].At)
	if i < 0 {
		return lined, indent
	}
	value := l.book.Raw[c.Members[i].Value.From:c.Members[i].Value.To]
	if value[0] == '"' {
		return whole, indent
	}
	if inside := bytes.TrimLeft(value[1:], " \t\r"); inside[0] == '\n' || inside[0] == ']' && own {
		return lined, indent
	}
	return flat, indent
}

func dropCell(n *ipynb.Notebook, at int) []byte {
	s := layoutOf(n).cells()
	if len(s.items) == 1 {
		s.items, s.end = nil, []byte("[]")
	} else {
		s.drop(at)
	}
	return s.replacing(n.List)
}

// addCell adds a new cell at the index at, in the style of the one beside it.
func addCell(n *ipynb.Notebook, at int, kind, id, source string) []byte {
	l := layoutOf(n)
	s := l.cells()
	if len(n.Cells) == 0 {
		indent, _ := l.indent(n.Top[ipynb.Find(n.Top, "cells")].At)
		cell := l.cell(kind, id, source, indent+l.unit, lined)
		s.end = []byte(l.bracketed(list, []string{cell}, indent, lined))
		return s.replacing(n.List)
	}
	beside := n.Cells[max(at-1, 0)]
	f, _ := l.sourceForm(beside)
	if len(beside.Source) == 0 && f != whole {
		f = lined
	}
	indent, _ := l.indent(beside.Span.From)
	if _, lines := l.indent(beside.Members[0].At); !lines {
		l.end = ""
	}
	s.insert(at, l.cell(kind, id, source, indent, f), l.gap(beside.Span.From))
	return s.replacing(n.List)
}

// gap returns the space between the element at at and its neighbour.
func (l layout) gap(at int) string {
	if blank := blankBefore(l.book.Raw, at); strings.Contains(blank, "\n") {
		return "," + blank
	}
	return l.comma
}

// cell writes a cell with its members in nbformat's order.
func (l layout) cell(kind, id, source, indent string, f form) string {
	var members []string
	add := func(key, value string) { members = append(members, l.quoted(key)+l.colon+value) }
	add("cell_type", l.quoted(kind))
	if kind == code {
		add("execution_count", "null")
	}
	if id != "" {
		add("id", l.quoted(id))
	}
	add("metadata", "{}")
	if kind == code {
		add("outputs", "[]")
	}
	add("source", l.source(source, indent+l.unit, f))
	return l.bracketed(object, members, indent, lined)
}
