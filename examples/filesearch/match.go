// Matches and replaces in one text.

package main

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// A matcher is a pattern with what is to stand in the place of its matches.
type matcher struct {
	pattern     *regexp.Regexp
	replacement *string // nil: nothing is replaced
	multiline   bool
}

// A document is one text with its matches.
type document struct {
	before, after string
	matches       int
	lines         []int // where the first matches begin, from 1
}

// mostLines is how many matches of one file are shown.
const mostLines = 100

func newMatcher(in Input) (*matcher, error) {
	flags := ""
	if in.Multiline {
		flags = "(?ms)"
	}
	pattern, err := regexp.Compile(flags + in.Pattern)
	if err != nil {
		return nil, fault.Invalidf("bad_pattern", "The pattern %q does not parse: %v. It is RE2 syntax; write \\( or \\{ for such characters themselves.", in.Pattern, err).At("/pattern")
	}
	return &matcher{pattern, in.ReplaceWith, in.Multiline}, nil
}

// read takes the content of a file apart. What is no UTF-8 text cannot be replaced in without touching other bytes, so
// it is a fault.
func (m *matcher) read(name string, raw []byte) (document, error) {
	if strings.ContainsRune(string(raw[:min(len(raw), text.Sample)]), 0) || !utf8.Valid(raw) {
		return document{}, fault.Failedf("binary_file", "%s is no UTF-8 text.", name)
	}
	d := document{before: string(raw)}
	if m.multiline {
		d.after = m.replace(&d, d.before, 0)
		return d, nil
	}
	var after strings.Builder
	at := 0
	for line := range strings.Lines(d.before) {
		body := strings.TrimRight(line, "\r\n")
		after.WriteString(m.replace(&d, body, at))
		after.WriteString(line[len(body):]) // the line break stays as it is
		at += len(line)
	}
	d.after = after.String()
	return d, nil
}

// replace does so in a part of the text that begins at at, and counts.
func (m *matcher) replace(d *document, part string, at int) string {
	found := m.pattern.FindAllStringIndex(part, -1)
	d.matches += len(found)
	for _, match := range found[:min(len(found), max(0, mostLines-len(d.lines)))] {
		d.lines = append(d.lines, text.LineAt(d.before, at+match[0]))
	}
	if m.replacement == nil || len(found) == 0 {
		return part
	}
	return m.pattern.ReplaceAllString(part, *m.replacement)
}
