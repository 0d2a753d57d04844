// One pass over a text, from the left, that searches for secrets of known forms. What is scanned
// repeatedly, such as one long word in which many tokens seem to begin, is cached, so that each
// byte is examined only a bounded number of times.

package redact

import (
	"slices"
	"strings"
)

// A find is the position of a secret in the text.
type find struct {
	start, end int
	kind       string // empty: it is a mark already
}

// mark returns its replacement.
func (f find) mark(text string) string {
	if f.kind == "" {
		return text[f.start:f.end]
	}
	return mark(f.kind)
}

// telling are the bytes at which a secret can be recognised: first bytes of tokens, signs of
// assignments, addresses and keys.
var telling = func() (c class) {
	for b := range byFirst {
		c[b] = len(byFirst[b]) > 0
	}
	for _, b := range "e=:-[" {
		c[b] = true
	}
	return c
}()

// A scanner goes over a text once.
type scanner struct {
	text string
	done int // nothing before it counts: it is a mark, or has become one
	runs [allRuns]span
}

// A span is an examined part of the text.
type span struct{ start, end int }

// The cached runs.
const (
	tokenRun = iota
	dottedRun
	plainRun
	bearerRun
	digitRun
	jwtRun  // of the first part; those of the others follow
	allRuns = jwtRun + len(jwtLeast)
)

// run returns the end of the run of a class that begins at a position.
func (s *scanner) run(which, at int, of *class) int {
	if of == dotted {
		which = dottedRun
	} else if which == tokenRun && of != dashed {
		return runEnd(s.text, at, of) // no second one begins within it
	}
	if r := &s.runs[which]; at < r.start || at >= r.end {
		*r = span{at, runEnd(s.text, at, of)}
	}
	return s.runs[which].end
}

// digit returns the position of the first digit from a position on, or the text's length.
func (s *scanner) digit(at int) int { return s.run(digitRun, at, noDigit) }

// forms replaces secrets by marks. Existing marks stay.
func forms(text string) string {
	s := scanner{text: text}
	var out strings.Builder
	for at := 0; at < len(text); at++ {
		if c := text[at]; !telling[c] || at > s.done && word[c] && word[text[at-1]] {
			continue
		}
		f, found := s.find(at)
		if !found {
			continue
		}
		out.WriteString(text[s.done:f.start])
		out.WriteString(f.mark(text))
		s.done, at = f.end, f.end-1
	}
	if s.done == 0 {
		return text
	}
	out.WriteString(text[s.done:])
	return out.String()
}

// find searches for a secret, or a mark, that is recognised at a position.
func (s *scanner) find(at int) (find, bool) {
	text := s.text
	switch c := text[at]; {
	case word[c]: // the first of its word
		end, kind := s.token(at)
		return find{at, end, kind}, end > 0
	case c == '[':
		end, is := markAt(text, at)
		return find{at, end, ""}, is
	case c == '-' && strings.HasPrefix(text[at:], "-----BEGIN "):
		end := keyEnd(text, at)
		return find{at, end, kindPrivateKey}, end > 0
	case c == '-':
		return s.flag(at)
	case strings.HasPrefix(text[at:], "://"):
		return passwordAt(text, at+len("://"))
	}
	return s.assigned(at)
}

// passwordAt finds the password of an address whose host part begins at a position.
func passwordAt(text string, at int) (find, bool) {
	end, colon := at, -1
	for end < len(text) && inAddress[text[end]] {
		if text[end] == ':' && colon < 0 {
			colon = end
		}
		end++
	}
	sign := strings.LastIndexByte(text[at:end], '@') + at
	if colon < 0 || sign-colon-1 < 3 || strings.Trim(text[colon+1:sign], "*xX.") == "" {
		return find{}, false
	}
	return find{colon + 1, sign, kindPassword}, true
}

// inAddress is what may stand between :// and the path, without characters that a shell would
// expand.
var inAddress = classOf("azAZ09", "._~%!&'*+,;=:@-^")

var (
	inLabel  = classOf("AZ09", " ")
	base64   = classOf("azAZ09", "+/=")
	inHeader = classOf("azAZ09", ",-./ ()")
)

const (
	leastLine  = 16 // shorter lines could be words
	maxHeaders = 8  // of an encrypted key, or one with comments
)

// keyEnd returns the end of the private key whose first line begins at a position; 0: there is
// none. Its lines are base64, perhaps with quotes around them as in source code, after headers such
// as "Proc-Type: 4,ENCRYPTED". Anything else between the first and the last line, such as a command,
// means that it is not a key.
func keyEnd(text string, at int) (end int) {
	line, _, _ := strings.Cut(text[at:min(len(text), at+80)], "\n")
	label, rest, closed := strings.Cut(strings.TrimPrefix(line, "-----BEGIN "), "-----")
	if !closed || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") || runEnd(label, 0, inLabel) < len(label) {
		return 0
	}
	at += len(line) - len(rest)
	for headers := 0; ; {
		at = breaksEnd(text, at)
		run := runEnd(text, at, base64)
		switch line := text[at:run]; {
		case len(line) >= leastLine:
			at, end = run, run
			continue
		case end == 0:
			name, _, found := strings.Cut(text[run:min(len(text), run+leastLine)], ": ")
			if headers++; !found || headers > maxHeaders || runEnd(name, 0, inFlag) < len(name) {
				return 0
			}
			at = runEnd(text, run+len(name)+len(": "), inHeader)
			continue
		case line != "" && len(line)%4 == 0 && strings.ContainsAny(line, "0123456789+/=ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
			at, end = run, run
		}
		break
	}
	at = breaksEnd(text, at)
	if rest, is := strings.CutPrefix(text[at:], "-----END "); is {
		label, _, closed = strings.Cut(rest[:min(len(rest), 60)], "-----")
		if closed && runEnd(label, 0, inLabel) == len(label) {
			return at + len("-----END ") + len(label) + len("-----")
		}
	}
	return end
}

// lineBreaks are line breaks in source code, each of two bytes.
var lineBreaks = []string{`\n`, `\r`, `\"`, "+ ", "+\n"}

// breaksEnd skips what stands between two lines: line breaks, also in source code, and indentation.
func breaksEnd(text string, at int) int {
	for {
		rest := text[at:]
		switch {
		case rest != "" && strings.IndexByte(" \t\r\n\"'", rest[0]) >= 0:
			at++
		case slices.ContainsFunc(lineBreaks, func(b string) bool { return strings.HasPrefix(rest, b) }):
			at += 2
		default:
			return at
		}
	}
}
