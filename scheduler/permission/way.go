package permission

// What would let a call run that may not, or not unasked: the last sentence of a verdict's text. It derives from what the
// verdict rests on.

import (
	"slices"
	"strings"
)

// way returns that as a sentence; empty: the call may run.
func (v Verdict) way(c *call) string {
	switch {
	case v.Decision == Allow:
		return ""
	case v.ByMode:
		return v.wayOutOfMode(c)
	case v.Decision == Deny:
		return v.wayPastDenial()
	case v.Free:
		return "An answer would allow it; so would " + v.besides(c) + "bypassPermissions."
	case !v.Firm():
		return "An answer would allow it; so would the permission_mode bypassPermissions. No rule and no hook would."
	case slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.firm() && g.Rule == nil }):
		return "Only an answer would allow it: no rule, hook or permission_mode passes that."
	case slices.ContainsFunc(v.Reasons, Reason.Doubtful):
		return "An answer would allow it. With the unknown words written out it may need none."
	}
	return "Only an answer would allow it, or a change of " + v.thoseRules() + ": no other rule, no hook and no permission_mode passes that."
}

// besides returns what would allow the call besides an answer and the mode bypassPermissions, as the beginning of a clause that
// ends in that mode.
func (v Verdict) besides(c *call) string {
	const mode = "the permission_mode "
	switch rules := strings.Join(v.wanted(), " with "); {
	case rules != "":
		return rules + " in permissions.allow, a hook, or " + mode
	case v.onlyEdits(c):
		return covering + ", a hook, or " + mode + "acceptEdits or "
	case c.beyondRules():
		return mode
	case c.Unknown.Cause != "":
		return "the rule Bash, which is every command, or " + mode
	}
	return covering + ", a hook, or " + mode
}

// covering are the rules that would permit whatever a call lacks.
const covering = "rules in permissions.allow that cover each of these parts"

// wanted returns the rules that would permit all that the verdict lacks, if that is paths and hosts which permission to run
// does not include; otherwise none.
func (v Verdict) wanted() (rules []string) {
	for _, g := range v.Reasons {
		if len(g.wants) == 0 {
			return nil
		}
		rules = append(rules, g.wants...)
	}
	return rules
}

// onlyEdits reports whether all that nothing allows is edits inside the roots, which the mode acceptEdits allows.
func (v Verdict) onlyEdits(c *call) bool { return v.settledBy(c, Policy{Mode: AcceptEdits}) }

// wayPastDenial is for what a rule or a hook denies.
func (v Verdict) wayPastDenial() string {
	ofRules := slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.Rule != nil })
	ofHooks := slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.Hook != nil })
	switch {
	case ofRules && ofHooks:
		return "Nothing but a change of " + v.thoseRules() + ", and of what the hook objects to, would allow it."
	case ofRules:
		return "Nothing but a change of " + v.thoseRules() + " would allow it."
	case !ofHooks:
		return "Nothing but a change of the settings would allow it."
	}
	return "Do what the hook asks for, or leave this call."
}

// wayOutOfMode is for what only the mode denies.
func (v Verdict) wayOutOfMode(c *call) string {
	switch {
	case v.before == Allow:
		return "Another permission_mode would allow it."
	case v.Free:
		also := ""
		if v.onlyEdits(c) {
			also = ", and so would the permission_mode acceptEdits"
		}
		return "R" + covering[1:] + " would allow it" + also + "; another permission_mode would ask."
	case v.Firm():
		return "Another permission_mode would ask for it."
	}
	return "Another permission_mode would ask for it or allow it."
}

func (v Verdict) thoseRules() string {
	others := slices.DeleteFunc(slices.Clone(v.Reasons), func(g Reason) bool { return g.Rule == nil })
	if len(others) > 1 {
		return "those rules"
	}
	return "that rule"
}
