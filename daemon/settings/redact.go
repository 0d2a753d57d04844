// What is taken out of logs and of what hooks are told, beside what looks like a secret anyway. A workspace has no say in
// it: with a pattern that matches everything it could hide from hooks what they are to look at.

package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/toold/toold/scheduler/permission"
)

// A Redaction is a pattern of what is to be taken out.
type Redaction struct {
	Pattern *regexp.Regexp
	Origin  permission.Origin
}

const (
	keyRedact      = "redact"
	keyRedactHooks = "redactHooks"
	noRedactions   = "a workspace could hide from hooks what they are to look at"
	maxPattern     = 1000 // bytes
)

func (r *reader) redactions(m member) {
	if r.place.level == workspace {
		r.idle(m.line, m.key, noRedactions)
		return
	}
	for _, t := range r.texts(&m.value, m.key) {
		if len(t.word) > maxPattern {
			r.wrong(&t, "an entry of "+m.key, fmt.Sprintf("at most %d bytes long", maxPattern))
			continue
		}
		pattern, err := regexp.Compile(t.word)
		switch {
		case err != nil:
			r.warn(t.line, "an entry of %s is %s, which is no regular expression (%v); it has no effect", m.key, &t, err)
		case pattern.MatchString(""):
			r.wrong(&t, "an entry of "+m.key, "a pattern that does not match the empty text")
		default:
			r.facts.redactions = append(r.facts.redactions, Redaction{pattern, r.origin(t.line)})
		}
	}
}

func (r *reader) redactHooks(m member) {
	if r.place.level == workspace {
		r.idle(m.line, m.key, noRedactions)
		return
	}
	r.facts.redactHooks = r.flag(&m.value, m.key)
}

func (m *merger) redactions() {
	for _, s := range m.sources {
		for _, said := range s.facts.redactions {
			same := func(r Redaction) bool { return r.Pattern.String() == said.Pattern.String() }
			if !slices.ContainsFunc(m.out.Redactions, same) {
				m.out.Redactions = append(m.out.Redactions, said)
			}
		}
	}
	for _, r := range m.out.Redactions {
		m.out.flags = append(m.out.flags, Line{keyRedact, r.Pattern.String(), r.Origin})
	}
	if said := m.highest(func(f *facts) *flag { return f.redactHooks }); said != nil {
		m.out.HooksToldAll = !said.on
		m.out.flags = append(m.out.flags, Line{keyRedactHooks, strconv.FormatBool(said.on), said.origin})
	}
}

// Patterns gives those of the redactions, and those of them that are the administrator's.
func (s *Settings) Patterns() (all, managed []*regexp.Regexp) {
	for _, r := range s.Redactions {
		all = append(all, r.Pattern)
		if r.Origin.Managed {
			managed = append(managed, r.Pattern)
		}
	}
	return all, managed
}
