// Matching with *, which stands for any run of characters, blanks and line breaks too.

package permission

import (
	"slices"
	"strings"
)

// unknown stands in a text for what is not known before it runs. Only * matches it.
const unknown = "\x00"

// A pattern is literal parts with a * between each two.
type pattern struct {
	parts []string
	// stem is what stands before a " *" at the end. It matches too, so that "ls *" matches "ls". nil: there is no such end.
	stem []string
}

// newPattern reads a pattern; \* is a star itself.
func newPattern(text string) pattern {
	if !strings.Contains(text, `\*`) {
		return pattern{parts: strings.Split(text, "*")}
	}
	const star = "\x02"
	p := pattern{parts: strings.Split(strings.ReplaceAll(text, `\*`, star), "*")}
	for i, part := range p.parts {
		p.parts[i] = strings.ReplaceAll(part, star, "*")
	}
	return p
}

// newCommandPattern reads the specifier of a Bash rule: runs of blanks count as one, and ":*" at the end is " *".
func newCommandPattern(text string) pattern {
	text = strings.Join(strings.Fields(text), " ")
	if start, ok := strings.CutSuffix(text, ":*"); ok {
		text = start + " *"
	}
	p := newPattern(text)
	if stem, ok := strings.CutSuffix(text, " *"); ok {
		p.stem = newPattern(stem).parts
	}
	return p
}

func (p pattern) wild() bool { return len(p.parts) > 1 }

// matches reports whether the whole text fits.
func (p pattern) matches(text string) bool {
	return fits(p.parts, text) || p.stem != nil && fits(p.stem, text)
}

// matchesAny reports whether one of the texts fits.
func (p pattern) matchesAny(texts []string) bool { return slices.ContainsFunc(texts, p.matches) }

// Like reports whether the whole text fits a pattern with *.
func Like(pattern, text string) bool { return fits(strings.Split(pattern, "*"), text) }

func fits(parts []string, text string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// namedAmong reports whether the words hold those that the pattern begins with, in that order: the program, and what
// must follow it, others in between.
func (p pattern) namedAmong(words []string) bool {
	head := strings.Fields(p.parts[0])
	if len(head) == 0 || len(words) == 0 {
		return false
	}
	open := p.wild() && !strings.HasSuffix(p.parts[0], " ") // the last of them goes on
	for _, word := range words {
		if word == head[0] || open && len(head) == 1 && strings.HasPrefix(word, head[0]) {
			if head = head[1:]; len(head) == 0 {
				return true
			}
		}
	}
	return false
}

// mayMatch reports whether a text with an unknown in it could turn out to match. It looks only at what comes before the first
// unknown and behind the last, so it errs towards true.
func (p pattern) mayMatch(text string) bool {
	known, _, found := strings.Cut(text, unknown)
	if !found {
		return false
	}
	behind, end := text[strings.LastIndex(text, unknown)+len(unknown):], p.parts[len(p.parts)-1]
	if !strings.HasSuffix(behind, end) && !strings.HasSuffix(end, behind) {
		return false
	}
	first := strings.TrimSuffix(p.parts[0], " ")
	if len(known) < len(first) {
		return strings.HasPrefix(first, known)
	}
	return p.wild() && strings.HasPrefix(known, first)
}
