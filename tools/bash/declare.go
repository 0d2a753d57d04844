// Parsing of bash's exports: `declare -x NAME="value"`, one after another, in the quoting that bash
// uses there.

package bash

import "strings"

// parseDeclarations parses the output of `declare -px`, in either mode of bash. Arrays, references
// and names without a value are never in an environment, and are left out. ok is false if anything
// is not in bash's form.
func parseDeclarations(text string) (exports map[string]string, ok bool) {
	exports = map[string]string{}
	for text != "" {
		var flags string
		if text, ok = strings.CutPrefix(text, "declare -"); ok {
			flags, text, ok = strings.Cut(text, " ")
		} else if text, ok = strings.CutPrefix(text, "export "); ok && strings.HasPrefix(text, "-") {
			flags, text, ok = strings.Cut(text, " ")
		}
		end := strings.IndexAny(text, "=\n")
		if !ok || end < 0 || !isName(text[:end]) {
			return nil, false
		}
		name, hasValue := text[:end], text[end] == '='
		text = text[end:]
		var value string
		if hasValue {
			if value, text, ok = parseValue(text[1:]); !ok {
				return nil, false
			}
		}
		if text, ok = strings.CutPrefix(text, "\n"); !ok {
			return nil, false
		}
		if hasValue && !strings.ContainsAny(flags, "aAn") {
			exports[name] = value
		}
	}
	return exports, true
}

// parseValue parses a quoted value, or skips a list of them in parentheses.
func parseValue(text string) (value, rest string, ok bool) {
	switch {
	case strings.HasPrefix(text, `"`):
		return parseQuoted(text[1:], '"')
	case strings.HasPrefix(text, "$'"):
		return parseQuoted(text[2:], '\'')
	case strings.HasPrefix(text, "("):
		rest, ok = skipList(text[1:])
		return "", rest, ok
	}
	return "", text, false
}

// skipList skips the rest of `([0]="a" [key]="b")`.
func skipList(text string) (rest string, ok bool) {
	for ok = true; ok && text != ""; {
		switch {
		case text[0] == ')':
			return text[1:], true
		case text[0] == '"' || strings.HasPrefix(text, "$'"):
			_, text, ok = parseValue(text)
		default:
			text = text[1:]
		}
	}
	return "", false
}

// letters are the escapes of $'text' for single bytes.
var letters = map[byte]byte{
	'a': 7, 'b': 8, 't': 9, 'n': 10, 'v': 11, 'f': 12, 'r': 13, 'e': 27, 'E': 27, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// parseQuoted parses the rest of a quoted text. A backslash in "text" escapes the next character; in
// $'text' it begins one of letters, or the three octal digits of an unprintable byte.
func parseQuoted(text string, quote byte) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return b.String(), text[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case quote == '\'' && i+3 < len(text) && isOctal(text[i+1]) && isOctal(text[i+2]) && isOctal(text[i+3]):
			b.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
		case quote == '"' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case quote == '\'' && i+1 < len(text) && letters[text[i+1]] != 0:
			i++
			b.WriteByte(letters[text[i]])
		default:
			return "", "", false
		}
	}
	return "", "", false
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }
