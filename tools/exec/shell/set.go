// Builtins that set variables of the script's own, by names that are written out:
// read, mapfile, printf -v, and declarations without attributes. It refuses every
// other name, and whatever would run a text.

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sets notes that a builtin sets a variable, or returns why it must not.
func (a *environment) sets(w Word) (why string) {
	if !w.Literal || !ownName(w.Text) {
		return "it sets `" + w.Text + "`, which may mean something to a program; a name in lower case does not"
	}
	return a.reset(w.Text)
}

// readFlags leave out -u, -i and -e: other descriptors, and the line editor.
var readFlags = &program{flags: "-rs -a: -d: -n: -N: -p: -t:", operands: textOperands, ordered: true}

// readCommand passes `read -r name ...` with names of the script's own.
func (a *environment) readCommand(args []Word) string {
	use, why := readFlags.parse(args)
	if why != "" {
		return why
	}
	names := append(use.operands, use.values("-a")...)
	for _, w := range names {
		if why := a.sets(w); why != "" {
			return why
		}
	}
	if len(names) == 0 {
		return "it sets REPLY; give it a name in lower case"
	}
	return ""
}

// mapfileFlags leave out -u, another descriptor, and -C and -c, which run a text.
var mapfileFlags = &program{flags: "-t -d: -n: -s: -O:", operands: textOperands, ordered: true}

// mapfile passes `mapfile -t name` with a name of the script's own.
func (a *environment) mapfile(args []Word) string {
	use, why := mapfileFlags.parse(args)
	switch {
	case why != "":
		return why
	case len(use.operands) != 1:
		return "it sets MAPFILE; give it one name in lower case"
	}
	for _, f := range use.flags {
		if f.Name != "-t" && f.Name != "-d" && !(f.Value.Literal && isCount(f.Value.Text)) { // it is arithmetic
			return f.Name + " takes a number"
		}
	}
	return a.sets(use.operands[0])
}

// printfSets takes -v and a name off the arguments of printf.
func (a *environment) printfSets(args []Word) (rest []Word, why string) {
	if len(args) < 2 || !args[0].Literal || args[0].Text != "-v" {
		return args, ""
	}
	if why = a.sets(args[1]); why == "" && len(args) == 2 {
		why = "-v sets a variable"
	}
	return args[2:], why
}

// setsPlainly: `local` and `declare` with names of the script's own, and perhaps values,
// are assignments, as long as they do not set an attribute of the variable.
func (a *environment) setsPlainly(c *syntax.DeclClause) bool {
	switch c.Variant.Value {
	case "local", "declare", "typeset":
	default:
		return false
	}
	for _, as := range c.Args {
		plain := as.Name != nil && ownName(as.Name.Value) && as.Index == nil && !as.Append && (as.Naked && as.Value == nil || !as.Naked)
		if !plain || as.Array != nil && !plainArray(as) {
			return false
		}
	}
	return len(c.Args) > 0 && (c.Variant.Value != "local" || a.inFunction > 0)
}

// declares judges them.
func (a *analyzer) declares(c *syntax.DeclClause) {
	text := a.source(c)
	assigns := a.assigns(c.Args)
	a.list(a.declaredBy(c), func() {
		a.inherited("", text)
		a.valuesMayRun(assigns)
		for j, as := range c.Args {
			if as.Naked { // empty in a function, and as it was elsewhere
				if why := a.reset(as.Name.Value); why != "" {
					a.refuse(text, why)
				}
				continue
			}
			a.setOwn(c.Args[j:j+1], assigns[j:j+1], text)
		}
	})
}

// onlySetter: the words are a builtin that sets variables and does nothing else.
func (a *analyzer) onlySetter(args []*syntax.Word) bool {
	for len(args) > 1 && (args[0].Lit() == "builtin" || args[0].Lit() == "command") {
		args = args[1:]
	}
	flag := ""
	if len(args) > 1 && plainWord(args[1]) {
		flag = a.word(args[1]).prefix
	}
	switch args[0].Lit() {
	case "mapfile", "readarray":
		return true
	case "printf":
		return strings.HasPrefix(flag, "-v")
	}
	return false
}
