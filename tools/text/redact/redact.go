// Package redact puts marks in place of what looks like a secret: tokens of well-known forms, private keys, passwords in
// addresses and assignments, and values that the caller knows to be secret. It knows texts alone; where they come from and
// who would read them is not known here. What looks like none stays, byte for byte: a secret without a form or a telling
// name is not found.
package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// LeastValue is the length in bytes of the shortest value that New takes: a shorter one stands in too many places by
// chance.
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

// A Redactor finds secrets. Nil is one that knows the forms alone. It is safe for concurrent use.
type Redactor struct {
	values   *strings.Replacer // nil: none
	patterns []*regexp.Regexp
}

// New makes a redactor that knows secret values besides, and patterns of the caller's, of which one that matches the empty
// text does so in vain. Values that are shorter than LeastValue, or not valid UTF-8, are left out.
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

// Text is that of the nil Redactor.
func Text(text string) string { return (*Redactor)(nil).Text(text) }

// Text returns the text with marks in place of secrets, in time proportional to its length. Marks that are there stay, so that
// doing it twice changes nothing more, unless a pattern looks at what surrounds its match. Valid UTF-8 stays valid.
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

// Bytes does the same with bytes. What it returns may be text itself, and is not to be changed.
func (r *Redactor) Bytes(text []byte) []byte {
	before := string(text)
	if after := r.Text(before); after != before {
		return []byte(after)
	}
	return text
}

// Named returns the value that stands under a name, such as that of a JSON object's member: a mark alone where the name is a
// credential's and the value looks like one, else its Text.
func (r *Redactor) Named(name, value string) string {
	if _, is := markAt(value, 0); !is && credentialName(name) != notCredential && plausible(value) {
		return mark(kindCredential)
	}
	return r.Text(value)
}

// Marked reports that a text holds a mark.
func Marked(text string) bool {
	_, found := nextMark(text, 0)
	return found
}

// matched puts marks in place of what a pattern matches and is not empty.
func matched(p *regexp.Regexp, text string) string {
	var out strings.Builder
	done := 0
	for _, at := range p.FindAllStringIndex(text, -1) {
		if at[0] < at[1] {
			out.WriteString(text[done:at[0]] + mark(kindPattern))
			done = at[1]
		}
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// between applies f to what stands between marks.
func between(text string, f func(string) string) string {
	at, found := nextMark(text, 0)
	if !found {
		return f(text)
	}
	var out strings.Builder
	done := 0
	for found {
		end, _ := markAt(text, at)
		out.WriteString(f(text[done:at]))
		out.WriteString(text[at:end])
		done = end
		at, found = nextMark(text, end)
	}
	out.WriteString(f(text[done:]))
	return out.String()
}

// nextMark finds the first mark from a place on.
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

// longestKind bounds how far a mark's end is looked for.
const longestKind = 20

// markAt reports that a mark begins at a place, and where it ends.
func markAt(text string, at int) (end int, is bool) {
	rest, begins := strings.CutPrefix(text[at:], opening)
	if !begins {
		return 0, false
	}
	kind, _, ends := strings.Cut(rest[:min(len(rest), longestKind+len(closing))], closing)
	return at + len(opening) + len(kind) + len(closing), ends && slices.Contains(kinds, kind)
}

// kinds are all that a mark can say.
var kinds = func() []string {
	all := []string{kindValue, kindPattern, kindPassword, kindCredential, kindAuthorization, kindPrivateKey, kindJWT}
	for _, t := range tokens {
		if !slices.Contains(all, t.kind) {
			all = append(all, t.kind)
		}
	}
	return all
}()
