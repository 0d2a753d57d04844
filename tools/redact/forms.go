// One pass over a text, from the left: at each place at which a secret of a known form could be told, it is looked for. What
// is run over again and again, such as one long word in which many tokens seem to begin, is remembered, so that no byte is
// looked at more than a bounded number of times.

package redact

import (
	"slices"
	"strings"
)

// A find is a secret's place in the text.
type find struct {
	start, end int
	kind       string // empty: it is a mark
}

// mark is what stands in its place.
func (f find) mark(text string) string {
	if f.kind == "" {
		return text[f.start:f.end]
	}
	return mark(f.kind)
}

// telling are the bytes at which something could be told: first ones of tokens, signs of assignments, addresses and keys.
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
	text   string
	done   int // nothing before it counts: it is a mark, or has become one
	runs   [allRuns]span
	digits span
}

// A span is a part of the text that was looked at.
type span struct{ start, end int }

// What runs are remembered of, by what they are looked at for.
const (
	tokenRun = iota
	dottedRun
	plainRun
	bearerRun
	jwtRun  // of the first part; those of the others follow
	allRuns = jwtRun + len(jwtLeast)
)

// run returns the end of the run of a class that begins at a place.
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

// digit returns the place of the first digit from a place on, or the text's length.
func (s *scanner) digit(at int) int {
	if d := &s.digits; at < d.start || at > d.end {
		*d = span{at, len(s.text)}
		if next := strings.IndexAny(s.text[at:], "0123456789"); next >= 0 {
			d.end = at + next
		}
	}
	return s.digits.end
}

// forms puts marks in place of secrets. Those that are there stay.
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

// find looks for a secret, or a mark, that shows at a place.
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

// passwordAt finds the password of an address whose host part begins at a place.
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

// inAddress is what may stand between :// and the path. What a shell would expand may not.
var inAddress = classOf("azAZ09", "._~%!&'*+,;=:@-^")

// keyEnd returns the end of the private key whose first line begins at a place; 0: there is none. Its lines are base64, in a
// program's text perhaps with quotes around them, and whatever else stands between the first and the last line, such as
// commands, keeps it from being one.
func keyEnd(text string, at int) int {
	line, _, _ := strings.Cut(text[at:min(len(text), at+80)], "\n")
	label, rest, closed := strings.Cut(strings.TrimPrefix(line, "-----BEGIN "), "-----")
	if !closed || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") || runEnd(label, 0, inLabel) < len(label) {
		return 0
	}
	k := key{text: text, at: at + len(line) - len(rest)}
	for k.line() {
	}
	return k.end
}

var (
	inLabel  = classOf("AZ09", " ")
	base64   = classOf("azAZ09", "+/=")
	inHeader = classOf("azAZ09", ",-./ ()")
)

// A key is read line by line.
type key struct {
	text    string
	at      int
	end     int // behind the latest line that is one of a key; 0: none was
	headers int
}

const (
	leastLine  = 16 // shorter lines could be words
	maxHeaders = 8  // of an encrypted key, or one with comments
)

// line reads one more, and reports that there may be others.
func (k *key) line() bool {
	k.breaks()
	end := runEnd(k.text, k.at, base64)
	line := k.text[k.at:end]
	switch {
	case len(line) >= leastLine:
		k.at, k.end = end, end
		return true
	case k.end == 0:
		return k.header(end)
	case line != "" && len(line)%4 == 0 && strings.ContainsAny(line, "0123456789+/=ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
		k.at, k.end = end, end
	}
	k.last()
	return false
}

// header goes over a line such as "Proc-Type: 4,ENCRYPTED", of which the first word has ended.
func (k *key) header(end int) bool {
	name, _, found := strings.Cut(k.text[end:min(len(k.text), end+leastLine)], ": ")
	k.headers++
	if !found || k.headers > maxHeaders || runEnd(name, 0, inFlag) < len(name) {
		return false
	}
	k.at = runEnd(k.text, end+len(name)+len(": "), inHeader)
	return true
}

// lineBreaks are how the text of a program has them, each of two bytes.
var lineBreaks = []string{`\n`, `\r`, `\"`, "+ ", "+\n"}

// breaks goes over what stands between two lines: line breaks, also as a program's text writes them, and indentation.
func (k *key) breaks() {
	for k.at < len(k.text) {
		switch rest := k.text[k.at:]; {
		case strings.IndexByte(" \t\r\n\"'", rest[0]) >= 0:
			k.at++
		case slices.ContainsFunc(lineBreaks, func(b string) bool { return strings.HasPrefix(rest, b) }):
			k.at += 2
		default:
			return
		}
	}
}

// last takes the closing line in.
func (k *key) last() {
	k.breaks()
	rest, begins := strings.CutPrefix(k.text[k.at:], "-----END ")
	if !begins || k.end == 0 {
		return
	}
	label, _, closed := strings.Cut(rest[:min(len(rest), 60)], "-----")
	if closed && runEnd(label, 0, inLabel) == len(label) {
		k.end = k.at + len("-----END ") + len(label) + len("-----")
	}
}
