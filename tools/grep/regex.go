// Translation of ripgrep's regular expressions to equivalent ones of Go. The languages differ in
// Unicode classes, braces, and sets in sets.

package grep

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// An expression is a compiled pattern of our own engine.
type expression struct {
	re *regexp.Regexp
	// needles: every match contains one of these; empty: unknown. With fold they match in any case,
	// and are lower case and ASCII.
	needles []string
	fold    bool
	// parts: every match contains one text of each list. The needles are the best list.
	parts [][]string
	// literal is set if the pattern is exactly its one needle.
	literal bool
	// exact is set if ripgrep finds the same; otherwise something in the pattern is only an
	// approximation.
	exact bool
}

// badPattern returns the error for a pattern that an engine rejected with message.
func badPattern(message string) error {
	return fault.Invalidf("bad_pattern", "The regular expression is invalid: %s\nTo search for text with characters like ( [ { . * as they are, put a \\ before each.", message).At("/pattern")
}

// compile compiles a pattern. Its error is a fault "bad_pattern".
func compile(in Input) (*expression, error) {
	t := translator{in: in.Pattern, exact: true, multiline: in.Multiline}
	if err := t.translate(); err != nil {
		return nil, err
	}
	flags := "m"
	if in.Multiline {
		flags += "s"
	}
	if in.IgnoreCase {
		flags += "i"
	}
	text := fmt.Sprintf("(?%s:%s)", flags, t.out.String())
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, badPattern(err.Error())
	}
	tree = tree.Simplify()
	if !in.Multiline && holdsNewline(tree) {
		return nil, badPattern(`it holds a line break, but lines are searched one by one. Set multiline to true to search across lines.`)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, badPattern(err.Error())
	}
	e := &expression{re: re, exact: t.exact && !in.Multiline}
	e.fold = foldsAnywhere(tree)
	e.parts = parts(tree, e.fold)
	e.needles = best(e.parts)
	e.literal = len(e.needles) == 1 && isLiteral(tree)
	return e, nil
}

// ripgrep's classes, which are Unicode's. U+FFFD stands for a byte that is not text, and belongs to
// no class.
const (
	digits = `\p{Nd}`
	spaces = "\\t\\n\\v\\f\\r\\x{85}\\p{Z}"
	words  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{200c}\x{200d}`
	noText = `\x{fffd}`
)

var classes = map[byte]string{
	'd': "[" + digits + "]", 'D': "[^" + digits + noText + "]",
	's': "[" + spaces + "]", 'S': "[^" + spaces + noText + "]",
	'w': "[" + words + "]", 'W': "[^" + words + noText + "]",
}

// A translator reads in from at and writes out.
type translator struct {
	in        string
	at        int
	out       strings.Builder
	multiline bool
	exact     bool
	dotAll    bool // an inline flag may have changed the meaning of "."
}

func (t *translator) translate() error {
	t.dotAll = t.multiline
	for t.at < len(t.in) {
		var err error
		switch t.in[t.at] {
		case '\\':
			err = t.escape()
		case '[':
			err = t.class()
		case '{':
			err = t.repetition()
		case '(':
			t.group()
		case '.':
			if t.dotAll {
				t.write(".", 1)
			} else {
				t.write(`[^\n`+noText+`]`, 1)
			}
		default:
			t.write(t.in[t.at:t.at+1], 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the translation of the next bytes of in.
func (t *translator) write(translation string, bytes int) {
	t.out.WriteString(translation)
	t.at += bytes
}

// escape translates a backslash and what it escapes, outside a class.
func (t *translator) escape() error {
	if t.at+1 == len(t.in) {
		return badPattern("the backslash at its end escapes nothing.")
	}
	c := t.in[t.at+1]
	switch {
	case classes[c] != "":
		t.write(classes[c], 2)
		return nil
	case c == 'b' || c == 'B':
		t.exact = false // Go's word boundaries are ASCII
	case c == '<' || c == '>':
		return badPattern(fmt.Sprintf(`\%c is not supported. Write \b for a word boundary.`, c))
	case (c == 'A' || c == 'z') && !t.multiline:
		return badPattern(fmt.Sprintf(`\%c is the beginning or end of a whole file, but lines are searched one by one. Write ^ or $, or set multiline to true.`, c))
	case strings.IndexByte("CQEZGKXRhHNVuU", c) >= 0:
		return badPattern(fmt.Sprintf(`\%c is not supported.`, c))
	case '1' <= c && c <= '9':
		return badPattern("backreferences are not supported.")
	}
	t.copyEscape()
	return nil
}

// copyEscape copies a backslash and its character, and braces that belong to it: \x{...}, \p{...}.
func (t *translator) copyEscape() {
	end := t.at + 2
	if c := t.in[t.at+1]; strings.IndexByte("xpP", c) >= 0 && end < len(t.in) && t.in[end] == '{' {
		if n := strings.IndexByte(t.in[end:], '}'); n >= 0 {
			end += n + 1
		}
	}
	t.write(t.in[t.at:end], end-t.at)
}

// class translates a class in brackets.
func (t *translator) class() error {
	start := t.at
	t.write("[", 1)
	if strings.HasPrefix(t.in[t.at:], "^") {
		t.write("^"+noText, 1)
	}
	for first := true; t.at < len(t.in); first = false {
		rest := t.in[t.at:]
		switch {
		case rest[0] == ']' && first:
			t.write(`\]`, 1)
		case rest[0] == ']':
			t.write("]", 1)
			return nil
		case rest[0] == '\\':
			if err := t.classEscape(); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "[:") && strings.Contains(rest, ":]"):
			n := strings.Index(rest, ":]") + 2
			t.write(rest[:n], n)
		case rest[0] == '[', strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "~~"):
			return badPattern(fmt.Sprintf(`in the class %q, sets inside a set and && -- ~~ between sets are not supported. Write \[ for a bracket itself.`, t.in[start:]))
		default:
			t.write(rest[:1], 1)
		}
	}
	return badPattern(fmt.Sprintf("the class %q is never closed.", t.in[start:]))
}

// classEscape translates an escape inside a class. The negated classes have no Unicode form there.
func (t *translator) classEscape() error {
	if t.at+1 == len(t.in) {
		return badPattern("the backslash at its end escapes nothing.")
	}
	inside := map[byte]string{'d': digits, 's': spaces, 'w': words}
	c := t.in[t.at+1]
	if inside[c] != "" {
		t.write(inside[c], 2)
		return nil
	}
	t.exact = t.exact && strings.IndexByte("DSWP", c) < 0
	t.copyEscape()
	return nil
}

var counts = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// repetition translates a brace, which always begins a count: "{" itself is written with a
// backslash.
func (t *translator) repetition() error {
	count := counts.FindString(t.in[t.at:])
	if count == "" {
		return badPattern(fmt.Sprintf(`the { at byte %d does not begin a count such as {2,3}. Write \{ for the character itself.`, t.at+1))
	}
	if t.at == 0 {
		return badPattern(fmt.Sprintf(`%s at the beginning repeats nothing. Write \{ for the character itself.`, count))
	}
	t.write(count, len(count))
	return nil
}

// group copies the opening of a group. Flags that change the meaning of the engine's own flags are
// not followed.
func (t *translator) group() {
	t.write("(", 1)
	flags, ok := strings.CutPrefix(t.in[t.at:], "?")
	end := strings.IndexAny(flags, ":)")
	if !ok || end < 0 || strings.HasPrefix(flags, "P") || strings.HasPrefix(flags, "<") {
		return
	}
	if strings.ContainsAny(flags[:end], "ms") {
		t.exact, t.dotAll = false, true
	}
}

// shortNeedle is the length below which a text is on so many lines that searching for it first
// saves nothing.
const shortNeedle = 3

// suits reports whether our own engine is as good as rg: it finds the same, and the needles let it
// skip most of a file.
func (e *expression) suits() bool {
	return e.exact && (e.literal || len(e.needles) > 0 && shortest(e.needles) >= shortNeedle)
}
