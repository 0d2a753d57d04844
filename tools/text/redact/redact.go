// Package redact replaces what looks like a secret by marks: tokens of well-known forms, private keys,
// passwords in addresses and assignments, and values that the caller knows to be secret. Everything
// else stays, byte for byte: a secret without a known form or name is not found. The package does not
// know where texts come from, nor who would read them.
package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// LeastValue is the length in bytes of the shortest value that New uses: a shorter one occurs in too
// many places by chance.
const LeastValue = 8

// The kinds that have no form of their own.
const (
	kindValue         = "value"         // one that the caller has named
	kindPattern       = "pattern"       // what one of the caller's patterns has matched
	kindPassword      = "password"      // of an address
	kindCredential    = "credential"    // the value of a name that says so
	kindAuthorization = "authorization" // of a header
	kindPrivateKey    = "private key"
	kindJWT           = "jwt"
)

// A mark stands in place of a secret, as opening, kind and closing: [redacted: jwt].
const (
	opening = "[redacted: "
	closing = "]"
)

func mark(kind string) string { return opening + kind + closing }

// A Redactor finds secrets. A nil Redactor finds only those of known forms. It is safe for concurrent
// use.
type Redactor struct {
	values   *strings.Replacer // nil: none
	patterns []*regexp.Regexp
}

// New returns a redactor that also finds secret values, and what the caller's patterns match unless
// it is empty. Values that are shorter than LeastValue, or not valid UTF-8, are ignored.
func New(values []string, patterns []*regexp.Regexp) *Redactor {
	r := &Redactor{patterns: patterns}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < LeastValue || !utf8.ValidString(v) })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // the longest that fits is what was meant
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, mark(kindValue))
	}
	if len(pairs) > 0 {
		r.values = strings.NewReplacer(pairs...)
	}
	return r
}

// Text is Text of the nil Redactor.
func Text(text string) string { return (*Redactor)(nil).Text(text) }

// Text returns the text with marks in place of secrets, in time proportional to its length. Existing
// marks stay, so a second time changes nothing, unless a pattern looks at what surrounds its match.
// Valid UTF-8 stays valid.
func (r *Redactor) Text(text string) string {
	if r != nil && r.values != nil {
		text = between(text, r.values.Replace)
	}
	if r != nil {
		for _, p := range r.patterns {
			text = between(text, func(piece string) string { return matched(p, piece) })
		}
	}
	return forms(text)
}

// Bytes is Text for bytes. It may return text itself, so the caller must not modify the result.
func (r *Redactor) Bytes(text []byte) []byte {
	before := string(text)
	if after := r.Text(before); after != before {
		return []byte(after)
	}
	return text
}

// Named returns the redacted value of a name, such as that of a member of a JSON object: only a mark
// if the name is a credential's and the value looks like one, otherwise its Text.
func (r *Redactor) Named(name, value string) string {
	if _, is := markAt(value, 0); !is && plausible(value) && credentialName(name) != notCredential {
		return mark(kindCredential)
	}
	return r.Text(value)
}

// Marked reports whether a text has a mark.
func Marked(text string) bool {
	_, found := nextMark(text, 0)
	return found
}

// matched replaces what a pattern matches, unless it is empty, by marks.
func matched(p *regexp.Regexp, text string) string {
	return p.ReplaceAllStringFunc(text, func(match string) string {
		if match == "" {
			return ""
		}
		return mark(kindPattern)
	})
}

// between applies f to the parts of text between marks.
func between(text string, f func(string) string) string {
	at, found := nextMark(text, 0)
	if !found {
		return f(text)
	}
	var out strings.Builder
	done := 0
	for found {
		end, _ := markAt(text, at)
		out.WriteString(f(text[done:at]) + text[at:end])
		done = end
		at, found = nextMark(text, end)
	}
	return out.String() + f(text[done:])
}

// nextMark finds the first mark from a position on.
func nextMark(text string, from int) (at int, found bool) {
	for {
		next := strings.Index(text[from:], opening)
		if next < 0 {
			return 0, false
		}
		from += next
		if _, is := markAt(text, from); is {
			return from, true
		}
		from += len(opening)
	}
}

// longestKind limits the search for the end of a mark.
const longestKind = 20

// markAt reports whether a mark begins at a position, and where it ends.
func markAt(text string, at int) (end int, is bool) {
	rest, begins := strings.CutPrefix(text[at:], opening)
	if !begins {
		return 0, false
	}
	kind, _, ends := strings.Cut(rest[:min(len(rest), longestKind+len(closing))], closing)
	return at + len(opening) + len(kind) + len(closing), ends && slices.Contains(kinds, kind)
}

// kinds are all kinds of marks.
var kinds = func() []string {
	all := []string{kindValue, kindPattern, kindPassword, kindCredential, kindAuthorization, kindPrivateKey, kindJWT}
	for _, t := range tokenForms {
		all = append(all, t.kind)
	}
	return slices.Compact(all)
}()
