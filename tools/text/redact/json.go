// JSON whose texts are redacted one by one, so that it stays JSON. What does not parse is a text like any other.

package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns the JSON with each text in it redacted, the names of members aside; a member's text is judged by its name too.
// All else stays, byte for byte. What it returns may be data itself, and is not to be changed.
func (r *Redactor) JSON(data []byte) []byte {
	if !json.Valid(data) {
		return r.Bytes(data)
	}
	var out bytes.Buffer
	done, name := 0, ""
	for at := 0; at < len(data); at++ {
		switch data[at] {
		case '"':
		case ',', '[', '{', '}', ']':
			name = ""
			continue
		default:
			continue
		}
		end := literalEnd(data, at)
		text := decoded(data[at:end])
		if isName(data, end) {
			name = text
		} else if clean := r.Named(name, text); clean != text {
			out.Write(data[done:at])
			out.Write(encoded(clean))
			done = end
		}
		at = end - 1
	}
	if done == 0 {
		return data
	}
	out.Write(data[done:])
	return out.Bytes()
}

// literalEnd returns the place behind the text that begins at a place, in valid JSON.
func literalEnd(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// isName reports that what has ended is the name of a member.
func isName(data []byte, end int) bool {
	rest := bytes.TrimLeft(data[end:min(len(data), end+64)], " \t\r\n") // who writes more blanks in front of a colon is not read for names
	return len(rest) > 0 && rest[0] == ':'
}

func decoded(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var text string
	if err := json.Unmarshal(literal, &text); err != nil {
		panic("BUG: a part of valid JSON is none: " + err.Error())
	}
	return text
}

// encoded returns a text as JSON, with < > & as they are.
func encoded(text string) []byte {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	if err := to.Encode(text); err != nil {
		panic("BUG: a text is not JSON: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}
