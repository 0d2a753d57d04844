// Inputs that need no canonical form, because they are in it already.

package tools

import (
	"bytes"
	"encoding/json"
)

// IsCanonical reports whether text is seen at a glance to be a JSON object just as json.Marshal
// writes it: with sorted keys and whole numbers, without white space, escapes and what would be
// escaped. It may report false for one that is. Most inputs of models are flat and plain.
func IsCanonical(text []byte) bool {
	return PlainMembers(text, func(_, _ []byte) bool { return true })
}

// PlainMembers calls visit for every member of the object that text is, with the key without its quotes,
// until it returns false. It reports whether IsCanonical holds and visit has always returned true.
func PlainMembers(text []byte, visit func(key, value []byte) bool) bool {
	if len(text) < 2 || text[0] != '{' || !json.Valid(text) {
		return false
	}
	if text[1] == '}' {
		return len(text) == 2
	}
	var key []byte
	for at := 1; ; at++ {
		name, ok := plainString(text[at:])
		if !ok || at > 1 && bytes.Compare(name, key) <= 0 {
			return false
		}
		key = name
		at += len(name) + 2
		if text[at] != ':' {
			return false
		}
		size := plainValue(text[at+1:])
		if size == 0 || !visit(key, text[at+1:at+1+size]) {
			return false
		}
		switch at += 1 + size; {
		case at == len(text)-1 && text[at] == '}':
			return true
		case at == len(text) || text[at] != ',':
			return false
		}
	}
}

// plainString returns the string that text begins with; false: it begins with another value, or the
// string has characters that may be written in several ways.
func plainString(text []byte) ([]byte, bool) {
	if text[0] != '"' {
		return nil, false
	}
	for i, c := range text[1:] {
		switch {
		case c == '"':
			return text[1 : i+1], true
		case c == '\\', c == '<', c == '>', c == '&', c < ' ', c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

// plainValue returns the length of the value that text begins with; 0: it is not plain.
func plainValue(text []byte) int {
	if content, ok := plainString(text); ok {
		return len(content) + 2
	}
	for _, word := range []string{"true", "false", "null", "[]", "{}"} {
		if len(text) >= len(word) && string(text[:len(word)]) == word {
			return len(word)
		}
	}
	size := 0
	for size < len(text) && (text[size] == '-' || text[size] >= '0' && text[size] <= '9') {
		size++
	}
	return size
}
