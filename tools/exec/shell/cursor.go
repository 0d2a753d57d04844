// What the readers of awk's programs and sed's scripts have in common.

package shell

import "strings"

// A cursor stands somewhere in a text that is read as code.
type cursor struct {
	s   string
	pos int
	why string // why it is not known to be harmless; empty: it is so far
}

// refuse notes a reason, unless there is one.
func (c *cursor) refuse(why string) {
	if c.why == "" {
		c.why = why
	}
}

// peek returns the next byte; 0 at the end.
func (c *cursor) peek() byte {
	if c.pos < len(c.s) {
		return c.s[c.pos]
	}
	return 0
}

// skip goes past the bytes of a set, and returns them.
func (c *cursor) skip(set string) string {
	start := c.pos
	for c.pos < len(c.s) && strings.IndexByte(set, c.s[c.pos]) >= 0 {
		c.pos++
	}
	return c.s[min(start, len(c.s)):min(c.pos, len(c.s))]
}

// line takes what is left of the line.
func (c *cursor) line() string {
	line, _, _ := strings.Cut(c.s[min(c.pos, len(c.s)):], "\n")
	c.pos += len(line)
	return line
}

// endings are the reasons against a text in delimiters whose end is not certain.
type endings struct{ lineBreak, brackets, open string }

// past goes behind the next delimiter that is not escaped, nor in brackets if it is that of a
// regular expression.
func (c *cursor) past(delim byte, regex bool, whys endings) {
	for ; c.pos < len(c.s); c.pos++ {
		at := c.s[c.pos]
		if at == '\\' {
			c.pos++
		}
		switch {
		case c.peek() == '\n':
			c.refuse(whys.lineBreak)
			return
		case at == '\\':
		case at == delim:
			c.pos++
			return
		case regex && at == '[':
			n := bracketLength(c.s[c.pos:], delim)
			if n == 0 {
				c.refuse(whys.brackets)
				return
			}
			c.pos += n - 1
		}
	}
	c.refuse(whys.open)
}

// bracketLength is the length of the bracket expression at the beginning of
// s, or 0 when readers of regular expressions may disagree on its end: some
// stop at a delimiter inside it, some take a backslash as an escape.
func bracketLength(s string, delim byte) int {
	i := 1
	if strings.HasPrefix(s[i:], "^") {
		i++
	}
	for start := i; i < len(s); i++ {
		switch c := s[i]; {
		case c == delim || c == '\n':
			return 0
		case c == ']':
			if i == start {
				return 0
			}
			return i + 1
		case c == '\\' && i+1 < len(s) && (s[i+1] == ']' || s[i+1] == '[' || s[i+1] == '\\' || s[i+1] == delim):
			return 0
		case c == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			end := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if end < 0 || strings.ContainsAny(s[i:i+2+end], "\n\\") || strings.IndexByte(s[i:i+2+end], delim) >= 0 {
				return 0
			}
			i += 2 + end + 1
		}
	}
	return 0
}
