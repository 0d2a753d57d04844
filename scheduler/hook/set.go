// The hooks of each event. Matchers and rules are parsed once, when hooks are loaded.

package hook

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/toold/toold/scheduler/permission"
)

// A Set is a list of hooks that is ready for use. It is immutable and safe for concurrent use; a
// nil Set is empty.
type Set struct {
	all     []Hook
	byEvent map[string][]entry
}

// An entry is a hook with its parsed matcher and rule.
type entry struct {
	hook *Hook
	on   matcher
	rule *permission.Rule // nil: none
}

// Compile makes a Set of hooks, in their order. An error is a sentence about one hook, with its
// position; the others are in force all the same, and so is a hook with a doubtful program path. If
// a matcher or a rule is invalid, the hook's Block decides: with Block it protects something, and
// runs for everything; without, it never runs.
func Compile(hooks []Hook) (*Set, []error) {
	s := &Set{all: slices.Clone(hooks), byEvent: map[string][]entry{}}
	var errs []error
	for i := range s.all {
		h := &s.all[i]
		e, wrong := read(h)
		if why := h.adrift(); e != nil && why != "" && slices.Contains(Events, h.Event) {
			wrong = append(wrong, why)
		}
		for _, why := range wrong {
			errs = append(errs, fmt.Errorf("%s: %s", h.Origin, why))
		}
		if e != nil {
			s.byEvent[h.Event] = append(s.byEvent[h.Event], *e)
		}
	}
	return s, errs
}

// All returns the hooks of the Set, in their order, including those that never run. They must not
// be modified.
func (s *Set) All() []Hook {
	if s == nil {
		return nil
	}
	return s.all
}

// read parses a hook's matcher and rule, and returns sentences about errors. A nil entry never
// runs.
func read(h *Hook) (e *entry, wrong []string) {
	e = &entry{hook: h}
	usable := true
	var err error
	if e.on, err = newMatcher(h); err != nil {
		e.on, usable = matcher{all: true}, false
		wrong = append(wrong, fmt.Sprintf("the matcher %q of the %s hook %s; %s", h.Matcher, h.Event, err, instead(h)))
	}
	if h.If != "" && !aboutTool(h.Event) {
		return nil, append(wrong, fmt.Sprintf("the %s hook has an \"if\", and %[1]s is not about one call: it never runs", h.Event))
	}
	if h.If != "" {
		rule, err := permission.ParseRule(permission.AskList, h.If, h.Origin)
		if err != nil {
			usable = false
			wrong = append(wrong, fmt.Sprintf("the \"if\" of the %s hook: %s; %s", h.Event, unusable(err), instead(h)))
		} else {
			e.rule = &rule
		}
	}
	if !usable && !h.Block {
		return nil, wrong
	}
	return e, wrong
}

// unusable returns what is wrong with a rule, without its position.
func unusable(err error) string {
	if rule, ok := errors.AsType[*permission.RuleError](err); ok {
		return rule.Clause()
	}
	return err.Error()
}

// instead returns what happens to a hook whose purpose is unknown.
func instead(h *Hook) string {
	if h.Block {
		return "since it blocks when it fails, it runs without it, for everything"
	}
	return "it never runs"
}

// aboutTool reports whether an event is about one call of a tool.
func aboutTool(event string) bool {
	switch event {
	case PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest, PermissionDenied:
		return true
	}
	return false
}

// For returns the hooks of an event in their order, without duplicates. subject is what matchers
// match: the tool, for Notification its type, for SessionStart the source, for SessionEnd the
// reason. holds reports whether the call matches a rule; it is called for hooks with If, and must
// not be nil if the event is about a tool.
func (s *Set) For(event, subject string, holds func(permission.Rule) bool) (found []*Hook) {
	if s == nil {
		return nil
	}
	for _, e := range s.byEvent[event] {
		if !e.on.matches(subject) || e.rule != nil && !holds(*e.rule) {
			continue
		}
		switch at := slices.IndexFunc(found, e.hook.runsLike); {
		case at < 0:
			found = append(found, e.hook)
		case e.hook.Block:
			found[at] = e.hook
		}
	}
	return found
}

// runsLike reports whether two hooks of one event come to the same. Files often repeat each other. What follows when they
// fail is no part of it: one that blocks stands for one that does not.
func (h *Hook) runsLike(other *Hook) bool {
	return h.Command == other.Command && slices.Equal(h.Args, other.Args) && (h.Args == nil) == (other.Args == nil) &&
		h.URL == other.URL && maps.Equal(h.Headers, other.Headers) && slices.Equal(h.AllowedEnvVars, other.AllowedEnvVars) &&
		h.limit() == other.limit() && h.Broken == other.Broken
}

// A matcher says which subjects a hook is for: all, some by name, or those in which an expression is found.
type matcher struct {
	all        bool
	names      []string
	expression *regexp.Regexp
}

// newMatcher parses a hook's matcher. The error is a clause about it.
func newMatcher(h *Hook) (matcher, error) {
	text := strings.TrimSpace(h.Matcher)
	switch {
	case text == "" || text == "*" || h.Event == PostToolBatch || h.Event == CwdChanged:
		return matcher{all: true}, nil // the last two events have no subject with a name
	case !strings.ContainsFunc(text, special):
		names := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("|, ", r) })
		if len(names) == 0 {
			return matcher{}, fmt.Errorf("holds no name")
		}
		return matcher{names: names}, nil
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return matcher{}, fmt.Errorf("is not a regular expression (%w)", err)
	}
	return matcher{expression: expression}, nil
}

// special reports whether a character makes a matcher a regular expression.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-,| ", r)
}

func (m *matcher) matches(subject string) bool {
	return m.all || slices.Contains(m.names, subject) || m.expression != nil && m.expression.MatchString(subject)
}
