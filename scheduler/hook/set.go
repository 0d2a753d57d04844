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
	byEvent map[string][]*Hook
}

// Compile makes a Set of hooks, in their order. An error is a sentence about one hook, with its
// position; the others are in force all the same, and so is a hook with a doubtful program path. If
// a matcher or a rule is invalid, the hook's Block decides: with Block it protects something, and
// runs for everything; without, it never runs.
func Compile(hooks []Hook) (*Set, []error) {
	s := &Set{all: slices.Clone(hooks), byEvent: map[string][]*Hook{}}
	var errs []error
	for i := range s.all {
		h := &s.all[i]
		wrong, runs := h.read()
		if runs {
			s.byEvent[h.Event] = append(s.byEvent[h.Event], h)
		}
		if why := h.adrift(); runs && why != "" && slices.Contains(Events, h.Event) {
			wrong = append(wrong, why)
		}
		for _, why := range wrong {
			errs = append(errs, fmt.Errorf("%s: %s", h.Origin, why))
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

// read parses the hook's matcher and rule. It returns sentences about errors, and whether the hook ever runs.
func (h *Hook) read() (wrong []string, runs bool) {
	instead := "it never runs"
	if h.Block {
		instead = "since it blocks when it fails, it runs without it, for everything"
	}
	var err error
	if h.subjects, err = subjects(h); err != nil {
		wrong = append(wrong, fmt.Sprintf("the matcher %q of the %s hook %s; %s", h.Matcher, h.Event, err, instead))
	}
	if h.If == "" {
		return wrong, h.Block || wrong == nil
	}
	if !slices.Contains(aboutTool, h.Event) {
		return append(wrong, fmt.Sprintf("the %s hook has an \"if\", and %[1]s is not about one call: it never runs", h.Event)), false
	}
	rule, err := permission.ParseRule(permission.AskList, h.If, h.Origin)
	if unusable, ok := errors.AsType[*permission.RuleError](err); ok {
		wrong = append(wrong, fmt.Sprintf("the \"if\" of the %s hook: %s; %s", h.Event, unusable.Clause(), instead))
	} else {
		h.rule = &rule
	}
	return wrong, h.Block || wrong == nil
}

// aboutTool are the events that are about one call of a tool.
var aboutTool = []string{PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest, PermissionDenied}

// For returns the hooks of an event in their order, without duplicates. subject is what matchers
// match: the tool, for Notification its type, for SessionStart the source, for SessionEnd the
// reason. holds reports whether the call matches a rule; it is called for hooks with If, and must
// not be nil if the event is about a tool.
func (s *Set) For(event, subject string, holds func(permission.Rule) bool) (found []*Hook) {
	if s == nil {
		return nil
	}
	for _, h := range s.byEvent[event] {
		at := slices.IndexFunc(found, h.runsLike)
		switch {
		case h.subjects != nil && !h.subjects.MatchString(subject), h.rule != nil && !holds(*h.rule):
		case at < 0:
			found = append(found, h)
		case h.Block:
			found[at] = h
		}
	}
	return found
}

// runsLike reports whether two hooks of one event come to the same. Files often repeat each other. What follows when they
// fail is not part of it: one that blocks stands for one that does not.
func (h *Hook) runsLike(other *Hook) bool {
	return h.Command == other.Command && slices.Equal(h.Args, other.Args) && (h.Args == nil) == (other.Args == nil) &&
		h.URL == other.URL && maps.Equal(h.Headers, other.Headers) && slices.Equal(h.AllowedEnvVars, other.AllowedEnvVars) &&
		h.limit() == other.limit() && h.Broken == other.Broken
}

// subjects returns the expression that a hook's subjects match; nil: all do. The error is a clause about the matcher.
func subjects(h *Hook) (*regexp.Regexp, error) {
	text := strings.TrimSpace(h.Matcher)
	switch {
	case text == "" || text == "*" || h.Event == PostToolBatch || h.Event == CwdChanged:
		return nil, nil // the last two events have no subject with a name
	case !strings.ContainsFunc(text, special): // names
		names := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("|, ", r) })
		if len(names) == 0 {
			return nil, errors.New("holds no name")
		}
		text = "^(?:" + strings.Join(names, "|") + ")$"
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("is not a regular expression (%w)", err)
	}
	return expression, nil
}

// special reports whether a character makes a matcher a regular expression.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-,| ", r)
}
