// An ignore file as a list of its lines, of which the last that matches counts.

package walk

import (
	"bytes"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// Rules are the lines of one ignore file, in the syntax of gitignore. They compare paths relative
// to the directory of the file. The zero value has no lines. Safe for concurrent use.
type Rules struct{ patterns []pattern }

// A Verdict is the decision of an ignore file about a path.
type Verdict uint8

const (
	// Silent: no line matches.
	Silent Verdict = iota
	// Ignored: the last line that matches is a plain one.
	Ignored
	// Kept: the last line that matches begins with "!".
	Kept
)

// ParseRules parses an ignore file. There are no errors: an invalid line matches nothing.
func ParseRules(data []byte) Rules {
	var r Rules
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for raw := range bytes.Lines(data) {
		line := strings.TrimSuffix(string(raw), "\n")
		line = trimBlanks(strings.TrimSuffix(line, "\r"))
		if line != "" && line[0] != '#' {
			r.patterns = append(r.patterns, parsePattern(line))
		}
	}
	return r
}

// GlobRules returns globs as the lines of an ignore file, with their braces expanded. The error is
// a fault bad_pattern.
func GlobRules(globs []string) (Rules, error) {
	var lines []string
	for _, glob := range globs {
		all, ok := Braces(glob)
		if !ok {
			return Rules{}, fault.Invalidf("bad_pattern", "The braces of %q stand for more than %d globs. Use fewer.", glob, MaxBraces)
		}
		for _, line := range all {
			if strings.HasPrefix(line, "#") {
				line = `\` + line
			}
			lines = append(lines, line)
		}
	}
	return ParseRules([]byte(strings.Join(lines, "\n"))), nil
}

// trimBlanks cuts the spaces at the end of a line, but not an escaped one.
func trimBlanks(line string) string {
	kept := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		kept = i + 1
	}
	return line[:min(kept, len(line))]
}

// Match returns the verdict about path, which has slashes and no "." or "..". It ignores the
// parents of path: a walk has already left out ignored directories.
func (r Rules) Match(path string, isDir bool) Verdict {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(r.patterns) - 1; i >= 0; i-- {
		p := &r.patterns[i]
		if p.dirOnly && !isDir || !p.matches(path, name) {
			continue
		}
		if p.negated {
			return Kept
		}
		return Ignored
	}
	return Silent
}

// takeBack reports whether a line begins with "!".
func (r Rules) takeBack() bool {
	return slices.ContainsFunc(r.patterns, func(p pattern) bool { return p.negated })
}

func (r Rules) empty() bool { return len(r.patterns) == 0 }
