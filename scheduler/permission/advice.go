// What would let a call run that may not, or not unasked: as the last sentence of a verdict's text, which derives from what the
// verdict rests on, and as a change of settings, for denials where no client can answer. A change was tried: the call was
// decided again with it.

package permission

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
)

// Advice is a change of settings by which a call would be allowed.
type Advice struct {
	// Rules, Excluded and Writable are added to permissions.allow, sandbox.excludedCommands and sandbox.filesystem.allowWrite.
	Rules, Excluded, Writable []string
	// Mode is set as permissions.defaultMode; empty: it stays as it is.
	Mode string
	// Drop are ask rules that are taken out of the files in which they stand.
	Drop []*Rule
}

// Settings returns what is to be added to a settings file, as JSON; empty: nothing is.
func (a Advice) Settings() string {
	all := map[string]map[string]any{}
	add := func(section, key string, value any, there bool) {
		if there && all[section] == nil {
			all[section] = map[string]any{}
		}
		if there {
			all[section][key] = value
		}
	}
	add("permissions", "allow", a.Rules, len(a.Rules) > 0)
	add("permissions", "defaultMode", a.Mode, a.Mode != "")
	add("sandbox", "excludedCommands", a.Excluded, len(a.Excluded) > 0)
	add("sandbox", "filesystem", map[string]any{"allowWrite": a.Writable}, len(a.Writable) > 0)
	if len(all) == 0 {
		return ""
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a rule is to be copied as it is
	if err := encoder.Encode(all); err != nil {
		panic("BUG: settings that are no JSON")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Advise returns what would let the call run to which the verdict is about; false: no settings would. modes are those that
// settings could choose for the session.
func Advise(f *Facts, p Policy, v Verdict, a Anchors, modes []Mode) (advice Advice, ok bool) {
	facts := *f
	facts.Accesses = slices.Clone(f.Accesses)
	for _, g := range v.Reasons {
		if g.Rule != nil && g.Rule.List == AskList && !slices.Contains(advice.Drop, g.Rule) {
			advice.Drop = append(advice.Drop, g.Rule)
		}
	}
	p.Rules = p.Rules.without(advice.Drop)
	advice.openWritable(&facts)
	p.Escape = advice.exclude(&facts, p.Escape, a)
	advice.Rules = a.absolute(Suggest(f, v, a))
	for range maxAdvised {
		needed := advice.needed(&facts, p.with(advice.Rules, a))
		if len(needed) == 0 {
			break
		}
		advice.Rules = append(advice.Rules, needed...)
	}
	p = p.with(advice.Rules, a)
	if Decide(&facts, p).Decision == Allow {
		return advice, true
	}
	for _, mode := range modes {
		if p.Mode = mode; Decide(&facts, p).Decision == Allow {
			advice.Mode = mode.String()
			return advice, true
		}
	}
	return Advice{}, false
}

// maxAdvised bounds how often rules are added: permission to run a command shows what it lacks besides.
const maxAdvised = 4

// openWritable has settings open the directories for which the call would leave the sandbox.
func (a *Advice) openWritable(f *Facts) {
	for _, g := range f.leaving() {
		a.Writable = append(a.Writable, g.Detail)
	}
	for i := range f.Accesses {
		if access := &f.Accesses[i]; pathname.WithinAny(a.Writable, access.Real) {
			access.Open, access.Opens, access.Leaves, access.Fresh = access.Hidden == "", "", "", false
		}
	}
}

// exclude has settings let the commands leave the sandbox, if the call asks for that.
func (a *Advice) exclude(f *Facts, e Escape, anchors Anchors) Escape {
	if !f.Unconfined {
		return e
	}
	var rules []string
	for i := range f.Commands {
		if c := &f.Commands[i]; !harmlessOutside(c) {
			if text := exactText(c); text != "" {
				rules, a.Excluded = append(rules, bashRule(text)), append(a.Excluded, text)
			}
		}
	}
	e.Excluded = Compile(allowing(rules), anchors)
	f.Unconfined = !e.Excludes(f)
	return e
}

// needed returns the rules that the call lacks, each once.
func (a *Advice) needed(f *Facts, p Policy) (rules []string) {
	c := read(f)
	missing, _ := uncovered(&c, p)
	for _, g := range missing {
		for _, rule := range g.needs {
			if !slices.Contains(rules, rule) && !slices.Contains(a.Rules, rule) {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// with returns the policy with allow rules more.
func (p Policy) with(texts []string, a Anchors) Policy {
	all := *cmp.Or(p.Rules, Compile(nil, a))
	all.lists[AllowList] = slices.Concat(all.lists[AllowList], Compile(allowing(texts), a).list(AllowList))
	p.Rules = &all
	return p
}

// without returns the rules but for some ask rules.
func (r *Rules) without(dropped []*Rule) *Rules {
	if r == nil || len(dropped) == 0 {
		return r
	}
	left := *r
	left.lists[AskList] = slices.DeleteFunc(slices.Clone(r.lists[AskList]), func(a anchored) bool { return slices.ContainsFunc(dropped, a.is) })
	return &left
}

// absolute returns rules with the roots in front of their paths, since another file than the workspace's will hold them.
func (a Anchors) absolute(rules []string) (list []string) {
	for _, rule := range rules {
		tool, path, relative := strings.Cut(rule, "(./")
		if !relative || tool == "Bash" {
			list = append(list, rule)
			continue
		}
		for _, root := range a.Roots {
			if !strings.ContainsAny(root, `*?[]\()!`) { // which mean something in a rule
				list = append(list, tool+"(/"+strings.TrimSuffix(root, "/")+"/"+path)
			}
		}
	}
	return list
}

// exactText is a command as a rule without * has it; empty: no such rule matches it.
func exactText(c *shell.Command) string {
	t := textOf(c)
	for _, form := range t.allowed {
		if strings.ContainsAny(form, inWord+unknown+"\x02\n\t") || strings.Contains(form, "  ") || form != strings.TrimSpace(form) {
			continue
		}
		text := strings.ReplaceAll(form, "*", `\*`)
		if slices.ContainsFunc(allowing([]string{bashRule(text)}), func(r Rule) bool { return t.allowedBy(&r) }) {
			return text
		}
	}
	return ""
}

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
