package settings

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toold/toold/scheduler/permission"
)

// withRule returns the text of a settings file with one more rule at the end of a list, laid out as its neighbours are. It
// keeps every byte of the text, comments too. nil: the rule is there already. The error is a *FileError: the file is not what
// it should be, and is better fixed by a person.
func withRule(file string, data []byte, to permission.List, rule string) ([]byte, error) {
	root, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	into, missing := root, []string{"permissions", to.String()}
	for _, must := range []struct {
		kind kind
		is   string
	}{{object, "an object {...}"}, {list, "a list of rules"}} {
		m := into.last(missing[0])
		if m == nil {
			break
		}
		if into, missing = &m.value, missing[1:]; into.kind != must.kind {
			name := strings.Join([]string{"permissions", to.String()}[:2-len(missing)], ".")
			return nil, &FileError{File: file, Line: into.line, Why: fmt.Sprintf("%s is %s, but must be %s", name, into, must.is)}
		}
	}
	if slices.ContainsFunc(into.items, func(n node) bool { return n.kind == text && strings.TrimSpace(n.word) == rule }) {
		return nil, nil
	}
	plain := bytes.TrimPrefix(data, byteOrderMark)
	mark := data[:len(data)-len(plain)]
	return append(slices.Clone(mark), layoutOf(plain, root.tree).add(into.tree, missing, rule)...), nil
}

const blanks = " \t\r\n"

// A layout is how a file is indented.
type layout struct {
	data    []byte
	newline string // empty: everything is on one line
	unit    string // of indentation
}

func layoutOf(data []byte, root *hujson.Value) layout {
	l := layout{data: data, unit: "  "}
	inside := data[root.StartOffset:root.EndOffset]
	if line := bytes.IndexByte(inside, '\n'); line > 0 && inside[line-1] == '\r' {
		l.newline = "\r\n"
	} else if line >= 0 {
		l.newline = "\n"
	}
	if members := root.Value.(*hujson.Object).Members; len(members) > 0 {
		inner, own := leadOf(members[0].Name.BeforeExtra), l.indent(root.StartOffset)
		if unit, ok := strings.CutPrefix(lastLine(inner), own); ok && unit != "" && strings.Contains(inner, "\n") {
			l.unit = unit
		}
	}
	return l
}

// leadOf returns the blanks at the end of what stands before a value.
func leadOf(before hujson.Extra) string {
	return string(before[len(bytes.TrimRight(before, blanks)):])
}

func lastLine(s string) string { return s[strings.LastIndex(s, "\n")+1:] }

// indent returns the blanks that the line of a byte begins with.
func (l layout) indent(offset int) string {
	line := l.data[bytes.LastIndexByte(l.data[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// add returns the text with a rule at the end of a list or object. In an object it stands in a list below the names, which are
// not there yet. A comment behind the entry that was last stays with that entry.
func (l layout) add(into *hujson.Value, names []string, rule string) []byte {
	last, before, tail := ends(into)
	own := l.newline + l.indent(into.StartOffset)
	end := into.EndOffset - 1
	at := end - len(tail) + len(bytes.TrimRight(tail, blanks)) // behind the comments
	commented, ownLine := at > end-len(tail), bytes.IndexByte(tail, '\n') >= 0
	var out bytes.Buffer
	lead, closing := leadOf(before), ""
	switch {
	case last == nil && l.newline == "":
		lead = ""
	case last == nil && !ownLine:
		lead, closing = own+l.unit, own
	case last == nil, commented && !strings.Contains(lead, "\n"):
		lead = own + l.unit
	case last.first && !strings.Contains(lead, "\n"):
		lead = " "
	}
	comma := last != nil && last.AfterExtra != nil // it has a comma behind it already
	if last == nil || comma {
		out.Write(l.data[:at])
	} else {
		fmt.Fprintf(&out, "%s,%s", l.data[:last.EndOffset], l.data[last.EndOffset:at])
	}
	out.WriteString(lead + l.entry(names, rule, lead))
	if comma {
		out.WriteByte(',')
	}
	out.WriteString(closing)
	out.Write(l.data[at:])
	return out.Bytes()
}

// An end is the last entry of a list or object.
type end struct {
	*hujson.Value      // of an object's member its value
	first         bool // it is the only one
}

// ends returns the last entry of a list or object, what stands before it, and what stands before the closing bracket.
func ends(of *hujson.Value) (last *end, before, tail hujson.Extra) {
	switch of := of.Value.(type) {
	case *hujson.Object:
		if n := len(of.Members); n > 0 {
			m := &of.Members[n-1]
			return &end{&m.Value, n == 1}, m.Name.BeforeExtra, of.AfterExtra
		}
		return nil, nil, of.AfterExtra
	case *hujson.Array:
		if n := len(of.Elements); n > 0 {
			e := &of.Elements[n-1]
			return &end{e, n == 1}, e.BeforeExtra, of.AfterExtra
		}
		return nil, nil, of.AfterExtra
	}
	panic("BUG: a rule is added to a value that is neither a list nor an object")
}

// entry returns the rule in a list below the names, with lead before it. Where lead has a line break, brackets have lines of
// their own.
func (l layout) entry(names []string, rule, lead string) string {
	if len(names) == 0 {
		return asJSON(rule)
	}
	inner, closing := "", ""
	if strings.Contains(lead, "\n") {
		closing = l.newline + lastLine(lead)
		inner = closing + l.unit
	}
	brackets := "{}"
	if len(names) == 1 {
		brackets = "[]"
	}
	return fmt.Sprintf("%q: ", names[0]) + brackets[:1] + inner + l.entry(names[1:], rule, inner) + closing + brackets[1:]
}
