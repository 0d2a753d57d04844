// JSON with the place of every value. It does not know what the keys mean.

package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const (
	maxBytes = 2 << 20 // of one settings file; those of Claude Code are bounded the same
	maxDepth = 100     // of nested lists and objects; no setting is deeper than 10
)

// A FileError says why a settings file, or the session's text, cannot be used as it stands.
type FileError struct {
	File string
	Line int // from 1; 0: the file as a whole
	Why  string
}

// Error gives file and line as editors take them, and what is wrong.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Why)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why)
}

// A kind is what sort of JSON value a node is.
type kind uint8

const (
	object kind = iota
	list
	text
	number
	boolean
	null
)

// A node is one JSON value and where it stands.
type node struct {
	kind       kind
	word       string // a text's content; a number's, true, false or null as written
	line       int
	start, end int      // bytes of the document
	members    []member // of an object, in the order of the file, repeated keys too
	items      []node   // of a list
}

// A member is one entry of an object.
type member struct {
	key   string
	line  int // of the key
	start int // of the key
	value node
}

// last gives the member that counts for key: of several, the last.
func (n *node) last(key string) *member {
	for i, m := range slices.Backward(n.members) {
		if m.key == key {
			return &n.members[i]
		}
	}
	return nil
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

// parseDocument takes a file's bytes apart. The error is a *FileError.
func parseDocument(file string, data []byte) (*node, error) {
	if bom := []byte("\ufeff"); bytes.HasPrefix(data, bom) {
		data = append(bytes.Repeat([]byte{' '}, len(bom)), data[len(bom):]...) // places stay what they are
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &FileError{file, 0, "it is empty; {} is the least that settings are"}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, syntaxError(file, data, err)
	}
	w := walker{file: file, data: data, line: 1, tokens: json.NewDecoder(bytes.NewReader(data))}
	w.tokens.UseNumber()
	root, err := w.value(0)
	if err != nil {
		return nil, err
	}
	if root.kind != object {
		return nil, &FileError{file, root.line, fmt.Sprintf("settings are an object {...}, and this is %s", &root)}
	}
	return &root, nil
}

// syntaxError says where JSON is broken, and names the two mistakes that people make most.
func syntaxError(file string, data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return &FileError{file, 0, "it is not valid JSON: " + err.Error()}
	}
	at := min(max(int(syntax.Offset)-1, 0), len(data)-1) // of the byte that does not fit
	why := "it is not valid JSON: " + syntax.Error()
	before := bytes.TrimSpace(data[:at])
	switch {
	case data[at] == '/':
		why = "it is not valid JSON: there are no comments in JSON"
	case (data[at] == '}' || data[at] == ']') && bytes.HasSuffix(before, []byte{','}):
		why = fmt.Sprintf("it is not valid JSON: no comma may stand before %c", data[at])
	}
	return &FileError{file, 1 + bytes.Count(data[:at], []byte{'\n'}), why}
}

// A walker goes over the tokens of valid JSON once, and counts lines as it goes.
type walker struct {
	file   string
	data   []byte
	tokens *json.Decoder
	at     int // end of the latest token
	start  int // of the latest token
	line   int // of the latest token
}

func (w *walker) next() (json.Token, error) {
	token, err := w.tokens.Token()
	if err != nil {
		return nil, &FileError{w.file, w.line, "it is not valid JSON: " + err.Error()}
	}
	start := w.at
	for bytes.IndexByte([]byte(" \t\r\n,:"), w.data[start]) >= 0 {
		start++
	}
	w.line += bytes.Count(w.data[w.start:start], []byte{'\n'})
	w.start, w.at = start, int(w.tokens.InputOffset())
	return token, nil
}

func (w *walker) value(depth int) (node, error) {
	token, err := w.next()
	if err != nil {
		return node{}, err
	}
	n := node{line: w.line, start: w.start, end: w.at}
	switch token := token.(type) {
	case json.Delim:
		return w.container(n, token, depth)
	case string:
		n.kind, n.word = text, token
	case json.Number:
		n.kind, n.word = number, token.String()
	case bool:
		n.kind, n.word = boolean, fmt.Sprint(token)
	default:
		n.kind, n.word = null, "null"
	}
	return n, nil
}

// container reads the rest of the list or object that opened with delim.
func (w *walker) container(n node, delim json.Delim, depth int) (node, error) {
	if depth >= maxDepth {
		return node{}, &FileError{w.file, n.line, fmt.Sprintf("it is nested deeper than %d lists and objects", maxDepth)}
	}
	n.kind = list
	if delim == '{' {
		n.kind = object
	}
	for w.tokens.More() {
		m := member{}
		if n.kind == object {
			key, err := w.next()
			if err != nil {
				return node{}, err
			}
			m.key, _ = key.(string)
			m.line, m.start = w.line, w.start
		}
		value, err := w.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		if n.kind == list {
			n.items = append(n.items, value)
			continue
		}
		m.value = value
		n.members = append(n.members, m)
	}
	_, err := w.next() // the closing delimiter
	n.end = w.at
	return n, err
}
