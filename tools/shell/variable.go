// Variables that a script sets for itself: which names steer nothing, and what
// is known of their values where they are used. It judges no program.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A variable is one that a for loop sets in its body, or that an assignment
// has set in the rest of its list.
type variable struct {
	name   string
	loop   bool
	solid  bool // no value is empty or begins with a dash
	single bool // without quotes, too, it becomes exactly one argument
	empty  bool // solid and single hold but that it may be empty
	text   string
	exact  bool // its value is text

	values   []string // what it may be, of a loop; patterns as written
	elements []string // of an array

	lost   bool // something else may have set it since
	used   bool // something was concluded from it
	rounds int  // loops around the place where it was set
}

// ownNames are names in upper case that scripts like to use and that neither
// bash nor a program of the table looks at.
const ownNames = " ALL BASE BRANCH COMMIT COUNT CURRENT DIR DIRS END FILE FILES FOUND HASH LAST LINE MATCHES N NAME NUM OUT OUTPUT PATTERN" +
	" PKG RC RESULT RESULTS ROOT SHA SIZE START STATUS TAG TARGET TOTAL VERSION "

// steeringNames are in lower case, and mean something to bash or to programs
// that go through a proxy.
const steeringNames = " auto_resume histchars http_proxy https_proxy ftp_proxy all_proxy no_proxy rsync_proxy "

// ownName: a variable of the script's own. All other names in upper case may
// mean something to the shell or to a program.
func ownName(s string) bool {
	return listed(ownNames, s) || !listed(steeringNames, s) && s != "" && s[0] > '9' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_0123456789") == ""
}

func loopOver(name string, items []Word) *variable {
	v := &variable{name: name, loop: true, values: valuesOf(items), solid: len(items) > 0, single: len(items) > 0}
	for _, w := range items {
		v.solid = v.solid && w.solid && w.shape < many && w.prefix != ""
		v.single = v.single && w.shape == known && unsplit(w.prefix)
	}
	return v
}

// assigned is what is known of a variable after NAME=value.
func assigned(as *syntax.Assign, value Word) *variable {
	v := &variable{name: as.Name.Value}
	switch {
	case as.Append || as.Value == nil:
	case value.Literal && value.Text != "":
		v.solid, v.single, v.text, v.exact = value.solid, unsplit(value.Text), value.Text, value.solid
		v.values = []string{value.Text}
	case len(as.Value.Parts) == 1:
		part := as.Value.Parts[0]
		if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			part = q.Parts[0]
		}
		if p, ok := part.(*syntax.CmdSubst); ok {
			_, v.solid, v.single = plainOutput(p)
			v.empty = true
		}
	}
	return v
}

// unsplit: bash neither splits the text nor takes it for a pattern.
func unsplit(s string) bool { return s != "" && !strings.ContainsAny(s, " \t\n*?[]\\") }

// variable finds what is known of a name.
func (a *analyzer) variable(name string) (v *variable, ok bool) {
	v = a.setter(name)
	if v == nil || v.lost {
		return nil, false
	}
	v.used = true
	return v, true
}

// setter is who has set a name last, if anybody has.
func (a *analyzer) setter(name string) *variable {
	for i := len(a.variables) - 1; i >= 0; i-- {
		if a.variables[i].name == name {
			return a.variables[i]
		}
	}
	return nil
}

// reset says that a name gets another value, and why that is not followed if
// it is not: what stands before it in a loop comes after it in the next round.
func (a *analyzer) reset(name string) (why string) {
	v := a.setter(name)
	switch {
	case v == nil:
		return ""
	case v.loop:
		return "the loop around it has the same variable"
	case v.used && a.rounds > v.rounds:
		return "it is set before the loop and in it"
	}
	v.lost = true
	return ""
}

// forget says that a command may have set any variable.
func (a *analyzer) forget() {
	for _, v := range a.variables {
		v.lost = true
	}
}

// setOwn judges assignments without a command: those of variables that only
// this script can see.
func (a *analyzer) setOwn(nodes []*syntax.Assign, assigns []assign, text string) {
	for i, as := range nodes {
		name := assigns[i].name
		switch {
		case as.Name == nil || as.Naked || as.Index != nil || as.Array != nil || !ownName(name):
			a.refuse(text, "an assignment can steer what runs later")
			if elements := a.elementsOf(as); len(elements) > 0 {
				a.variables = append(slices.Clip(a.variables), &variable{name: name, elements: elements})
			}
		case a.namesDevice(assigns[i].value):
			a.refuse(text, "it gives a device another name")
		default:
			if why := a.reset(name); why != "" {
				a.refuse(text, why)
			}
			v := assigned(as, assigns[i].value)
			v.rounds = a.rounds
			a.variables = append(a.variables[:len(a.variables):len(a.variables)], v)
		}
	}
}

// namesDevice: what is made of the value by adding to it may be a device.
func (a *analyzer) namesDevice(w Word) bool {
	dir := strings.TrimRight(w.path, "/")
	return a.opensDevice(w) || dir == "/dev" || dir == "/proc"
}

// onlySets: the script is nothing but assignments, so nothing in it uses them.
func onlySets(stmts []*syntax.Stmt) bool {
	for _, s := range stmts {
		if c, ok := s.Cmd.(*syntax.CallExpr); !ok || len(c.Args) > 0 {
			return false
		}
	}
	return len(stmts) > 0
}
