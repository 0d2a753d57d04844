package permission

// Rules that would decide similar calls from now on. They generalise over what differs from call to call.

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// maxSuggestions is part of the contract with clients.
const maxSuggestions = 5

// Suggest returns allow rules that together would have allowed the call, at most 5. It returns none if no rules could, or if
// they would allow too much.
func Suggest(f *Facts, v Verdict, a Anchors) (rules []string) {
	if !v.Free || slices.ContainsFunc(f.Commands, namesProtected) {
		return nil
	}
	add := func(rule string) {
		if rule != "" && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	for i := range f.Commands {
		if c := &f.Commands[i]; !c.ReadOnly && slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.Part == c.Text && !g.reach }) {
			add(commandRule(c))
		}
	}
	for i := range f.Accesses {
		access := &f.Accesses[i]
		if !access.Write && f.writes(access.Real) {
			continue // permission to write is permission to read
		}
		about := slices.IndexFunc(v.Reasons, func(g Reason) bool { return g.About == access.where() })
		if about < 0 {
			continue
		}
		rule := a.pathRule(access)
		if access.hides() {
			rule = "" // a rule opens no more of what is hidden than was asked about
		}
		if add(rule); rule == "" {
			for _, exact := range v.Reasons[about].wants {
				if access.hides() || !shell.Passing(exact) {
					add(exact)
				}
			}
		}
	}
	for _, to := range read(f).hosts {
		if to.by == 0 || slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.Part == to.host }) {
			add("WebFetch(domain:" + to.name + ")")
		}
	}
	if f.External != "" || f.Opaque && len(f.Commands) == 0 && len(f.Hosts) == 0 {
		add(f.Tool)
	}
	if len(rules) > maxSuggestions || !settle(rules, f, v, a) {
		return nil
	}
	return rules
}

// settle reports whether the rules, in force, would leave none of what the verdict rests on.
func settle(texts []string, f *Facts, v Verdict, a Anchors) bool {
	var rules []Rule
	for _, text := range texts {
		rule, err := ParseRule(AllowList, text, Origin{})
		if err != nil {
			return false
		}
		rules = append(rules, rule)
	}
	c := read(f)
	missing, _ := uncovered(&c, Policy{Rules: Compile(rules, a)})
	return !slices.ContainsFunc(missing, func(m Reason) bool {
		return slices.ContainsFunc(v.Reasons, func(g Reason) bool { return g.same(m) })
	})
}

// namesProtected reports whether a command that may write has a word with a protected file in it, also behind a flag: to
// allow that always would be to allow more than the rule shows.
func namesProtected(c shell.Command) bool {
	return !c.ReadOnly && slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		return slices.ContainsFunc(w.Values(), func(name string) bool { return protectedPath(path.Clean(name), 0) != "" })
	})
}

func commandRule(c *shell.Command) string {
	if text := c.General(); text != "" {
		return "Bash(" + text + ")"
	}
	return ""
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
	if access.Write || shell.Passing(dir) || slices.ContainsFunc(temporary, func(t string) bool { _, in := below(t, dir); return in }) {
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
