package mcpserver

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// JSON is read and written here as the text that it is. encoding/json makes a value of each part by reflection.

// members returns the members of an object, its keys without quotes, in their order. The text is valid JSON; if it is
// not an object, there are none.
func members(text []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		at := skipSpace(text, 0)
		if at == len(text) || text[at] != '{' {
			return
		}
		for at = skipSpace(text, at+1); at < len(text) && text[at] == '"'; at = skipSpace(text, at) {
			end := skipString(text, at)
			key, _ := unquoted(text[at:end])
			at = skipSpace(text, skipSpace(text, end)+1) // the colon
			end = skipValue(text, at)
			if !yield(key, text[at:end]) {
				return
			}
			if at = skipSpace(text, end); text[at] == ',' {
				at++
			}
		}
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at
}

// skipString returns where the string ends that begins at a quote.
func skipString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// skipValue returns where the value ends that begins there.
func skipValue(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at = skipString(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return at
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return at + 1
		}
	}
	return at
}

// unquoted returns the string that a valid text stands for; false: it is not a string.
func unquoted(text []byte) (s string, is bool) {
	switch {
	case len(text) < 2 || text[0] != '"':
		return "", false
	case bytes.IndexByte(text, '\\') < 0:
		return string(text[1 : len(text)-1]), true
	}
	return s, json.Unmarshal(text, &s) == nil
}

const hexDigits = "0123456789abcdef"

// appendString appends a string as JSON, with U+FFFD for what is not UTF-8.
func appendString(to []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	to = append(to, '"')
	begin := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(append(to, s[begin:i]...), '\\')
		begin = i + 1
		switch c {
		case '"', '\\':
			to = append(to, c)
		case '\n':
			to = append(to, 'n')
		case '\t':
			to = append(to, 't')
		case '\r':
			to = append(to, 'r')
		default:
			to = append(to, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(to, s[begin:]...), '"')
}

// appendJSON appends a value of which there are few, of a type that always can be encoded.
func appendJSON(to []byte, value any) []byte {
	buffer := bytes.NewBuffer(to)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
