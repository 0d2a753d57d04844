package repo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A Setting is one line of a git configuration file.
type Setting struct {
	// Key is the section and the name in lower case, with the subsection between them as it is
	// written: "core.hookspath", "filter.LFS.clean". The deprecated form [section.Subsection] is
	// lower case as a whole.
	Key      string
	Value    string
	Implicit bool // the line has no "=", which git reads as true
}

// ParseConfig returns the settings of a git configuration file in the order of their lines. It
// reads the file as git does, to the byte: a key or a value ends at a NUL. It follows no include.
// White space inside a value stays as it is; a git before 2.45 reads each tab there as a space.
//
// An error names the line that git refuses. No git command works where such a file is read.
func ParseConfig(data []byte) ([]Setting, error) {
	p := configParser{data: data}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.settings, nil
}

// Without returns a configuration file without the settings that unwanted accepts, and their keys.
// Everything else stays as it is, comments included. A line on which nothing is left goes too, and
// so does the header of a section of which nothing is left. The error is that of [ParseConfig].
func Without(data []byte, unwanted func(Setting) bool) (rest []byte, keys []string, err error) {
	p := configParser{data: data}
	if err := p.parse(); err != nil {
		return nil, nil, err
	}
	bad := make([]bool, len(p.settings))
	for i, s := range p.settings {
		if bad[i] = unwanted(s); bad[i] {
			keys = append(keys, s.Key)
		}
	}
	from := 0
	for i, place := range p.places {
		if !bad[i] || place.from < from {
			continue
		}
		if header, ok := p.emptied(i, bad); ok {
			place = header
		}
		rest = append(rest, data[from:place.from]...)
		from = place.to
		line := rest[bytes.LastIndexByte(rest, '\n')+1:]
		end, blank := lineEnd(data[from:])
		if blank && isBlank(line) {
			rest, from = rest[:len(rest)-len(line)], from+end
		}
	}
	return append(rest, data[from:]...), keys, nil
}

// emptied returns the range of the section whose first setting is the i-th, and reports whether
// nothing but its header is left of it.
func (p *configParser) emptied(i int, bad []bool) (whole textRange, ok bool) {
	at := slices.IndexFunc(p.headers, func(h header) bool { return h.first == i && h.count > 0 })
	if at < 0 {
		return whole, false
	}
	h, to := p.headers[at], len(p.data)
	if at+1 < len(p.headers) {
		to = p.headers[at+1].from
	}
	from := h.to
	for n := i; n < i+h.count; n++ {
		if !bad[n] || !isBlank(p.data[from:p.places[n].from]) {
			return whole, false
		}
		from = p.places[n].to
	}
	return textRange{h.from, from}, isBlank(p.data[from:to])
}

// lineEnd returns how long the rest of a line is, its end included, and reports whether it is
// blank.
func lineEnd(data []byte) (length int, blank bool) {
	length = bytes.IndexByte(data, '\n') + 1
	if length == 0 {
		length = len(data)
	}
	return length, isBlank(data[:length])
}

func isBlank(data []byte) bool { return len(bytes.Trim(data, " \t\r\n")) == 0 }

// parse parses the whole file.
func (p *configParser) parse() error {
	if bytes.HasPrefix(p.data, byteOrderMark) {
		p.at = len(byteOrderMark)
	}
	for {
		c, wrong := p.next(), ""
		switch {
		case p.at > len(p.data):
			return nil
		case isSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[' && !p.header():
			wrong = "section header"
		case c != '[' && !isLetter(c):
			wrong = "line"
		case c != '[' && !p.setting(c):
			wrong = "setting"
		}
		if wrong != "" {
			return fmt.Errorf("line %d: bad %s", bytes.Count(p.data[:min(p.at-1, len(p.data))], newline)+1, wrong)
		}
	}
}

var newline, byteOrderMark = []byte{'\n'}, []byte("\xef\xbb\xbf")

// A configParser parses a configuration file, byte by byte.
type configParser struct {
	data     []byte
	at       int    // the number of bytes read, the end of the file included
	section  string // the beginning of a setting's key, with its final dot
	settings []Setting
	places   []textRange // of the settings
	headers  []header
}

// A header is where a section begins, with the number of its first setting and how many it has.
type header struct {
	textRange
	first, count int
}

// A textRange is where a setting stands: from its name to the end of its value, without a comment
// behind it and without the end of the line.
type textRange struct{ from, to int }

// next returns the next byte; "\r\n" is one. The end of the file is the end of a line too.
func (p *configParser) next() byte {
	if bytes.HasPrefix(p.data[min(p.at, len(p.data)):], []byte("\r\n")) {
		p.at++
	}
	p.at++
	return p.last()
}

func (p *configParser) last() byte {
	if p.at > len(p.data) {
		return '\n'
	}
	return p.data[p.at-1]
}

func (p *configParser) skipLine() {
	for p.next() != '\n' {
	}
}

// header parses a section's header after its bracket, and reports whether git accepts it.
func (p *configParser) header() bool {
	from := p.at - 1
	ok := p.headerName()
	p.headers = append(p.headers, header{textRange{from, min(p.at, len(p.data))}, len(p.settings), 0})
	return ok
}

func (p *configParser) headerName() bool {
	var name strings.Builder
	for {
		c := p.next()
		switch {
		case c == ']':
			p.section = name.String() + "."
			return name.Len() > 0
		case isSpace(c):
			return p.subsection(name.String())
		case !isKeyByte(c) && c != '.':
			return false
		}
		name.WriteByte(lower(c))
	}
}

// subsection parses a header after the section's name.
func (p *configParser) subsection(section string) bool {
	for isSpace(p.last()) {
		if p.last() == '\n' {
			return false
		}
		p.next()
	}
	if p.last() != '"' {
		return false
	}
	var name strings.Builder
	for c := p.next(); c != '"'; c = p.next() {
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' {
			return false
		}
		name.WriteByte(c)
	}
	p.section = section + "." + name.String() + "."
	return p.next() == ']'
}

// setting parses a setting whose name begins with first, and reports whether git accepts it.
func (p *configParser) setting(first byte) bool {
	key, from := []byte{lower(first)}, p.at-1
	c := p.next()
	for ; isKeyByte(c); c = p.next() {
		key = append(key, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	value, ok, to := "", c == '\n', p.at-1
	if c == '=' {
		value, ok, to = p.value()
	}
	s := Setting{Key: cString(p.section + string(key)), Value: cString(value), Implicit: c == '\n'}
	p.settings, p.places = append(p.settings, s), append(p.places, textRange{from, min(to, len(p.data))})
	if n := len(p.headers); n > 0 {
		p.headers[n-1].count++
	}
	return ok
}

// value parses a value up to the end of its last line, and reports whether git accepts it. end is
// where the value ends in the file.
func (p *configParser) value() (value string, ok bool, end int) {
	var text []byte
	quoted, kept := false, 0 // kept counts the bytes before the white space that may turn out to be the end
	for {
		c := p.next()
		switch {
		case c == '\n':
			return string(text[:kept]), !quoted, p.at - 1
		case isSpace(c) && !quoted:
			if len(text) > 0 {
				text = append(text, c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			end = p.at - 1
			p.skipLine()
			return string(text[:kept]), true, end
		case c == '"':
			quoted = !quoted
		case c != '\\':
			text = append(text, c)
		default:
			written := strings.IndexByte("\ntbn\\\"", p.next())
			if written < 0 {
				return "", false, p.at
			}
			text = append(text, []string{"", "\t", "\b", "\n", "\\", "\""}[written]...)
		}
		kept = len(text)
	}
}

// cString returns the part of s that a C program reads: up to a NUL.
func cString(s string) string {
	seen, _, _ := strings.Cut(s, "\x00")
	return seen
}

// Git's character classes, which contain only ASCII.

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }

func isKeyByte(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' || c == '-' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
