package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const (
	maxBytes = 2 << 20 // of one settings file; those of Claude Code are bounded the same
	maxDepth = 100     // of nested lists and objects; no setting is deeper than 10
)

// A FileError reports why a settings file, or the session's text, cannot be used as it stands.
type FileError struct {
	File   string
	Line   int // from 1; 0: the file as a whole
	Column int // from 1, in bytes; 0: the line as a whole
	Why    string
}

// Error returns file, line and column as editors take them, and what is wrong.
func (e *FileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	if e.Column > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Column)
	}
	return at + ": " + e.Why
}

type kind uint8

const (
	object kind = iota
	list
	text
	number
	boolean
	null
)

// A node is one JSON value and its line.
type node struct {
	kind    kind
	word    string // a text's content; a number, true, false or null as written
	line    int
	members []member // of an object, in the order of the file, repeated keys too
	items   []node   // of a list
	tree    *hujson.Value
}

// A member is one entry of an object.
type member struct {
	key   string
	line  int // of the key
	value node
}

// last returns the member that counts for key: of several, the last. nil: there is none.
func (n *node) last(key string) *member {
	for i, m := range slices.Backward(n.members) {
		if m.key == key {
			return &n.members[i]
		}
	}
	return nil
}

// isEmpty reports whether the value is null, or a list or an object without entries.
func (n *node) isEmpty() bool {
	return n.kind == null || (n.kind == object || n.kind == list) && len(n.members)+len(n.items) == 0
}

// String describes the value in a few words, for messages.
func (n *node) String() string {
	switch n.kind {
	case object:
		return "an object"
	case list:
		return "a list"
	case text:
		return fmt.Sprintf("the text %q", shortened(n.word))
	case number:
		return "the number " + shortened(n.word)
	}
	return n.word
}

// shortened keeps a message readable, and keeps what a file may hold by mistake out of it.
func shortened(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

var byteOrderMark = []byte("\ufeff")

// parseDocument returns the object that a settings file holds. The file may have comments and trailing commas. The error is
// a *FileError.
func parseDocument(file string, data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	tree, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	c := converter{data: data, line: 1}
	root := c.node(tree)
	if root.kind != object {
		return nil, &FileError{File: file, Line: root.line, Why: fmt.Sprintf("settings are an object {...}, and this is %s", &root)}
	}
	return &root, nil
}

// parseTree returns the syntax tree of a file without byte order mark, which holds every byte of it. The error is a *FileError.
func parseTree(file string, data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &FileError{File: file, Why: "it is empty; {} is the least that settings are"}
	}
	if line := tooDeep(data); line > 0 { // hujson bounds no depth, and the stack is not endless
		return nil, &FileError{File: file, Line: line, Why: fmt.Sprintf("it is nested deeper than %d lists and objects", maxDepth)}
	}
	tree, err := hujson.Parse(data)
	if err == nil {
		return &tree, nil
	}
	wrong := &FileError{File: file, Why: "it is not valid JSON: " + err.Error()}
	// hujson returns the position in its message only, and its message about a literal has the literal in it, perhaps a secret.
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &wrong.Line, &wrong.Column); n == 2 {
		why, _, _ := strings.Cut(errors.Unwrap(err).Error(), "invalid literal: ")
		wrong.Why = "it is not valid JSON: " + cmp.Or(why, "a value is not a text, number, true, false or null")
	}
	return nil, wrong
}

// tooDeep returns the line on which nesting exceeds maxDepth; 0: it does not. It does not check that data is JSON.
func tooDeep(data []byte) (line int) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch rest := data[i:]; {
		case rest[0] == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += max(0, bytes.IndexByte(rest, '\n'))
		case bytes.HasPrefix(rest, []byte("/*")):
			i += 2 + max(0, bytes.Index(rest[2:], []byte("*/")))
		case rest[0] == '{' || rest[0] == '[':
			if depth++; depth > maxDepth {
				return 1 + bytes.Count(data[:i], []byte{'\n'})
			}
		case rest[0] == '}' || rest[0] == ']':
			depth--
		}
	}
	return 0
}

// A converter turns a syntax tree into nodes, in the order of the text, and counts lines.
type converter struct {
	data []byte
	at   int // the byte that line is of
	line int
}

func (c *converter) lineOf(offset int) int {
	c.line += bytes.Count(c.data[c.at:offset], []byte{'\n'})
	c.at = offset
	return c.line
}

func (c *converter) node(v *hujson.Value) node {
	n := node{line: c.lineOf(v.StartOffset), tree: v}
	switch of := v.Value.(type) {
	case *hujson.Object:
		for i := range of.Members {
			name, value := &of.Members[i].Name, &of.Members[i].Value
			m := member{key: name.Value.(hujson.Literal).String(), line: c.lineOf(name.StartOffset)}
			m.value = c.node(value)
			n.members = append(n.members, m)
		}
	case *hujson.Array:
		n.kind = list
		for i := range of.Elements {
			n.items = append(n.items, c.node(&of.Elements[i]))
		}
	case hujson.Literal:
		kinds := map[hujson.Kind]kind{'"': text, '0': number, 't': boolean, 'f': boolean, 'n': null}
		n.kind, n.word = kinds[of.Kind()], of.String()
	}
	return n
}
