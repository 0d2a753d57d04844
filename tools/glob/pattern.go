// Patterns, and matching of paths one name at a time.

package glob

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/walk"
)

// A pattern is a list of alternatives, each a list of segments between slashes, all relative to one
// directory.
type pattern struct {
	alternatives [][]segment
	classes      bool // it has a "[...]", which may be meant as part of a file name
}

// A segment matches one name, or with deep any number of them.
type segment struct {
	glob   string
	deep   bool
	dotted bool   // it begins with a plain dot, so it names hidden files
	plain  string // the literal name; empty: it has wildcards
}

const (
	maxPattern  = 4096 // bytes; no path is longer
	maxSegments = 63   // so that a set of positions fits into 64 bits; paths are seldom deeper
)

// bad returns the error for a pattern. at is the byte of the mistake; messages count characters
// from 1.
func bad(text string, at int, problem string) error {
	position := utf8.RuneCountInString(text[:at]) + 1
	return fault.Invalidf("bad_pattern", "The pattern %q is invalid at character %d: %s", text, position, problem).
		At("/pattern").With(BadPattern{Position: position})
}

// BadPattern are the details of "bad_pattern".
type BadPattern struct {
	Position int `json:"position"` // of the mistake, in characters, from 1
}

// parsePattern parses relative, which is all of text or the end of it. Errors refer to text.
func parsePattern(text, relative string) (pattern, error) {
	if err := check(text); err != nil {
		return pattern{}, err
	}
	expanded, ok := walk.Braces(relative)
	if !ok {
		return pattern{}, bad(text, strings.IndexByte(text, '{'), fmt.Sprintf("its braces stand for more than %d patterns. Search in several calls.", walk.MaxBraces))
	}
	var p pattern
	for _, one := range expanded {
		segments, err := split(text, one)
		if err != nil {
			return pattern{}, err
		}
		p.alternatives = append(p.alternatives, segments)
	}
	p.classes = strings.Contains(text, "[")
	return p, nil
}

// check finds the first mistake.
func check(text string) error {
	if text == "" {
		return bad(text, 0, "it is empty. Use a pattern such as **/*.go.")
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return bad(text, 0, "it is not text, or holds a NUL byte, which no file name can.")
	}
	if len(text) > maxPattern {
		return bad(text[:maxPattern], 0, fmt.Sprintf("it is longer than %d bytes. Set path to the directory.", maxPattern))
	}
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) {
				return bad(text, i-1, `the backslash at the end escapes nothing. Write \\ for a backslash.`)
			}
			if text[i] == '/' {
				return bad(text, i-1, `a slash cannot be escaped, since no name holds one. Remove the backslash.`)
			}
		case '[':
			end, problem := classEnd(text, i)
			if problem != "" {
				return bad(text, i, problem)
			}
			i = end
		case '{':
			open = append(open, i)
		case '}':
			if len(open) == 0 {
				return bad(text, i, `this } closes nothing. Write \} for the character itself.`)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return bad(text, open[len(open)-1], `this { is never closed. Write \{ for the character itself.`)
	}
	return nil
}

// classEnd returns the index of the "]" that closes the class at text[i], or what is wrong with the
// class.
func classEnd(text string, i int) (int, string) {
	j := i + 1
	if j < len(text) && (text[j] == '^' || text[j] == '!') {
		j++
	}
	if j < len(text) && text[j] == ']' {
		return 0, `this [ begins an empty set. Write \[ for the character itself.`
	}
	for ; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case '/':
			return 0, `this [ is not closed before the next slash, and a set cannot hold one. Write \[ for the character itself.`
		case ']':
			return j, ""
		}
	}
	return 0, `this [ is never closed. Write \[ for the character itself.`
}

// split splits one alternative into segments. whole is the pattern as it was sent, for errors.
func split(whole, one string) ([]segment, error) {
	var segments []segment
	for name := range strings.SplitSeq(one, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			return nil, bad(whole, max(0, strings.Index(whole, "..")), `".." cannot be followed in a pattern. Set path to the directory.`)
		}
		if !doublestar.ValidatePattern(name) {
			return nil, bad(whole, 0, fmt.Sprintf("the part %q, which results from its braces, is invalid.", name))
		}
		if name != "**" {
			name = oneStar(name)
		}
		s := segment{glob: name, deep: name == "**", dotted: name[0] == '.' || strings.HasPrefix(name, `\.`)}
		if plain, ok := spelled(name); ok {
			s.plain = plain
		}
		if n := len(segments); s.deep && n > 0 && segments[n-1].deep {
			continue
		}
		segments = append(segments, s)
	}
	if n := len(segments); n == 0 || strings.HasSuffix(one, "/") {
		return nil, nil // names directories, which are not listed
	} else if segments[n-1].deep {
		segments = append(segments, segment{glob: "*"})
	}
	if len(segments) > maxSegments {
		return nil, bad(whole, 0, fmt.Sprintf("it has more than %d parts between slashes. Set path to the directory.", maxSegments))
	}
	return segments, nil
}

// stars finds several stars in a name, and what is escaped.
var stars = regexp.MustCompile(`(?s)\\.|\*\*+`)

// oneStar replaces several stars by one, which means the same in a name; the library requires
// something after three.
func oneStar(name string) string {
	return stars.ReplaceAllStringFunc(name, func(found string) string {
		if found[0] == '*' {
			return "*"
		}
		return found
	})
}

// spelled returns the name that a segment without wildcards stands for.
func spelled(name string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			i++
		}
		b.WriteByte(name[i])
	}
	return b.String(), true
}

// takes reports whether the segment matches name. With courtesy, names that are left out by default
// need a segment that names them.
func (s *segment) takes(name string, by courtesy) bool {
	if by == polite && special(name) && !s.names(name) {
		return false
	}
	return s.deep || doublestar.MatchUnvalidated(s.glob, name)
}

// special reports whether name is left out unless it is named.
func special(name string) bool { return name[0] == '.' || name == "node_modules" }

// names reports whether the segment names the special name: .git and node_modules in full, another
// by its dot.
func (s *segment) names(name string) bool {
	if name == ".git" || name == "node_modules" {
		return s.plain == name
	}
	return s.dotted
}

// courtesy is whether special names are left out.
type courtesy uint8

const (
	blunt courtesy = iota
	polite
)

// positions is a set of indexes into the segments of one alternative: what may come next.
type positions uint64

// follow reports whether fits accepts, for one of the alternatives, the positions in its n segments
// after the names of a path.
func (p pattern) follow(names []string, by courtesy, fits func(at positions, n int) bool) bool {
	return slices.ContainsFunc(p.alternatives, func(segments []segment) bool {
		here := reach(segments, 1)
		for _, name := range names {
			here = step(segments, here, name, by)
		}
		return fits(here, len(segments))
	})
}

// reach adds the positions that follow if a "**" matches no name.
func reach(segments []segment, here positions) positions {
	for i := range segments {
		if here&(1<<i) != 0 && segments[i].deep {
			here |= 1 << (i + 1)
		}
	}
	return here
}

func step(segments []segment, here positions, name string, by courtesy) positions {
	var next positions
	for i := range segments {
		if s := &segments[i]; here&(1<<i) != 0 && s.takes(name, by) {
			if s.deep {
				next |= 1 << i
			} else {
				next |= 1 << (i + 1)
			}
		}
	}
	return reach(segments, next)
}

// matches reports whether the pattern matches the file names.
func (p pattern) matches(names []string, by courtesy) bool {
	return p.follow(names, by, func(at positions, n int) bool { return n > 0 && at&(1<<n) != 0 })
}

// leads reports whether the pattern may match files below the directory names.
func (p pattern) leads(names []string, by courtesy) bool {
	return p.follow(names, by, func(at positions, n int) bool { return at&(1<<n-1) != 0 })
}

// spells reports whether the pattern has name as a literal segment.
func (p pattern) spells(name string) bool {
	return slices.ContainsFunc(p.alternatives, func(segments []segment) bool {
		return slices.ContainsFunc(segments, func(s segment) bool { return s.plain == name })
	})
}
