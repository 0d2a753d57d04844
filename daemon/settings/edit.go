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
	missing := []string{"permissions", to.String()}
	if m := root.last("permissions"); m != nil {
		if m.value.kind != object {
			return nil, &FileError{File: file, Line: m.value.line, Why: fmt.Sprintf("permissions is %s, but must be an object {...}", &m.value)}
		}
		missing = missing[1:]
		if m = m.value.last(to.String()); m != nil {
			if m.value.kind != list {
				return nil, &FileError{File: file, Line: m.value.line, Why: fmt.Sprintf("permissions.%s is %s, but must be a list of rules", to, &m.value)}
			}
			missing = nil
			if slices.ContainsFunc(m.value.items, func(n node) bool { return n.kind == text && strings.TrimSpace(n.word) == rule }) {
				return nil, nil
			}
		}
	}
	mark := data[:len(data)-len(bytes.TrimPrefix(data, byteOrderMark))]
	data = data[len(mark):]
	tree, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	into := tree
	for _, name := range []string{"permissions", to.String()}[:2-len(missing)] {
		into = lastValue(into.Value.(*hujson.Object), name)
	}
	layoutOf(data, tree).add(into, missing, rule)
	return append(slices.Clone(mark), tree.Pack()...), nil
}

// lastValue returns the value that counts for a name, which is there.
func lastValue(o *hujson.Object, name string) *hujson.Value {
	for i, m := range slices.Backward(o.Members) {
		if m.Name.Value.(hujson.Literal).String() == name {
			return &o.Members[i].Value
		}
	}
	panic("BUG: an object without " + name)
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

// add puts a rule at the end of a list or object. In an object it stands in a list below the names, which are not there yet.
// A comment behind the entry that was last stays with that entry.
func (l layout) add(into *hujson.Value, names []string, rule string) {
	var before []hujson.Extra      // of each entry
	var comma, after *hujson.Extra // behind the last entry, not nil if a comma stands there; before the closing bracket
	var lastComma hujson.Extra
	comma = &lastComma
	switch of := into.Value.(type) {
	case *hujson.Object:
		after = &of.AfterExtra
		for i := range of.Members {
			before, comma = append(before, of.Members[i].Name.BeforeExtra), &of.Members[i].Value.AfterExtra
		}
	case *hujson.Array:
		after = &of.AfterExtra
		for i := range of.Elements {
			before, comma = append(before, of.Elements[i].BeforeExtra), &of.Elements[i].AfterExtra
		}
	}
	var trailing hujson.Extra // of the new entry
	if *comma != nil {
		trailing = hujson.Extra{}
	}
	lead := l.lead(into, before, after)
	comments := bytes.TrimRight(*after, blanks)
	if len(comments) > 0 {
		*after = bytes.Clone((*after)[len(comments):])
	}
	space := append(bytes.Clone(comments), lead...)
	switch of := into.Value.(type) {
	case *hujson.Object:
		m := l.member(names, rule, lead)
		m.Name.BeforeExtra, m.Value.AfterExtra = space, trailing
		of.Members = append(of.Members, m)
	case *hujson.Array:
		of.Elements = append(of.Elements, hujson.Value{BeforeExtra: space, Value: hujson.String(rule), AfterExtra: trailing})
	}
}

// lead returns the blanks before a new entry at the end, and gives an empty list or object a closing line of its own where
// entries have their own lines.
func (l layout) lead(into *hujson.Value, before []hujson.Extra, after *hujson.Extra) string {
	own := l.indent(into.StartOffset)
	hasComment, ownLine := len(bytes.TrimSpace(*after)) > 0, bytes.IndexByte(*after, '\n') >= 0
	if n := len(before); n > 0 {
		lead := leadOf(before[n-1])
		if !strings.Contains(lead, "\n") && hasComment {
			return l.newline + own + l.unit
		}
		if n == 1 && !strings.Contains(lead, "\n") {
			return " "
		}
		return lead
	}
	if l.newline == "" {
		return ""
	}
	if !ownLine {
		*after = append(bytes.Clone(*after), l.newline+own...)
	}
	return l.newline + own + l.unit
}

// member returns the rule in a list below the names, as a member with lead before it.
func (l layout) member(names []string, rule, lead string) hujson.ObjectMember {
	inner, closing := "", ""
	if strings.Contains(lead, "\n") {
		closing = l.newline + lastLine(lead)
		inner = closing + l.unit
	}
	var value hujson.ValueTrimmed
	if len(names) == 1 {
		value = &hujson.Array{Elements: []hujson.Value{{BeforeExtra: hujson.Extra(inner), Value: hujson.String(rule)}}, AfterExtra: hujson.Extra(closing)}
	} else {
		deeper := l.member(names[1:], rule, inner)
		deeper.Name.BeforeExtra = hujson.Extra(inner)
		value = &hujson.Object{Members: []hujson.ObjectMember{deeper}, AfterExtra: hujson.Extra(closing)}
	}
	return hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(names[0])}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: value}}
}
