// What leave each part of a call has: by a rule of the allow list, by the mode acceptEdits, or because reading there is
// free. What denies or asks has been looked at before, and is not known here; nor is what hooks say.

package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// uncovered returns the parts of the call that nothing allows, and when there are none what allows them.
func uncovered(c *call, p Policy) (missing, allowing []Ground) {
	l := leave{call: c, policy: p, byRule: make([]*anchored, len(c.texts))}
	for i := range c.texts {
		l.byRule[i] = p.Rules.coveringCommand(&c.texts[i])
	}
	if g, ok := p.Rules.coversTool(c); ok {
		l.whole = true
		l.allow(g)
	}
	switch {
	case l.whole:
	case c.Hidden != "" && c.beyondRules():
		l.miss(Ground{Text: fmt.Sprintf("No rule can allow it, because %s.", c.Hidden)})
	case c.Hidden != "":
		l.miss(Ground{Text: fmt.Sprintf("No rule but Bash, which is every command, can allow it, because %s.", c.Hidden), needs: []string{c.Tool}})
	default:
		l.commands()
	}
	l.accesses()
	l.hosts()
	switch {
	case l.whole:
	case c.Foreign != "":
		l.miss(Ground{Text: fmt.Sprintf("No rule allows it, and %s, which carries it out, may do anything.", c.Foreign), needs: []string{c.Tool}})
	case c.Opaque && len(c.Commands) == 0 && len(c.Hosts) == 0:
		l.miss(Ground{Text: fmt.Sprintf("No rule allows it, and it is not known to be read-only: %s.", c.Reason), needs: []string{c.Tool}})
	}
	if len(l.missing) == 0 && len(l.allowing) == 0 {
		l.allow(Ground{Text: "It is read-only, inside the places that may be read."})
	}
	return l.missing, l.allowing
}

// A leave collects what each part of a call has or lacks.
type leave struct {
	*call
	policy   Policy
	byRule   []*anchored // by command: the rule that allows it; nil: none
	whole    bool        // a rule allows every call of the tool
	missing  []Ground
	allowing []Ground
}

func (l *leave) miss(g Ground) { l.missing = append(l.missing, g) }

// allow adds a ground, unless it says what another has said.
func (l *leave) allow(g Ground) {
	if !slices.ContainsFunc(l.allowing, func(o Ground) bool { return o.Text == g.Text }) {
		l.allowing = append(l.allowing, g)
	}
}

// covered reports whether command i has leave for all that it names.
func (l *leave) covered(i int) bool {
	return l.byRule[i] != nil || l.policy.Mode == AcceptEdits && edits(l.Facts, i)
}

const byAcceptEdits = "The permission mode acceptEdits allows edits inside the roots."

func (l *leave) commands() {
	for i := range l.Commands {
		command := &l.Commands[i]
		switch {
		case command.Transparent, command.DenyOnly, command.ReadOnly, command.Name == "" && len(command.Assigns) == 0:
		case l.byRule[i] != nil:
			l.allow(l.byRule[i].ground(command.Text, ""))
		case l.covered(i):
			l.allow(Ground{Text: byAcceptEdits})
		default:
			l.miss(Ground{Text: l.notReadOnly(i), Part: command.Text, needs: []string{exactRule(command)}})
		}
	}
}

func (l *leave) accesses() {
	permitted := l.permitted()
	for i := range l.Accesses {
		a := &l.Accesses[i]
		runs := l.whole || a.By > 0 && l.covered(a.By-1) || permitted && a.Scratch && a.Part != ""
		if (runs || a.By > 0 && !l.Commands[a.By-1].ReadOnly) && !a.reaches() {
			l.byRunning(a)
			continue // what names it has leave, or is said to lack it already
		}
		if !a.Write && l.writes(a.Real) || l.nested(a) {
			continue // permission to write a file is permission to read it, that to write a directory counts for what is in it
		}
		if r := l.namedBy(a); r != nil {
			l.allow(r.ground(l.Commands[a.By-1].Text, ""))
			continue
		}
		free, g := l.policy.freeAccess(a)
		g.needs = l.policy.Rules.rulesFor(a)
		switch {
		case !free && a.Mentioned && a.Missing > 0 && (runs || l.byRule[a.By-1] != nil): // leave to run is enough, and opens nothing
		case !free && a.reaches():
			g.reach = !a.Mentioned || a.hides() // else confinement opens nothing for it
			if runs || a.By == 0 && slices.ContainsFunc(l.byRule, func(r *anchored) bool { return r != nil }) {
				g.wants = g.needs
				g = g.wanting()
			}
			l.miss(g)
		case !free:
			l.miss(g)
		case g.Text != "":
			l.allow(g)
		}
	}
}

// permitted reports whether rules, and not only what is harmless by itself, let all commands of a script run: a redirection to a
// temporary file of the session's own needs no more.
func (l *leave) permitted() bool {
	return len(l.missing) == 0 && slices.ContainsFunc(l.byRule, func(r *anchored) bool { return r != nil })
}

// nested reports whether an access is to a name in a directory that the same command writes: it is covered with that.
func (l *leave) nested(a *Access) bool {
	return a.Manner == shell.Nested && slices.ContainsFunc(l.Accesses, func(o Access) bool {
		return o.Write && o.By == a.By && o.Named == path.Dir(a.Named)
	})
}

// byRunning notes the rule that allows a command as what allows an access that needs nothing else.
func (l *leave) byRunning(a *Access) {
	if a.By > 0 && l.byRule[a.By-1] != nil && !a.Inside {
		l.allow(l.byRule[a.By-1].ground(l.Commands[a.By-1].Text, ""))
	}
}

// notReadOnly returns why a command needs leave. The script's reason is a part of it in backquotes, and a clause about that.
func (l *leave) notReadOnly(i int) string {
	c := &l.Commands[i]
	if why := l.Steered[i]; why != "" {
		return fmt.Sprintf("No rule allows `%s`, which does not count as read-only here: %s.", c.Text, why)
	}
	part, why, found := strings.Cut(strings.TrimPrefix(l.Reason, "`"), "`: ")
	part = strings.TrimSuffix(part, "...")
	is := func(o shell.Command) bool { return o.DenyOnly && strings.HasPrefix(o.Text, part) }
	switch {
	case !found || !strings.Contains(c.Text, part), part == "":
		return fmt.Sprintf("No rule allows `%s`, which is not known to be read-only.", c.Text)
	case slices.ContainsFunc(l.Commands, is): // one reading of a wrapper's words, and perhaps not the right one
		why = "it runs another program in a way of its own"
	}
	return fmt.Sprintf("No rule allows `%s`, which is not known to be read-only: %s.", c.Text, why)
}

// coversTool finds the allow rule for every call of the tool. It lets a script run whatever it runs, if the script was
// understood and says which programs these are. What the script reaches for needs its own permission.
func (r *Rules) coversTool(c *call) (g Ground, ok bool) {
	if c.beyondRules() {
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

// beyondRules reports whether not even the rule for every call of a tool covers a script: it was not understood, or does not say
// which programs it runs.
func (c *call) beyondRules() bool { return c.Unread || slices.ContainsFunc(c.Commands, unnamed) }

// unnamed reports whether it is not known which program a command runs, not even which wrapper.
func unnamed(c shell.Command) bool { return !c.Literal && !c.DenyOnly && !isTest(&c) }

func (r *Rules) coveringCommand(t *text) *anchored {
	rules := r.list(AllowList)
	for i := range rules {
		if rules[i].subject&commands != 0 && t.allowedBy(&rules[i].Rule) {
			return &rules[i]
		}
	}
	return nil
}

// freeAccess reports whether the path may be read or written, and by what; otherwise the ground says why not.
func (p Policy) freeAccess(a *Access) (free bool, g Ground) {
	if a.Inside && !a.Write && !a.hides() {
		return true, g
	}
	rules, whole := p.Rules.list(AllowList), !a.widens() || p.Mode != BypassPermissions && p.Opens(a)
	for i := range rules {
		if whole && rules[i].coversAccess(a) {
			return true, rules[i].ground(a.part(), "")
		}
	}
	switch {
	case a.MayWrite && !a.hides():
		return false, Ground{Text: fmt.Sprintf("It names %s, which is outside the roots, and may write it.", a.where()) + a.opened(), Part: a.Part}
	case a.Mentioned && !a.hides():
		return false, Ground{Text: fmt.Sprintf("It names %s, which is outside the roots and the other readable places.", a.where()), Part: a.Part}
	case a.hides():
		verb := "reads"
		if a.Write {
			verb = "writes"
		} else if a.Mentioned {
			verb = "names"
		}
		return false, Ground{Text: fmt.Sprintf("It %s %s, which is hidden from commands as a place of credentials or by settings.", verb, a.where()) + a.opened(), Part: a.Part}
	case a.Write && a.Inside && p.Mode == AcceptEdits && !a.widens():
		return true, Ground{Text: byAcceptEdits}
	case a.Write && a.Inside:
		return false, Ground{Text: fmt.Sprintf("No rule allows it to write %s.", a.where()) + a.opened(), Part: a.Part}
	case a.Write:
		return false, Ground{Text: fmt.Sprintf("It writes %s, which is outside the roots.", a.where()) + a.opened(), Part: a.Part}
	case a.Unnamed:
		return false, Ground{Text: fmt.Sprintf("`%s` may read files that it does not name.", a.Part), Part: a.Part}
	}
	return false, Ground{Text: fmt.Sprintf("It reads %s, which is outside the roots and the other readable places.", a.where()), Part: a.Part}
}

// coversAccess: an Edit rule allows reading too. Both the name and what it leads to must fit. A script needs a rule that
// names what the sandbox hides, not one about all around it.
func (r *anchored) coversAccess(a *Access) bool {
	if r.tool != "Edit" && (r.tool != "Read" || a.Write) || a.hides() && !r.namesHidden(a) {
		return false
	}
	return r.subject&wholeTool != 0 ||
		anyHolds(r.places, a.Real, a.Dir) && (a.Named == a.Real || anyHolds(r.places, a.Named, a.Dir))
}

// copied reports whether a command reads a whole directory.
func copied(f *Facts, i int) bool {
	return slices.ContainsFunc(f.Accesses, func(a Access) bool { return a.By == i+1 && !a.Write && a.Dir && f.Commands[i].Name == "cp" })
}

// editing are the commands that acceptEdits allows on literal paths inside the roots.
var editing = []string{"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"}

// edits reports whether a command only edits paths that it names literally inside the roots. For sed that its expression is
// plain is said by what the shell analysis lists: all of its writes are only then.
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
