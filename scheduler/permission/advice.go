package permission

// The settings that would let a call run without an answer, for denials where no client can answer. Advice was tried: the
// call was decided again with it.

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
	type permissions struct {
		Allow       []string `json:"allow,omitempty"`
		DefaultMode string   `json:"defaultMode,omitempty"`
	}
	type filesystem struct {
		AllowWrite []string `json:"allowWrite,omitempty"`
	}
	type sandbox struct {
		ExcludedCommands []string   `json:"excludedCommands,omitempty"`
		Filesystem       filesystem `json:"filesystem,omitzero"`
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a rule is to be copied as it is
	err := encoder.Encode(struct {
		Permissions permissions `json:"permissions,omitzero"`
		Sandbox     sandbox     `json:"sandbox,omitzero"`
	}{permissions{a.Rules, a.Mode}, sandbox{a.Excluded, filesystem{a.Writable}}})
	if err != nil {
		panic("BUG: settings that are no JSON")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Advise returns what would let the call run to which the verdict is about; false: no settings would. modes are those that
// settings could choose for the session.
func Advise(f *Facts, p Policy, v Verdict, a Anchors, modes []Mode) (advice Advice, ok bool) {
	facts := *f
	facts.Accesses = slices.Clone(f.Accesses)
	advice.dropAsking(v)
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

// dropAsking notes the ask rules that the verdict rests on.
func (a *Advice) dropAsking(v Verdict) {
	for _, g := range v.Reasons {
		if g.Rule != nil && g.Rule.List == AskList && !slices.Contains(a.Drop, g.Rule) {
			a.Drop = append(a.Drop, g.Rule)
		}
	}
}

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

// exactRule is the rule for just that command; where there is none, it is that for every command.
func exactRule(c *shell.Command) string {
	return cmp.Or(bashRule(exactText(c)), "Bash")
}
