// Adding one rule to the text of a settings file, without touching any other byte. It does not read or write files.

package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// insertion gives what to put where into data to add rule to a list. piece is empty if the rule is there already. The
// error is a *FileError: the file is not what it should be, and is better mended by a person.
func insertion(file string, data []byte, to permission.List, rule string) (at int, piece string, err error) {
	root, err := parseDocument(file, data)
	if err != nil {
		return 0, "", err
	}
	form := formOf(data, root)
	word := quotedJSON(rule)
	m := root.last("permissions")
	if m == nil {
		at, piece = form.add(root, func(inner string) string {
			list := form.list(to, word, form.deeper(inner))
			return `"permissions": ` + form.wrap("{", list, "}", inner)
		})
		return at, piece, nil
	}
	if m.value.kind != object {
		return 0, "", &FileError{file, m.value.line, fmt.Sprintf("permissions is %s, but must be an object {...}", &m.value)}
	}
	holder := &m.value
	if m = holder.last(to.String()); m == nil {
		at, piece = form.add(holder, func(inner string) string { return form.list(to, word, inner) })
		return at, piece, nil
	}
	if m.value.kind != list {
		return 0, "", &FileError{file, m.value.line, fmt.Sprintf("permissions.%s is %s, but must be a list of rules", to, &m.value)}
	}
	for _, item := range m.value.items {
		if item.kind == text && strings.TrimSpace(item.word) == rule {
			return 0, "", nil
		}
	}
	at, piece = form.add(&m.value, func(string) string { return word })
	return at, piece, nil
}

// quotedJSON writes a text as JSON, with < > & as people write them.
func quotedJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("BUG: a text that is no JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A form is how a file is laid out.
type form struct {
	data    []byte
	newline string // empty: everything is on one line
	unit    string // of indentation
}

func formOf(data []byte, root *node) form {
	f := form{data: data, unit: "  "}
	inside := data[root.start:root.end]
	if line := bytes.IndexByte(inside, '\n'); line >= 0 {
		f.newline = "\n"
		if line > 0 && inside[line-1] == '\r' {
			f.newline = "\r\n"
		}
	}
	if len(root.members) > 0 {
		outer := f.indent(root.start)
		if inner := f.lead(root.start, root.members[0].start); strings.Contains(inner, "\n") {
			if deeper, ok := strings.CutPrefix(inner[strings.LastIndex(inner, "\n")+1:], outer); ok && deeper != "" {
				f.unit = deeper
			}
		}
	}
	return f
}

// lead gives the blanks right before a value, back to the byte after start.
func (f *form) lead(start, at int) string {
	from := at
	for from > start+1 && strings.IndexByte(" \t\r\n", f.data[from-1]) >= 0 {
		from--
	}
	return string(f.data[from:at])
}

// indent gives the blanks that the line of a byte begins with.
func (f *form) indent(at int) string {
	from := bytes.LastIndexByte(f.data[:at], '\n') + 1
	to := from
	for to < at && (f.data[to] == ' ' || f.data[to] == '\t') {
		to++
	}
	return string(f.data[from:to])
}

// deeper is the lead of what stands inside of something with the lead inner; empty: on the same line.
func (f *form) deeper(inner string) string {
	if !strings.Contains(inner, "\n") {
		return ""
	}
	return f.newline + inner[strings.LastIndex(inner, "\n")+1:] + f.unit
}

// add puts one more entry at the end of a list or object, in the way of its neighbours. entry gets the blanks that will
// stand before it, with the line break if there is one.
func (f *form) add(to *node, entry func(lead string) string) (at int, piece string) {
	if last, n := to.lastStart(); n > 0 {
		lead := f.lead(to.start, last)
		if n == 1 && !strings.Contains(lead, "\n") {
			lead = " "
		}
		return to.lastEnd(), "," + lead + entry(lead)
	}
	inside := f.data[to.start+1 : to.end-1]
	if bytes.IndexByte(inside, '\n') >= 0 { // the closing one stands on its own line already
		lead := f.newline + f.indent(to.start) + f.unit
		return to.start + 1, lead + entry(lead)
	}
	if f.newline == "" {
		return to.start + 1, entry("")
	}
	outer := f.newline + f.indent(to.start)
	return to.start + 1, outer + f.unit + entry(outer+f.unit) + outer
}

// list writes a list of rules with one rule, as a member that has lead before it.
func (f *form) list(name permission.List, word, lead string) string {
	return fmt.Sprintf("%q: ", name) + f.wrap("[", word, "]", lead)
}

// wrap puts brackets around an entry, on lines of their own where the whole has a line of its own.
func (f *form) wrap(left, entry, right, lead string) string {
	if !strings.Contains(lead, "\n") {
		return left + entry + right
	}
	own := f.newline + lead[strings.LastIndex(lead, "\n")+1:]
	return left + own + f.unit + entry + own + right
}

func (n *node) lastStart() (start, count int) {
	switch {
	case len(n.items) > 0:
		return n.items[len(n.items)-1].start, len(n.items)
	case len(n.members) > 0:
		return n.members[len(n.members)-1].start, len(n.members)
	}
	return 0, 0
}

func (n *node) lastEnd() int {
	if len(n.items) > 0 {
		return n.items[len(n.items)-1].end
	}
	return n.members[len(n.members)-1].value.end
}
