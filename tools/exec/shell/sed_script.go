// A reader of sed's scripts. A script must be literal and hold only commands that
// print, delete or change what passes through. Source: sed(1) of GNU sed 4.9.
// Where two kinds of sed read a text differently, it is refused.

package shell

import "strings"

// A sedReader stands somewhere in a script.
type sedReader struct {
	cursor

	does                  bool // goes on behind what is refused, and notes it
	reads, writes, starts []string
	runsInput             bool // it runs lines that it reads
}

// names notes what a command or flag names up to the end of its line; false: names are
// not collected, or the script was refused already.
func (r *sedReader) names(list *[]string) bool {
	if !r.does || r.why != "" {
		return false
	}
	if name := strings.TrimSpace(r.line()); name != "" && len(*list) < maxInputs {
		*list = append(*list, name)
	}
	return true
}

func sedScript(script string) (why string) {
	r := &sedReader{cursor: cursor{s: script}}
	for r.why == "" && r.next() {
		r.command()
	}
	return r.why
}

// next goes to the next command, past separators and comments.
func (r *sedReader) next() bool {
	for ; r.pos < len(r.s); r.pos++ {
		switch r.s[r.pos] {
		case ' ', '\t', '\n', ';':
		case '#':
			r.line()
		default:
			return true
		}
	}
	return false
}

func (r *sedReader) command() {
	r.addresses()
	r.skip(" \t!")
	c := r.peek()
	r.pos++
	switch c {
	case '{', '}':
		return // what follows is a command of its own
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'F', 'z':
	case 'q', 'Q', 'l':
		r.skip(" \t")
		r.skip("0123456789")
	case 'b', 't', 'T', ':':
		r.skip(" \t")
		r.skip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
	case 'a', 'i', 'c':
		r.added()
		return
	case 's':
		r.substitute()
	case 'y':
		delim := r.delimiter()
		r.text(delim, false)
		r.text(delim, false)
	case 'w', 'W':
		if r.names(&r.writes) {
			return
		}
		r.refuse("its command `" + string(c) + "` writes a file")
	case 'r', 'R':
		if r.names(&r.reads) {
			return
		}
		r.refuse("its command `" + string(c) + "` reads a file that is not named as one")
	case 'e':
		if before := len(r.starts); r.names(&r.starts) {
			r.runsInput = r.runsInput || len(r.starts) == before
			return
		}
		r.refuse("its command `e` runs a program")
	case 0:
		r.refuse("its script ends too early")
	default:
		r.refuse("its command `" + string(rune(c)) + "` is not known to be harmless")
	}
	r.end()
}

// added takes the text of a, i and c, up to the end of its line. A backslash
// could make it longer, for some kinds of sed.
func (r *sedReader) added() {
	if text := r.line(); strings.Contains(text, `\`) || strings.TrimSpace(text) == "" {
		r.refuse("its script has a text whose end is not certain")
	}
}

// end: nothing may follow a command but a separator.
func (r *sedReader) end() {
	r.skip(" \t\r")
	if strings.IndexByte("\x00;\n}#", r.peek()) < 0 {
		r.refuse("its script is not plain after a command")
	}
}

func (r *sedReader) addresses() {
	if !r.address() {
		return
	}
	r.skip(" \t")
	if r.peek() != ',' {
		return
	}
	r.pos++
	r.skip(" \t")
	if c := r.peek(); c == '+' || c == '~' {
		r.pos++
	}
	if !r.address() {
		r.refuse("its script has a bad address")
	}
}

func (r *sedReader) address() bool {
	switch c := r.peek(); {
	case c >= '0' && c <= '9':
		r.skip("0123456789")
		if r.peek() == '~' {
			r.pos++
			r.skip("0123456789")
		}
	case c == '$':
		r.pos++
	case c == '/':
		r.pos++
		r.text('/', true)
		r.skip("IM")
	case c == '\\':
		r.pos++
		r.text(r.delimiter(), true)
		r.skip("IM")
	default:
		return false
	}
	return true
}

func (r *sedReader) delimiter() byte {
	c := r.peek()
	if c <= ' ' || c == '\\' || c >= 0x7f || c == '[' || c == ']' {
		r.refuse("its script has a delimiter on which kinds of sed differ")
	}
	r.pos++
	return c
}

// text goes past the next unescaped delimiter.
func (r *sedReader) text(delim byte, regex bool) {
	r.past(delim, regex, endings{
		"its script has a line break inside a command", "its script has brackets on which kinds of sed differ", "its script ends too early",
	})
}

// substitute takes s/regex/text/flags: of the flags, w writes and e runs.
func (r *sedReader) substitute() {
	delim := r.delimiter()
	r.text(delim, true)
	start := min(r.pos, len(r.s))
	r.text(delim, false)
	by := r.s[start:max(start, min(r.pos, len(r.s))-1)]
	for ; r.pos < len(r.s); r.pos++ {
		switch c := r.s[r.pos]; {
		case c == 'g', c == 'p', c == 'i', c == 'I', c == 'm', c == 'M', c >= '0' && c <= '9':
		case c == 'w':
			r.pos++
			if r.names(&r.writes) {
				return
			}
			r.refuse("the flag `w` of its `s` writes a file")
		case c == 'e' && r.does: // what is replaced is run with all else in its line
			r.runsInput = true
			if len(r.starts) < maxInputs {
				r.starts = append(r.starts, by)
			}
		case c == 'e':
			r.refuse("the flag `e` of its `s` runs a program")
		default:
			return
		}
	}
}
