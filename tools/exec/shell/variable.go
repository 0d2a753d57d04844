// Variables that a script sets for itself: which names steer nothing, and what
// is known of their values where they are used.

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
	number bool // it is a number, or empty

	texts    []text   // all that it may be, if that is known
	values   []string // what it may be, of a loop; patterns as written
	elements []string // of an array, those that are literal

	items    []Word // the elements of an array, if that is listed: all of them are known
	listed   bool
	function *function // it is not a variable but a function

	environ bool // it is in the environment of what the shell starts, with its value

	lost   bool // something else may have set it since
	used   bool // something was concluded from it
	rounds int  // loops around the place where it was set
}

// ownNames are names in upper case that scripts like to use and that neither
// bash nor a program of the table looks at.
const ownNames = " ALL BASE BRANCH COMMIT COUNT CURRENT DIR DIRS END FILE FILES FOUND HASH LAST LINE MATCHES NAME NUM OUT OUTPUT PATTERN" +
	" PKG RC RESULT RESULTS ROOT SHA SIZE START STATUS TAG TARGET TOTAL VERSION "

// steeringNames are in lower case, and mean something to bash or to programs
// that go through a proxy.
const steeringNames = " auto_resume histchars http_proxy https_proxy ftp_proxy all_proxy no_proxy rsync_proxy "

// ownName: a variable of the script's own. No program obeys a name of one letter. All
// other names in upper case may mean something to the shell or to a program.
func ownName(s string) bool {
	return listed(ownNames, s) || len(s) == 1 && s[0] >= 'A' && s[0] <= 'Z' || !listed(steeringNames, s) && s != "" && s[0] > '9' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_0123456789") == ""
}

func loopOver(name string, items []Word) *variable {
	v := &variable{name: name, loop: true, values: valuesOf(items), texts: textsOfAll(items), solid: len(items) > 0, single: len(items) > 0}
	for _, w := range items {
		v.solid = v.solid && w.solid && w.shape < many && w.prefix != ""
		v.single = v.single && w.shape == known && unsplit(w.prefix)
	}
	return v
}

// assigned is what is known of a variable after NAME=value.
func (a *analyzer) assigned(as *syntax.Assign, set assign) *variable {
	if as.Array != nil {
		return a.arraySet(as, set.items)
	}
	value := set.value
	v := &variable{name: as.Name.Value}
	if !as.Append && as.Value != nil && !strings.Contains(value.prefix, ":~") { // behind a colon it is a home directory
		v.texts = textsOf(value)
	}
	switch {
	case as.Append || as.Value == nil:
	case value.Literal && value.Text != "":
		v.solid, v.single = value.solid, unsplit(value.Text)
		v.values = []string{value.Text}
	default:
		switch p := onlyPart(as.Value).(type) {
		case *syntax.ArithmExp:
			v.number, v.single = true, true
		case *syntax.CmdSubst:
			v.number, v.solid, v.single = plainOutput(p)
			v.empty = true
		}
	}
	return v
}

// unsplit: bash neither splits the text nor takes it for a pattern.
func unsplit(s string) bool { return s != "" && !strings.ContainsAny(s, " \t\n*?[]\\") }

// variable finds what is known of a name.
func (a *environment) variable(name string) (v *variable, ok bool) {
	v = a.setter(name)
	if v == nil || v.lost || a.haunted {
		return nil, false
	}
	v.used = true
	return v, true
}

// setter returns the variable that was set last by that name; nil: none was.
func (a *environment) setter(name string) *variable {
	for i := len(a.variables) - 1; i >= 0; i-- {
		if a.variables[i].name == name {
			return a.variables[i]
		}
	}
	return nil
}

// reset records that a name gets another value, and returns why that is not followed if
// it is not: what stands before it in a loop comes after it in the next round.
func (a *environment) reset(name string) (why string) {
	v := a.setter(name)
	switch {
	case slices.Contains(a.fixed, name):
		return "it was made readonly before, so that it keeps its value"
	case v == nil:
		return ""
	case v.loop:
		why = "the loop around it has the same variable"
	case v.used && a.rounds > v.rounds:
		why = "it is set before the loop and in it"
	}
	v.lost = true
	return why
}

// These builtins may set variables, the second kind at any later time too, and
// the third kind those that their words name.
const (
	setters  = " . builtin command eval exec export getopts let local mapfile printf read readarray set shift source unset wait "
	haunters = " alias bind compgen complete enable shopt trap "
	namers   = " export getopts printf read "
)

// maySet forgets what a command that is not read-only may have changed. A program
// cannot: it is another process.
func (a *environment) maySet(words []Word) {
	name := words[0].Text
	a.haunted = a.haunted || listed(haunters, name)
	for i := 1; i < len(words) && listed(namers, name); i++ {
		set, _, _ := strings.Cut(words[i].Text, "=")
		a.exported = append(a.exported, set)
	}
	if _, function := a.functions[name]; function || listed(setters, name) {
		a.forget()
	}
}

// forget records that a command may have set any variable.
func (a *environment) forget() {
	for _, v := range a.variables {
		v.lost = v.lost || v.function == nil
	}
}

// setOwn judges assignments without a command: those of variables that only
// this script can see.
func (a *analyzer) setOwn(nodes []*syntax.Assign, assigns []assign, text string) {
	for i, as := range nodes {
		name := assigns[i].name
		if !a.walk(len(a.variables) / bytesOfWord) { // they are copied
			return
		}
		switch {
		case as.Name == nil || as.Naked || as.Index != nil || as.Array != nil && !plainArray(as) || !ownName(name):
			a.refuse(text, "the variable may mean something to what runs later; a name in lower case does not")
			a.reset(name)
			a.haunted = a.haunted || name == "CDPATH"
			if elements := a.elementsOf(as); len(elements) > 0 {
				a.variables = append(slices.Clip(a.variables), &variable{name: name, elements: elements})
			}
		case as.Array != nil && slices.ContainsFunc(assigns[i].items, a.namesDevice), a.namesDevice(assigns[i].value):
			a.refuse(text, "by another name a device could not be told from a file")
		default:
			v := a.assigned(as, assigns[i])
			why := a.reset(name)
			if v.rounds = a.rounds; why != "" {
				a.refuse(text, why)
				v.lost = true
			}
			a.variables = append(a.variables[:len(a.variables):len(a.variables)], v)
		}
	}
}

// isMore: it is more than NAME=VALUE among the words of a declaration.
func isMore(as *syntax.Assign) bool {
	return as.Naked || as.Name == nil || as.Index != nil || as.Array != nil || as.Append
}

// fix judges `readonly NAME=VALUE ...` as assignments that are the last ones.
func (a *analyzer) fix(c *syntax.DeclClause) {
	text := a.source(c)
	assigns := a.assigns(c.Args)
	a.list(a.declaredBy(c), func() {
		a.inherited("", text)
		a.setOwn(c.Args, assigns, text)
		if a.rounds > 0 && len(assigns) > 0 {
			a.refuse(text, "inside a loop it fails in the second round")
		}
		for _, as := range assigns {
			a.fixed = append(a.fixed, as.name)
		}
	})
}

// namesDevice: what is made of the value by adding to it may be a device.
func (a *place) namesDevice(w Word) bool {
	return a.opensDevice(w) || slices.ContainsFunc(w.paths(), func(p string) bool {
		dir := strings.TrimRight(p, "/")
		return dir == "/dev" || dir == "/proc"
	})
}

// onlySets: the script is nothing but assignments and declarations, so nothing in it uses them.
func (a *analyzer) onlySets(stmts []*syntax.Stmt) bool {
	for _, s := range stmts {
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			if len(c.Args) > 0 && !a.onlySetter(c.Args) {
				return false
			}
		case *syntax.DeclClause:
			if !a.setsPlainly(c) {
				return false
			}
		case *syntax.FuncDecl:
		default:
			return false
		}
	}
	return len(stmts) > 0
}
