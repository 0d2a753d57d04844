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
	literal      bool // it has a segment without wildcards
}

// A segment matches one name, or with deep any number of them.
type segment struct {
	glob   string
	deep   bool
	dotted bool   // it begins with a plain dot, so it names hidden files
	plain  string // the literal name; empty: it has wildcards
	// Most wildcards are one star: before and after are the literal texts around it.
	oneStar       bool
	before, after string
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
		p.literal = p.literal || slices.ContainsFunc(segments, func(s segment) bool { return s.plain != "" })
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
			name = joinStars(name)
		}
		s := segment{glob: name, deep: name == "**", dotted: name[0] == '.' || strings.HasPrefix(name, `\.`)}
		if plain, ok := spelled(name); ok {
			s.plain = plain
		}
		s.before, s.after, s.oneStar = aroundStar(name)
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

// joinStars replaces several stars by one, which means the same in a name; the library requires
// something after three.
func joinStars(name string) string {
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

// aroundStar returns the literal texts around the star of a segment that has no other wildcard.
func aroundStar(name string) (before, after string, ok bool) {
	before, after, ok = strings.Cut(name, "*")
	return before, after, ok && !strings.ContainsAny(before+after, `*?[\\`)
}

// takes reports whether the segment matches name. With courtesy, names that are left out by default
// need a segment that names them.
func (s *segment) takes(name string, by courtesy) bool {
	if by == polite && special(name) && !s.names(name) {
		return false
	}
	switch {
	case s.deep:
		return true
	case s.plain != "":
		return s.plain == name
	case s.oneStar:
		return len(name) >= len(s.before)+len(s.after) && strings.HasPrefix(name, s.before) && strings.HasSuffix(name, s.after)
	default:
		return doublestar.MatchUnvalidated(s.glob, name)
	}
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

// after returns the positions of each alternative behind the names of a directory.
func (p pattern) after(names []string, by courtesy) []positions {
	at := make([]positions, len(p.alternatives))
	for i, segments := range p.alternatives {
		at[i] = reach(segments, 1)
		for _, name := range names {
			at[i] = step(segments, at[i], name, by)
		}
	}
	return at
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

// matches reports whether the pattern matches the file name in a directory. at are the positions
// after it.
func (p pattern) matches(at []positions, name string, by courtesy) bool {
	for i, segments := range p.alternatives {
		last := len(segments) - 1
		if last >= 0 && at[i]&(1<<last) != 0 && segments[last].takes(name, by) {
			return true
		}
	}
	return false
}

// leads reports whether the pattern may match files below the directory name in a directory. at are
// the positions after that.
func (p pattern) leads(at []positions, name string, by courtesy) bool {
	for i, segments := range p.alternatives {
		if step(segments, at[i], name, by)&(1<<len(segments)-1) != 0 {
			return true
		}
	}
	return false
}

// splitDir returns the names of a directory's path, which ends with a slash; empty: none.
func splitDir(dir string) []string {
	if dir == "" {
		return nil
	}
	return strings.Split(dir[:len(dir)-1], "/")
}

// spells reports whether the pattern has name as a literal segment.
func (p pattern) spells(name string) bool {
	return p.literal && slices.ContainsFunc(p.alternatives, func(segments []segment) bool {
		return slices.ContainsFunc(segments, func(s segment) bool { return s.plain == name })
	})
}
