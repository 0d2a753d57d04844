// All rules of a session, compiled. They are asked list by list; within a list the order decides only which rule is named.

package permission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/text/ellipsis"
)

// Rules are a session's rules with their anchors. They are immutable and safe for concurrent use; nil has none.
type Rules struct {
	lists   [3][]anchored
	anchors Anchors
	guarded []guard // the anchors', in all their forms
}

// noRules stands for nil where a field is needed.
var noRules = &Rules{}

// anchored is a rule with the places that its path points to.
type anchored struct {
	Rule
	places []place
}

// rule returns the rule itself; nil for nil.
func (r *anchored) rule() *Rule {
	if r == nil {
		return nil
	}
	return &r.Rule
}

// Compile prepares rules, which ParseRule has passed, for being asked.
func Compile(rules []Rule, anchors Anchors) *Rules {
	compiled := &Rules{anchors: anchors}
	compiled.guard("which says what may be done", anchors.Guarded)
	compiled.guard("from which commands are run by their name", anchors.Programs)
	for _, rule := range rules {
		a := anchored{Rule: rule}
		if rule.subject&(paths|memories) != 0 {
			a.places = rule.places(anchors)
		}
		compiled.lists[rule.List] = append(compiled.lists[rule.List], a)
	}
	return compiled
}

// A guard is a file or directory that is protected besides the usual ones, and what for, as a clause.
type guard struct{ path, what string }

func (r *Rules) guard(what string, paths []string) {
	for _, path := range r.anchors.forms(paths...) {
		r.guarded = append(r.guarded, guard{path, what})
	}
}

// list returns the rules of one list.
func (r *Rules) list(which List) []anchored {
	if r == nil {
		return nil
	}
	return r.lists[which]
}

// first returns the first rule of a list for which holds reports true; nil: there is none.
func (r *Rules) first(which List, holds func(*anchored) bool) *anchored {
	rules := r.list(which)
	for i := range rules {
		if holds(&rules[i]) {
			return &rules[i]
		}
	}
	return nil
}

// firstForbidding returns the first deny rule, or else the first ask rule, for which holds reports true; nil: there is none.
func (r *Rules) firstForbidding(holds func(*anchored) bool) *anchored {
	return cmp.Or(r.first(DenyList, holds), r.first(AskList, holds))
}

// Holds reports whether a rule, of the deny or ask list, meets a call. A rule about commands also meets a script that does
// not parse, since its commands are unknown.
func (r *Rules) Holds(rule Rule, f *Facts) bool {
	one := anchored{Rule: rule, places: rule.places(cmp.Or(r, noRules).anchors)}
	if rule.subject&commands != 0 && f.Tool == "Bash" && f.Unknown.Cause != "" {
		return true
	}
	call := read(f)
	return one.fires(&call).Code != ""
}

// Removes returns the deny rule that takes a tool out of the pool altogether; nil: none does.
func (r *Rules) Removes(tool string) *Rule {
	return r.first(DenyList, func(a *anchored) bool { return a.subject == wholeTool && a.names(tool) }).rule()
}

// DeniesRead returns the rule that keeps a search or a walk from the file or directory at the real path: one that denies
// reading it, or one that asks first, unless that one has been asked already. nil: none does.
func (r *Rules) DeniesRead(real string, asked []Reason) *Rule {
	return r.firstHolding(real, "Read", asked)
}

// KeepsWriting returns the rule that denies writing the file or directory at the real path, or asks first.
func (r *Rules) KeepsWriting(real string) *Rule {
	return r.firstHolding(real, "Edit", nil)
}

func (r *Rules) firstHolding(real, tool string, asked []Reason) *Rule {
	return r.firstForbidding(func(a *anchored) bool {
		answered := func(g Reason) bool { return g.Rule != nil && g.Rule.is(&a.Rule) }
		return a.tool == tool && a.subject&paths != 0 && anyHolds(a.places, real, false) &&
			!(a.List == AskList && slices.ContainsFunc(asked, answered))
	}).rule()
}

// AboutReading reports whether any rule denies reading a path, or asks first.
func (r *Rules) AboutReading() bool { return r.forbid("Read", paths) }

// AboutWriting reports whether any rule denies writing a path, or asks first.
func (r *Rules) AboutWriting() bool { return r.forbid("Edit", paths) }

// UnreadablePaths returns the paths that deny and ask rules are about which keep files from being read, as far as a rule
// names one. all: each of them does.
func (r *Rules) UnreadablePaths() (paths []string, all bool) {
	all = true
	for _, rule := range slices.Concat(r.list(DenyList), r.list(AskList)) {
		for _, p := range rule.places {
			switch {
			case !rule.names("Read"):
			case p.whole:
				paths = append(paths, p.begin)
			default:
				all = false
			}
		}
	}
	return paths, all
}

// AboutParameters reports whether any rule tests a parameter of the input.
func (r *Rules) AboutParameters() bool { return r.forbid("", parameter) }

// forbid reports whether a deny or ask rule for the tool, or with no tool for any, is about that subject.
func (r *Rules) forbid(tool string, about subject) bool {
	return r.firstForbidding(func(a *anchored) bool { return (tool == "" || a.tool == tool) && a.subject&about != 0 }) != nil
}

// names reports whether the rule is about a tool of that name, by its name, a pattern or its MCP server.
func (r *Rule) names(tool string) bool {
	switch {
	case r.tool == tool:
		return true
	case strings.Contains(r.tool, "*"):
		return newPattern(r.tool).matches(tool)
	}
	server, isServer := strings.CutPrefix(r.tool, "mcp__")
	return isServer && !strings.Contains(server, "__") && strings.HasPrefix(tool, r.tool+"__")
}

// call is a call as rules see it, with what many rules ask for worked out once.
type call struct {
	*Facts
	texts     []text
	hosts     []contact
	mentioned []mention
	// overlooked: there are more words that may be paths than are held against rules.
	overlooked bool
}

func read(f *Facts) call {
	c := call{Facts: f, texts: make([]text, len(f.Commands))}
	for i := range f.Commands {
		command := &f.Commands[i]
		c.texts[i] = textOf(command)
		for _, host := range contacts(command) {
			if !command.DenyOnly || !slices.ContainsFunc(c.hosts, func(to contact) bool { return to.host == host }) {
				c.hosts = append(c.hosts, contact{host, hostName(host), i + 1})
			}
		}
	}
	c.mentioned, c.overlooked = mentionsOf(f)
	for _, host := range f.Hosts {
		if !f.Opaque || !isLoopback(host) { // as with those that commands name
			c.hosts = append(c.hosts, contact{host, hostName(host), 0})
		}
	}
	return c
}

// fires returns how a deny or ask rule meets the call; one without a Code: it does not.
func (r *anchored) fires(c *call) (g Reason) {
	named := r.names(c.Tool)
	if named && r.subject&wholeTool != 0 {
		return r.reason(c.Tool, "")
	}
	if value, given := c.Input[r.parameter]; given && named && r.subject&parameter != 0 && r.value.matches(value) {
		return r.reason(r.parameter+":"+ellipsis.Bytes(value, 60), "")
	}
	if r.subject&(paths|wholeTool) != 0 {
		if g = r.firesOnPath(c); g.Code != "" {
			return g
		}
	}
	if r.subject&commands != 0 {
		return r.firesOnCommand(c)
	}
	if r.subject&memories != 0 {
		return r.firesOnMemory(c)
	}
	for _, to := range c.hosts {
		if to.by == 0 && r.subject&hosts != 0 && hostFits(r.host, to.name) {
			return r.reason(to.host, "")
		}
	}
	return g
}

// firesOnPath: a Read rule meets every access, since what may not be read may not be edited either; an Edit rule those
// that write. A bare Read or Edit is about all paths.
func (r *anchored) firesOnPath(c *call) (g Reason) {
	if r.tool != "Read" && r.tool != "Edit" {
		return g
	}
	for _, a := range c.Accesses {
		if r.tool == "Edit" && !a.Write || a.Unnamed || a.Mentioned {
			continue
		}
		if r.subject&wholeTool != 0 || anyHolds(r.places, a.Real, a.Dir) || a.Named != a.Real && anyHolds(r.places, a.Named, a.Dir) {
			return r.reason(a.part(), "")
		}
	}
	for _, m := range c.mentioned { // a word of a command whose reads and writes are unknown may be a path, and a directory
		if anyHolds(r.places, m.path, true) {
			return r.reason(m.command.Text, "it names "+m.path+", and what it does with that is not known")
		}
	}
	return g
}

func (r *anchored) firesOnCommand(c *call) (g Reason) {
	for _, t := range c.texts {
		fires, doubt := t.deniedBy(&r.Rule)
		if fires || doubt != "" && g.Code == "" {
			g = r.reason(t.command.Text, doubt)
		}
		if fires {
			break
		}
	}
	return g
}

// part is the part of the call that names the access.
func (a *Access) part() string {
	return cmp.Or(a.Part, a.where())
}

// where returns the path for users, with where it leads if that is elsewhere.
func (a *Access) where() string {
	if a.Real == a.Named || a.Real == "" {
		return a.Named
	}
	return a.Named + ", which leads to " + a.Real
}

// reason returns the reason that the rule meets a part of the call; doubt is why that is not certain.
func (r *anchored) reason(part, doubt string) Reason {
	code := ByRule
	if doubt != "" {
		code = ByRuleDoubtful
	}
	return Reason{Code: code, Rule: &r.Rule, Part: part, Detail: doubt}
}
