package repo

import (
	"bytes"
	"fmt"
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
	p := configParser{data: bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\r\n"), newline)}
	for {
		c, wrong := p.next(), ""
		switch {
		case p.at > len(p.data):
			return p.settings, nil
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
			return nil, fmt.Errorf("line %d: bad %s", bytes.Count(p.data[:min(p.at-1, len(p.data))], newline)+1, wrong)
		}
	}
}

var newline = []byte{'\n'}

// A configParser parses a configuration file, byte by byte. It has no other line ends than '\n'.
type configParser struct {
	data     []byte
	at       int    // the number of bytes read, the end of the file included
	section  string // the beginning of a setting's key, with its final dot
	settings []Setting
}

// next returns the next byte. The end of the file is the end of a line too.
func (p *configParser) next() byte {
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
	key := []byte{lower(first)}
	c := p.next()
	for ; isKeyByte(c); c = p.next() {
		key = append(key, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	value, ok := "", c == '\n'
	if c == '=' {
		value, ok = p.value()
	}
	s := Setting{Key: cString(p.section + string(key)), Value: cString(value), Implicit: c == '\n'}
	p.settings = append(p.settings, s)
	return ok
}

// value parses a value up to the end of its last line, and reports whether git accepts it.
func (p *configParser) value() (string, bool) {
	var value []byte
	quoted, kept := false, 0 // kept counts the bytes before the white space that may turn out to be the end
	for {
		c := p.next()
		switch {
		case c == '\n':
			return string(value[:kept]), !quoted
		case isSpace(c) && !quoted:
			if len(value) > 0 {
				value = append(value, c)
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			p.skipLine()
			return string(value[:kept]), true
		case c == '"':
			quoted = !quoted
		case c != '\\':
			value = append(value, c)
		default:
			written := strings.IndexByte("\ntbn\\\"", p.next())
			if written < 0 {
				return "", false
			}
			value = append(value, []string{"", "\t", "\b", "\n", "\\", "\""}[written]...)
		}
		kept = len(value)
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
