package permission

// Rules that would decide similar calls from now on. They generalise over what differs from call to call.

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
)

// maxSuggestions is part of the contract with clients.
const maxSuggestions = 5

// Suggest returns allow rules that together would have allowed the call, at most 5. It returns none if no rules could, or if
// they would allow too much.
func Suggest(f *Facts, v Verdict, a Anchors) (rules []string) {
	if !v.Free || slices.ContainsFunc(f.Commands, namesProtected) {
		return nil
	}
	for _, g := range v.Reasons {
		for _, rule := range g.settling(a) {
			if rule != "" && !slices.Contains(rules, rule) {
				rules = append(rules, rule)
			}
		}
	}
	c := read(f)
	if len(rules) > maxSuggestions || !v.settledBy(&c, Policy{Rules: Compile(allowing(rules), a)}) {
		return nil
	}
	return rules
}

// settling returns the rules that would settle the like of what the reason is about.
func (r Reason) settling(a Anchors) []string {
	switch {
	case r.command != nil:
		return []string{bashRule(r.command.General())}
	case r.Code == OnlyBash:
		return nil
	case r.access == nil:
		return r.needs
	case r.access.hides(): // a rule opens no more of what is hidden than was asked about
		return r.wants
	}
	if rule := a.pathRule(r.access); rule != "" {
		return []string{rule}
	}
	return slices.DeleteFunc(slices.Clone(r.wants), shell.Passing)
}

// settledBy reports whether the policy would leave none of what the verdict rests on.
func (v Verdict) settledBy(c *call, p Policy) bool {
	missing, _ := uncovered(c, p)
	return !slices.ContainsFunc(missing, func(m Reason) bool { return slices.ContainsFunc(v.Reasons, m.same) })
}

// allowing returns the texts, apart from those that do not parse, as allow rules.
func allowing(texts []string) (rules []Rule) {
	for _, text := range texts {
		if rule, err := ParseRule(AllowList, text, Origin{}); err == nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

// namesProtected reports whether a command that may write has a word with a protected file in it, also behind a flag: to
// allow that always would be to allow more than the rule shows.
func namesProtected(c shell.Command) bool {
	return !c.ReadOnly && slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		return slices.ContainsFunc(w.Values(), func(name string) bool { return protectedPath(path.Clean(name), 0) != "" })
	})
}

// bashRule returns the rule for the commands that a pattern matches; empty for an empty one.
func bashRule(pattern string) string {
	if pattern == "" {
		return ""
	}
	return "Bash(" + pattern + ")"
}

// temporary are directories whose contents no program relies on.
var temporary = []string{"/tmp", "/var/tmp"}

// pathRule generalises to the directory. Outside the roots that directory must be worth naming: not a child
// of /, not home.
func (a Anchors) pathRule(access *Access) string {
	tool := "Read"
	if access.Write {
		tool = "Edit"
	}
	dir := access.Real
	if !access.Dir {
		dir = path.Dir(dir)
	}
	if access.Real != access.Named || strings.ContainsAny(dir, `*?[]\()!`) || protectedPath(access.Real, 0) != "" {
		return ""
	}
	for _, root := range a.Roots {
		switch rel, ok := below(root, dir); {
		case ok && rel == "." && path.Ext(access.Real) == "":
			return ""
		case ok && rel == ".":
			return tool + "(./*" + path.Ext(access.Real) + ")"
		case ok && shell.Passing(rel):
			return ""
		case ok:
			return tool + "(./" + rel + "/**)"
		}
	}
	if access.Write || shell.Passing(dir) || pathname.WithinAny(temporary, dir) {
		return ""
	}
	for _, home := range a.forms(a.Home) {
		switch rel, ok := below(home, dir); {
		case ok && strings.HasPrefix(rel, "."):
			return ""
		case ok:
			return tool + "(~/" + rel + "/**)"
		}
	}
	if strings.Count(dir, "/") < 2 {
		return ""
	}
	return tool + "(/" + dir + "/**)"
}
