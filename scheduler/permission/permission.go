// Package permission decides whether a call may run. It is pure: what a call would touch comes in as Facts, a Verdict
// goes out. It does not know how the facts were found, nor how a question is asked.
//
// A call is the sum of what it would do, and each part of that needs permission: by a rule, by a hook, by the mode, or
// because reading there is free. A rule that denies or asks needs to meet one part; what allows has to cover all.
package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Mode decides about calls that would have to ask.
type Mode uint8

// The modes, as settings files and the wire name them.
const (
	Default           Mode = iota // they ask
	AcceptEdits                   // edits inside the roots are allowed, the rest asks
	Plan                          // whatever is not read-only is denied, also what a rule allows
	DontAsk                       // they are denied
	BypassPermissions             // they are allowed, except where an ask rule or a critical command asks
)

// String returns the mode's name in settings files.
func (m Mode) String() string {
	return [...]string{"default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"}[m]
}

// A Level is how much a call could do, for the user.
type Level uint8

// The levels.
const (
	Safe      Level = iota + 1 // read-only
	Confirm                    // writes inside the roots
	Dangerous                  // runs programs or reaches outside
	Forbidden                  // a deny rule is about it
)

// A Decision is what a verdict comes to.
type Decision uint8

// The decisions, from the mildest. The join of several is the strictest.
const (
	Allow Decision = iota
	Ask
	Deny
)

// String returns the decision as settings and hooks write it.
func (d Decision) String() string { return [...]string{"allow", "ask", "deny"}[d] }

// A Verdict is a decision with what it rests on.
type Verdict struct {
	Decision  Decision
	Level     Level
	Text      string   // the sentence about the mode, if that decided, and then those of the reasons
	Sentences []string // the same, sentence by sentence
	Reasons   []Reason // the first weighs most; at least one
	ByMode    bool     // the mode has turned something else into this
	Way       string   // what would let the call run, as a sentence; empty: it may
	// Free is set when what asks is only that nothing allows the call, so that a rule could.
	Free   bool
	before Decision // if ByMode: what it was
}

// A Policy is what calls are judged by.
type Policy struct {
	Rules  *Rules
	Mode   Mode
	Escape Escape
}

// Decide joins the facts with rules and mode. A deny decides; else what has a reason to ask asks; else what is covered
// in all its parts is allowed; else it asks. Then the mode turns "ask" into what the user wants of it.
func Decide(f *Facts, p Policy) Verdict {
	c := read(f)
	v := decide(&c, p)
	v.Way = v.way(&c)
	return v
}

func decide(c *call, p Policy) Verdict {
	f := c.Facts
	v := Verdict{Level: level(f)}
	denying, doubtful := p.Rules.meeting(DenyList, c)
	if denying = append(append(denying, opinions(f, Deny)...), p.Escape.denied(f)...); len(denying) > 0 {
		v.Level = Forbidden
		return v.on(Deny, denying)
	}
	if asking := reasonsToAsk(c, p.Rules, doubtful); len(asking) > 0 {
		return v.on(Ask, asking).under(f, p.Mode)
	}
	missing, allowing := uncovered(c, p)
	if len(missing) > 0 {
		allowing = opinions(f, Allow)
		if !slices.ContainsFunc(missing, Reason.reach) {
			allowing = append(allowing, p.Escape.confined(f)...)
		}
	}
	if len(allowing) == 0 {
		v = v.on(Ask, missing)
		v.Free = true
		return v.under(f, p.Mode)
	}
	v = v.on(Allow, allowing)
	if p.Mode == Plan && !f.readOnly() {
		return v.byMode(Deny, p.Mode)
	}
	return v
}

// Asking returns the verdict to ask for one reason.
func Asking(l Level, why Reason) Verdict { return Verdict{Level: l}.on(Ask, []Reason{why}) }

// Firm reports whether the verdict rests on something that nothing but an answer passes: an ask rule, a critical command, or a
// rule of which only the run would show whether it is met.
func (v Verdict) Firm() bool { return slices.ContainsFunc(v.Reasons, Reason.firm) }

// on returns what the verdict is and what it rests on.
func (v Verdict) on(d Decision, grounds []Reason) Verdict {
	texts := make([]string, 0, len(grounds))
	for _, g := range grounds {
		if text := g.String(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	v.Decision, v.Reasons = d, grounds
	return v.withSentences(texts)
}

// under is what the mode makes of an "ask".
func (v Verdict) under(f *Facts, m Mode) Verdict {
	switch {
	case m == DontAsk, m == Plan && !f.readOnly():
		return v.byMode(Deny, m)
	case m == BypassPermissions && !v.Firm():
		return v.byMode(Allow, m)
	}
	return v
}

func (v Verdict) byMode(d Decision, m Mode) Verdict {
	verb := "allows"
	if d == Deny {
		verb = "does not allow"
	}
	v.before, v.Decision, v.ByMode, v.Free = v.Decision, d, true, v.Free && m == DontAsk
	return v.withSentences(slices.Insert(v.Sentences, 0, fmt.Sprintf("The permission mode %s %s this call.", m, verb)))
}

func (v Verdict) withSentences(sentences []string) Verdict {
	v.Sentences, v.Text = sentences, strings.Join(sentences, " ")
	return v
}

// meeting returns the reasons of all rules of a list that meet the call, and of those that may meet it, which only the run
// would show.
func (r *Rules) meeting(which List, c *call) (found, doubtful []Reason) {
	rules := r.list(which)
	for i := range rules {
		switch g := rules[i].fires(c); g.Code {
		case ByRuleDoubtful:
			doubtful = append(doubtful, g)
		case ByRule:
			found = append(found, g)
		}
	}
	return found, doubtful
}

// opinions returns the reasons of the hooks that decide d.
func opinions(f *Facts, d Decision) (found []Reason) {
	for i := range f.Opinions {
		if o := &f.Opinions[i]; o.Decision == d {
			found = append(found, Reason{Code: ByHook, Hook: &o.Origin, Detail: strings.TrimSuffix(o.Reason, "."), decision: d})
		}
	}
	return found
}

// reasonsToAsk returns what asks although something may allow the call. denying are the deny rules that may be about it.
func reasonsToAsk(c *call, rules *Rules, denying []Reason) (found []Reason) {
	if c.Critical != "" {
		found = append(found, Reason{Code: IsCritical, Detail: c.Critical})
	}
	if c.Unknown.Unread || c.Unknown.Cause != "" && rules.forbid("", commands) {
		found = append(found, Reason{Code: Unseen, Detail: c.Unknown.Cause})
	}
	if c.overlooked {
		found = append(found, Reason{Code: TooManyPaths})
	}
	if c.Unconfined {
		found = append(found, Reason{Code: Unsandboxed})
	}
	found = append(found, c.leaving()...)
	asking, doubtful := rules.meeting(AskList, c)
	found = slices.Concat(found, asking, denying, doubtful, opinions(c.Facts, Ask))
	for _, a := range c.Accesses {
		if a.Below != "" {
			found = append(found, Reason{Code: RuleBelow, Detail: a.Below, Part: a.Part})
		}
	}
	found = append(found, c.tampering(cmp.Or(rules, noRules).guarded)...)
	if c.Check != "" {
		found = append(found, Reason{Code: ToolAsks, Detail: c.Check})
	}
	return found
}

// level is how far the call reaches, by what it declares.
func level(f *Facts) Level {
	found := Safe
	if f.Check != "" || f.remembers() {
		found = Confirm
	}
	for _, a := range f.Accesses {
		switch {
		case !a.Inside:
			found = Dangerous
		case a.Write:
			found = max(found, Confirm)
		}
	}
	if f.Critical != "" || f.Opaque && !onlyEdits(f) || f.Unconfined || f.External != "" || len(f.Hosts) > 0 {
		found = Dangerous
	}
	return found
}

// onlyEdits reports whether all a script does is to edit literal paths inside the roots.
func onlyEdits(f *Facts) bool {
	for i := range f.Commands {
		if c := &f.Commands[i]; !c.ReadOnly && !c.Transparent && !edits(f, i) {
			return false
		}
	}
	return len(f.Commands) > 0 && f.Unknown.Cause == ""
}
