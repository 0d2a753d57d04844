package permission

// What leave each part of a call has: by a rule of the allow list, by the mode acceptEdits, or because reading there is
// free.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// uncovered gives the parts of the call that nothing allows, and when there are none what allows them.
func uncovered(c *call, p Policy) (missing, allowing []Ground) {
	if g, ok := p.Rules.coversTool(c); ok {
		return nil, []Ground{g}
	}
	byRule := make([]*anchored, len(c.texts))
	for i := range c.texts {
		byRule[i] = p.Rules.coveringCommand(&c.texts[i])
	}
	covered := func(i int) bool { return byRule[i] != nil || p.Mode == AcceptEdits && edits(c.Facts, i) }
	if c.Hidden != "" {
		missing = append(missing, Ground{Text: fmt.Sprintf("No rule can allow it, because %s.", c.Hidden)})
	}
	for i := range c.Commands {
		command := &c.Commands[i]
		if command.Transparent || command.DenyOnly || command.ReadOnly || command.Name == "" && len(command.Assigns) == 0 {
			continue
		}
		switch {
		case byRule[i] != nil:
			allowing = append(allowing, byRule[i].ground(command.Text, ""))
		case covered(i):
			allowing = append(allowing, Ground{Text: "The permission mode acceptEdits allows edits inside the roots."})
		default:
			missing = append(missing, Ground{Text: notReadOnly(command, c.Reason), Part: command.Text})
		}
	}
	for i := range c.Accesses {
		a := &c.Accesses[i]
		if a.By > 0 && (covered(a.By-1) || !c.Commands[a.By-1].ReadOnly) {
			if by := byRule[a.By-1]; by != nil && !a.Inside {
				allowing = append(allowing, by.ground(c.Commands[a.By-1].Text, ""))
			}
			continue // what names it has leave, or is said to lack it already
		}
		if !a.Write && slices.ContainsFunc(c.Accesses, func(o Access) bool { return o.Write && o.Real == a.Real }) {
			continue // leave to write a file is leave to read it
		}
		free, g := p.freeAccess(a)
		if !free {
			missing = append(missing, g)
		} else if g.Text != "" {
			allowing = append(allowing, g)
		}
	}
	missing, allowing = p.Rules.coverHosts(c, missing, allowing)
	if c.Opaque && len(c.Commands) == 0 && len(c.Hosts) == 0 {
		missing = append(missing, Ground{Text: fmt.Sprintf("It is not known to be read-only: %s.", c.Reason)})
	}
	if len(missing) == 0 && len(allowing) == 0 {
		allowing = []Ground{{Text: "It is read-only, inside the places that may be read."}}
	}
	return missing, distinct(allowing)
}

// distinct drops grounds that say the same again.
func distinct(grounds []Ground) (list []Ground) {
	for _, g := range grounds {
		if !slices.ContainsFunc(list, func(o Ground) bool { return o.Text == g.Text }) {
			list = append(list, g)
		}
	}
	return list
}

// notReadOnly says why a command needs leave. reason is the script's: a part of it in backquotes, and a clause about that.
func notReadOnly(c *shell.Command, reason string) string {
	if part, _, ok := strings.Cut(strings.TrimPrefix(reason, "`"), "`: "); ok && strings.Contains(c.Text, strings.TrimSuffix(part, "...")) {
		return fmt.Sprintf("It is not known to be read-only: %s.", reason)
	}
	return fmt.Sprintf("`%s` is not known to be read-only.", c.Text)
}

// coversTool finds the allow rule for every call of the tool. A script with something hidden in it is not covered.
func (r *Rules) coversTool(c *call) (g Ground, ok bool) {
	if c.Hidden != "" || slices.ContainsFunc(c.texts, func(t text) bool { return len(t.allowed) == 0 && !t.command.ReadOnly && !t.command.DenyOnly }) {
		return g, false
	}
	rules := r.list(AllowList)
	for i := range rules {
		if rules[i].subject&wholeTool != 0 && rules[i].names(c.Tool) {
			return rules[i].ground(c.Tool, ""), true
		}
	}
	return g, false
}

func (r *Rules) coveringCommand(t *text) *anchored {
	rules := r.list(AllowList)
	for i := range rules {
		if rules[i].tool == "Bash" && t.allowedBy(&rules[i].Rule) {
			return &rules[i]
		}
	}
	return nil
}

// freeAccess says whether the path may be read or written, and by what; otherwise the ground says why not.
func (p Policy) freeAccess(a *Access) (free bool, g Ground) {
	if a.Inside && !a.Write {
		return true, g
	}
	rules := p.Rules.list(AllowList)
	for i := range rules {
		if rules[i].coversAccess(a) {
			return true, rules[i].ground(a.part(), "")
		}
	}
	switch {
	case a.Write && a.Inside && p.Mode == AcceptEdits:
		return true, Ground{Text: "The permission mode acceptEdits allows edits inside the roots."}
	case a.Write && a.Inside:
		return false, Ground{Text: fmt.Sprintf("It writes %s.", a.where()), Part: a.Part}
	case a.Write:
		return false, Ground{Text: fmt.Sprintf("It writes %s, which is outside the roots.", a.where()), Part: a.Part}
	case a.Unnamed:
		return false, Ground{Text: fmt.Sprintf("`%s` may read files that it does not name.", a.Part), Part: a.Part}
	}
	return false, Ground{Text: fmt.Sprintf("It reads %s, which is outside the roots and the other readable places.", a.where()), Part: a.Part}
}

// coversAccess: an Edit rule allows reading too. Both the name and what it leads to must fit.
func (r *anchored) coversAccess(a *Access) bool {
	if r.tool != "Edit" && (r.tool != "Read" || a.Write) {
		return false
	}
	return r.subject&wholeTool != 0 ||
		anyHolds(r.places, a.Real, a.Dir) && (a.Named == a.Real || anyHolds(r.places, a.Named, a.Dir))
}

func (r *Rules) coverHosts(c *call, missing, allowing []Ground) (stillMissing, nowAllowing []Ground) {
	rules := r.list(AllowList)
	for i, host := range c.hosts {
		at := slices.IndexFunc(rules, func(a anchored) bool { return a.subject&hosts != 0 && hostFits(a.host, host) })
		if at < 0 {
			missing = append(missing, Ground{Text: fmt.Sprintf("It contacts %s.", c.Hosts[i])})
		} else {
			allowing = append(allowing, rules[at].ground(c.Hosts[i], ""))
		}
	}
	return missing, allowing
}

// copied says whether a command reads a whole directory.
func copied(f *Facts, i int) bool {
	return slices.ContainsFunc(f.Accesses, func(a Access) bool { return a.By == i+1 && !a.Write && a.Dir && f.Commands[i].Name == "cp" })
}

// editing are the commands that acceptEdits allows on literal paths inside the roots.
var editing = []string{"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"}

// edits says whether a command only edits paths that it names literally inside the roots. For sed that its expression is
// plain is said by what the shell analysis lists: sed's writes are named only then.
func edits(f *Facts, i int) bool {
	c := &f.Commands[i]
	if copied(f, i) {
		return false // what is in a directory that is copied, and where that would go, is not looked at
	}
	if !slices.Contains(editing, c.Name) || c.Unlisted || c.DenyOnly || len(c.Assigns) > 0 || len(c.Writes) == 0 ||
		slices.ContainsFunc(c.Words, func(w shell.Word) bool { return !w.Literal }) {
		return false
	}
	for _, a := range f.Accesses {
		if a.By == i+1 && !a.Inside {
			return false
		}
	}
	return true
}
