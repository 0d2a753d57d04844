// One rule as a settings file has it, with the place where it stands. Its grammar is in parse.go; what it matches is in
// rules.go, command.go, path.go and host.go.

package permission

import (
	"fmt"
	"slices"
	"strings"
)

// An Origin is where a rule or another setting stands.
type Origin struct {
	File    string // absolute path, or another name of the place for the user
	Line    int    // from 1; 0: not known
	Base    string // the directory that a leading / in a path rule stands for
	Managed bool   // the administrator's, not the user's
}

// String returns file and line as editors take them.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// A List is one of the three lists that rules stand in.
type List uint8

// The lists, in the order in which they are asked: the first that has a match decides.
const (
	DenyList List = iota
	AskList
	AllowList
)

// String returns the list's name in settings files.
func (l List) String() string { return [...]string{"deny", "ask", "allow"}[l] }

// A Rule is one entry of a list, as ParseRule returns it.
type Rule struct {
	List   List
	Text   string // as written, blanks around it taken off
	Origin Origin

	tool      string // may hold *
	specifier string // what stands in the parentheses; empty: nothing, or *
	subject   subject
	pattern   pattern // of a command
	parameter string  // of the input
	value     pattern // of the parameter
	host      string
}

// String names the rule with its place, for messages.
func (r Rule) String() string {
	return fmt.Sprintf("the %s rule %s (%s)", r.List, r.Text, r.Origin)
}

// is reports whether two rules are the same entry of a settings file.
func (r *Rule) is(o *Rule) bool { return r.Text == o.Text && r.Origin == o.Origin }

// Tool returns the name of the tool that the rule is about, or its pattern.
func (r Rule) Tool() string { return r.tool }

// IsUnknownTool reports whether the rule is about a tool that does not exist: it is not among those offered, may not come later,
// and is not another program's. Names with * or _ may be anything.
func (r Rule) IsUnknownTool(offered []string) bool {
	return !strings.ContainsAny(r.tool, "*_") && !slices.Contains(offered, r.tool) && !slices.Contains(wellKnown, r.tool) &&
		!slices.Contains(otherTools, r.tool)
}

// A RuleError is a rule that can never match, with the reason.
type RuleError struct {
	Rule   string
	Origin Origin
	Why    string // a clause
	Meant  string // the rule that was probably meant; empty: unknown
}

// Error returns what is wrong with the rule, its place, and what was probably meant.
func (e *RuleError) Error() string { return e.Origin.String() + ": " + e.Clause() }

// Clause returns what is wrong with the rule and what was probably meant.
func (e *RuleError) Clause() string {
	text := fmt.Sprintf("the rule %q has no effect: %s", e.Rule, e.Why)
	if e.Meant != "" {
		text += fmt.Sprintf("; %s is probably meant", e.Meant)
	}
	return text
}

// ParseRule takes a rule apart. The error is a *RuleError: nothing can ever match it in this list.
func ParseRule(list List, text string, origin Origin) (Rule, error) {
	r := Rule{List: list, Text: strings.TrimSpace(text), Origin: origin}
	if why, meant := r.parse(); why != "" {
		return Rule{}, &RuleError{Rule: r.Text, Origin: origin, Why: why, Meant: meant}
	}
	return r, nil
}
