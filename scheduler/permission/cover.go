// What allows each part of a call: a rule of the allow list, the mode acceptEdits, or that reading there is free. Deny rules,
// ask rules and hooks are judged before.

package permission

import (
	"cmp"
	"path"
	"slices"

	"github.com/toold/toold/tools/exec/shell"
)

// uncovered returns the parts of the call that nothing allows, and when there are none what allows them.
func uncovered(c *call, p Policy) (missing, allowing []Reason) {
	l := coverage{call: c, policy: p, byRule: make([]*anchored, len(c.texts))}
	for i := range c.texts {
		l.byRule[i] = p.Rules.first(AllowList, c.texts[i].coveredBy)
	}
	if r := p.Rules.coveringTool(c); r != nil {
		l.whole = true
		l.allow(r.reason(c.Tool, ""))
	}
	switch {
	case l.whole:
	case c.Unknown.Cause != "" && c.beyondRules():
		l.miss(Reason{Code: NotUnderstood, Detail: c.Unknown.Cause})
	case c.Unknown.Cause != "":
		l.miss(Reason{Code: OnlyBash, Detail: c.Unknown.Cause, needs: []string{c.Tool}})
	default:
		l.commands()
	}
	l.accesses()
	l.hosts()
	l.memory()
	switch {
	case l.whole:
	case c.External != "":
		l.miss(Reason{Code: NoRuleExternal, About: c.External, needs: []string{c.Tool}})
	case c.Opaque && len(c.Commands) == 0 && len(c.Hosts) == 0:
		l.miss(Reason{Code: NoRuleTool, Detail: c.Reason, needs: []string{c.Tool}})
	}
	if len(l.missing) == 0 && len(l.allowing) == 0 {
		l.allow(Reason{Code: ReadsOnly})
	}
	return l.missing, l.allowing
}

// A coverage collects what each part of a call has or lacks.
type coverage struct {
	*call
	policy   Policy
	byRule   []*anchored // by command: the rule that allows it; nil: none
	whole    bool        // a rule allows every call of the tool
	missing  []Reason
	allowing []Reason
}

func (l *coverage) miss(g Reason) { l.missing = append(l.missing, g) }

// allow adds a ground, unless it repeats another.
func (l *coverage) allow(g Reason) {
	if !slices.ContainsFunc(l.allowing, func(o Reason) bool { return o.same(g) }) {
		l.allowing = append(l.allowing, g)
	}
}

// allowBy adds the rule that allows something of command i, and reports whether there is one.
func (l *coverage) allowBy(r *anchored, i int) bool {
	if r != nil {
		l.allow(r.reason(l.Commands[i].Text, ""))
	}
	return r != nil
}

// covered reports whether command i is allowed all that it names.
func (l *coverage) covered(i int) bool {
	return l.byRule[i] != nil || l.policy.Mode == AcceptEdits && edits(l.Facts, i)
}

func (l *coverage) commands() {
	for i := range l.Commands {
		command := &l.Commands[i]
		switch {
		case command.Transparent, command.DenyOnly, command.ReadOnly, command.Name == "" && len(command.Assigns) == 0:
		case l.allowBy(l.byRule[i], i):
		case l.covered(i):
			l.allow(Reason{Code: ByAcceptEdits})
		default:
			l.miss(l.notReadOnly(i))
		}
	}
}

func (l *coverage) accesses() {
	permitted := l.permitted()
	for i := range l.Accesses {
		a := &l.Accesses[i]
		runs := l.whole || a.By > 0 && l.covered(a.By-1) || permitted && a.Scratch && a.Part != ""
		if (runs || a.By > 0 && !l.Commands[a.By-1].ReadOnly) && !a.reaches() {
			if a.By > 0 && !a.Inside {
				l.allowBy(l.byRule[a.By-1], a.By-1)
			}
			continue // what names it is allowed, or is already among the parts that are not
		}
		if !a.Write && l.writes(a.Real) || l.nested(a) {
			continue // permission to write a file is permission to read it, that to write a directory counts for what is in it
		}
		if l.allowBy(l.namedBy(a), a.By-1) {
			continue
		}
		free, g := l.policy.freeAccess(a)
		g.needs, g.access = l.policy.Rules.rulesFor(a), a
		switch {
		case !free && a.Mentioned && a.Missing > 0 && (runs || l.byRule[a.By-1] != nil): // permission to run is enough, and opens nothing
		case !free && a.reaches():
			if runs || a.By == 0 && l.anyByRule() {
				g.wants = g.needs
			}
			l.miss(g)
		case !free:
			l.miss(g)
		case g.Code != "":
			l.allow(g)
		}
	}
}

// permitted reports whether rules, and not only what is harmless by itself, let all commands of a script run: a redirection to a
// temporary file of the session's own needs no more.
func (l *coverage) permitted() bool { return len(l.missing) == 0 && l.anyByRule() }

func (l *coverage) anyByRule() bool {
	return slices.ContainsFunc(l.byRule, func(r *anchored) bool { return r != nil })
}

// nested reports whether an access is to a name in a directory that the same command writes: it is covered with that.
func (l *coverage) nested(a *Access) bool {
	return a.Manner == shell.Nested && slices.ContainsFunc(l.Accesses, func(o Access) bool {
		return o.Write && o.By == a.By && o.Named == path.Dir(a.Named)
	})
}

// notReadOnly returns why a command needs permission.
func (l *coverage) notReadOnly(i int) Reason {
	c := &l.Commands[i]
	r := Reason{Code: NoRuleCommand, Part: c.Text, Detail: c.Why, needs: []string{cmp.Or(bashRule(exactText(c)), "Bash")}, command: c}
	if why := l.Steered[i]; why != "" {
		r.Code, r.Detail = NoRuleHere, why
	}
	return r
}

// coveringTool returns the allow rule for every call of the tool; nil: there is none. It covers all programs that a script
// runs, if the script was understood and names them. What the script reaches for needs its own permission.
func (r *Rules) coveringTool(c *call) *anchored {
	return r.first(AllowList, func(a *anchored) bool {
		return a.subject&wholeTool != 0 && a.names(c.Tool) && !c.beyondRules()
	})
}

// beyondRules reports whether not even the rule for every call of a tool covers a script: it was not understood, or does not
// name the programs that it runs.
func (c *call) beyondRules() bool {
	return c.Unknown.Unread || slices.ContainsFunc(c.Commands, unnamed)
}

// unnamed reports whether it is not known which program a command runs, not even which wrapper.
func unnamed(c shell.Command) bool { return !c.Literal && !c.DenyOnly && !c.IsTest() }

// freeAccess reports whether the path may be read or written, and by what; otherwise it returns the reason why not.
func (p Policy) freeAccess(a *Access) (free bool, g Reason) {
	if a.Inside && !a.Write && !a.hides() {
		return true, g
	}
	if !a.widens() || p.Mode != BypassPermissions && p.Opens(a) {
		if r := p.Rules.first(AllowList, func(r *anchored) bool { return r.coversAccess(a) }); r != nil {
			return true, r.reason(a.part(), "")
		}
	}
	g = Reason{About: a.where(), Opens: a.Opens, Part: a.Part}
	switch {
	case a.hides():
		g.Code, g.Detail = HiddenPath, "reads"
		if a.Write {
			g.Detail = "writes"
		} else if a.Mentioned {
			g.Detail = "names"
		}
	case a.MayWrite:
		g.Code = MayWriteOutside
	case a.Mentioned:
		g.Code = NamesOutside
	case a.Write && a.Inside && p.Mode == AcceptEdits && !a.widens():
		return true, Reason{Code: ByAcceptEdits}
	case a.Write && a.Inside:
		g.Code = NoRuleWrite
	case a.Write:
		g.Code = WritesOutside
	case a.Unnamed:
		g.Code = ReadsUnnamed
	default:
		g.Code = ReadsOutside
	}
	return false, g
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

// editing are the commands that acceptEdits allows on literal paths inside the roots.
var editing = []string{"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"}

// edits reports whether a command only edits paths that it names literally inside the roots. The shell analysis lists all
// writes of sed only if its expression is plain.
func edits(f *Facts, i int) bool {
	c := &f.Commands[i]
	if !slices.Contains(editing, c.Name) || c.Unlisted || c.DenyOnly || len(c.Assigns) > 0 || len(c.Writes) == 0 ||
		slices.ContainsFunc(c.Words, func(w shell.Word) bool { return !w.Literal }) {
		return false
	}
	return !slices.ContainsFunc(f.Accesses, func(a Access) bool {
		copied := c.Name == "cp" && a.Dir && !a.Write // what is in such a directory, and where that would go, is not looked at
		return a.By == i+1 && (copied || !a.Inside)
	})
}
