// JSON whose texts are redacted one by one, so that it stays JSON. Invalid JSON is redacted as a text.

package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns the JSON with each text in it redacted, except for the names of members; a member's
// text is judged by its name too. Everything else stays, byte for byte. It may return data itself, so
// the caller must not modify the result.
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

// literalEnd returns the end of the string literal that begins at a position, in valid JSON.
func literalEnd(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// isName reports whether the literal with that end is the name of a member.
func isName(data []byte, end int) bool {
	rest := bytes.TrimLeft(data[end:min(len(data), end+64)], " \t\r\n") // a name with more blanks before its colon does not count
	return len(rest) > 0 && rest[0] == ':'
}

func decoded(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var text string
	if err := json.Unmarshal(literal, &text); err != nil {
		panic("BUG: a literal of valid JSON is not valid: " + err.Error())
	}
	return text
}

// encoded returns a text as JSON, with < > & unescaped.
func encoded(text string) []byte {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	if err := to.Encode(text); err != nil {
		panic("BUG: a text cannot be JSON: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}
