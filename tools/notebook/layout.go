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

// splice returns the notebook's bytes with those of a span replaced.
func splice(n *ipynb.Notebook, s ipynb.Span, by string) []byte {
	return slices.Concat(n.Raw[:s.From], []byte(by), n.Raw[s.To:])
}

// sourceForm returns how the source of a cell is written.
func sourceForm(n *ipynb.Notebook, c ipynb.Cell) form {
	m, found := ipynb.Find(c.Members, "source")
	if !found {
		return lined
	}
	value := n.Raw[m.Value.From:m.Value.To]
	if value[0] == '"' {
		return whole
	}
	inside := bytes.TrimLeft(value[1:], " \t\r")
	if _, own := layoutOf(n).indent(m.At); inside[0] == '\n' || inside[0] == ']' && own {
		return lined
	}
	return flat
}

func setSource(n *ipynb.Notebook, c ipynb.Cell, source string) []byte {
	l := layoutOf(n)
	indent := ""
	if m, found := ipynb.Find(c.Members, "source"); found {
		indent, _ = l.indent(m.At)
	} else if len(c.Members) > 0 {
		indent, _ = l.indent(c.Members[0].At)
	}
	return setMember(n, c, "source", l.source(source, indent, sourceForm(n, c)))
}

// setMember sets a member of the cell, or adds it after the others.
func setMember(n *ipynb.Notebook, c ipynb.Cell, key, value string) []byte {
	if m, found := ipynb.Find(c.Members, key); found {
		return splice(n, m.Value, value)
	}
	l := layoutOf(n)
	last := c.Members[len(c.Members)-1] // cell_type, at least
	return splice(n, ipynb.Span{From: last.Value.To, To: last.Value.To}, l.gap(last.At)+l.quoted(key)+l.colon+value)
}

// dropMember removes a member of the cell, if it exists. It must not be the only one.
func dropMember(n *ipynb.Notebook, c ipynb.Cell, key string) []byte {
	i := slices.IndexFunc(c.Members, func(m ipynb.Member) bool { return m.Key == key })
	switch {
	case i < 0:
		return n.Raw
	case i+1 < len(c.Members):
		return splice(n, ipynb.Span{From: c.Members[i].At, To: c.Members[i+1].At}, "")
	}
	return splice(n, ipynb.Span{From: c.Members[i-1].Value.To, To: c.Members[i].Value.To}, "")
}

func dropCell(n *ipynb.Notebook, at int) []byte {
	switch {
	case len(n.Cells) == 1:
		return splice(n, n.List, "[]")
	case at+1 < len(n.Cells):
		return splice(n, ipynb.Span{From: n.Cells[at].Span.From, To: n.Cells[at+1].Span.From}, "")
	}
	return splice(n, ipynb.Span{From: n.Cells[at-1].Span.To, To: n.Cells[at].Span.To}, "")
}

// addCell adds a new cell at the index at, in the style of the one beside it.
func addCell(n *ipynb.Notebook, at int, kind, id, source string) []byte {
	l := layoutOf(n)
	if len(n.Cells) == 0 {
		indent, _ := l.indent(n.Top[slices.IndexFunc(n.Top, func(m ipynb.Member) bool { return m.Key == "cells" })].At)
		cell := l.cell(kind, id, source, indent+l.unit, lined)
		return splice(n, n.List, l.bracketed(list, []string{cell}, indent, lined))
	}
	beside := n.Cells[max(at-1, 0)]
	f := sourceForm(n, beside)
	if len(beside.Source) == 0 && f != whole {
		f = lined
	}
	indent, _ := l.indent(beside.Span.From)
	if _, lines := l.indent(beside.Members[0].At); !lines {
		l.end = ""
	}
	cell, gap := l.cell(kind, id, source, indent, f), l.gap(beside.Span.From)
	if at == 0 {
		return splice(n, ipynb.Span{From: beside.Span.From, To: beside.Span.From}, cell+gap)
	}
	return splice(n, ipynb.Span{From: beside.Span.To, To: beside.Span.To}, gap+cell)
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
