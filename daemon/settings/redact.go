package settings

import (
	"fmt"
	"regexp"

	"github.com/toold/toold/scheduler/permission"
)

// A Redaction is a pattern of what is to be taken out.
type Redaction struct {
	Pattern *regexp.Regexp
	Origin  permission.Origin
}

const maxPattern = 1000 // bytes

// redactions is a list of regular expressions. A workspace has none: with a pattern that matches everything it could hide from
// hooks what they are to look at.
func redactions(field *[]Redaction) entries[Redaction] {
	return entries[Redaction]{
		expected: listOfTexts, field: field,
		parse: each(func(word string, origin permission.Origin) (Redaction, string) {
			if len(word) > maxPattern {
				return Redaction{}, fmt.Sprintf("at most %d bytes long", maxPattern)
			}
			pattern, err := regexp.Compile(word)
			switch {
			case err != nil:
				return Redaction{}, fmt.Sprintf("a regular expression (%v)", err)
			case pattern.MatchString(""):
				return Redaction{}, "a pattern that does not match the empty text"
			}
			return Redaction{pattern, origin}, ""
		}),
		identity: func(r *Redaction) string { return r.Pattern.String() },
		line:     func(k *key, r *Redaction) Line { return Line{k.name, r.Pattern.String(), r.Origin} },
	}
}

// Patterns returns those of the redactions, and those of them that are the administrator's.
func (s *Settings) Patterns() (all, managed []*regexp.Regexp) {
	for _, r := range s.Redactions {
		all = append(all, r.Pattern)
		if r.Origin.Managed {
			managed = append(managed, r.Pattern)
		}
	}
	return all, managed
}
