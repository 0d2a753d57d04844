package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The builtins that leave something behind: the first kind may change the working directory or any
// exported variable, or run text that does. The second kind sets the variables that its words name.
// mv is not a builtin: it may move the working directory itself.
const (
	leaving = " . alias builtin cd command compgen complete enable eval export hash mv popd pushd shopt source trap wait "
	naming  = " getopts mapfile read readarray unset "
)

// Leaves reports whether bash may end the script in another working directory or with other exports
// than it began with. isExported reports whether a variable of that name is exported at the
// beginning. Leaves returns true wherever it is not sure. It does not see through a script that
// hides what it does: what is left counts only for the script's own session.
func Leaves(script string, isExported func(name string) bool) bool {
	stmts, err := parse(script, syntax.LangBash)
	if err != nil || strings.Contains(script, "\r") { // bash takes a carriage return for part of a word
		return true
	}
	l := leavings{isExported: isExported}
	for _, s := range stmts {
		syntax.Walk(s, l.visit)
	}
	return l.found
}

type leavings struct {
	isExported func(name string) bool
	found      bool
}

// visit looks at one node, and reports whether the nodes in it matter too.
func (l *leavings) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		return false // another process
	case *syntax.LetClause, *syntax.CoprocClause:
		l.found = true
	case *syntax.DeclClause:
		l.found = l.found || n.Variant.Value != "local"
	case *syntax.CallExpr:
		l.call(n)
	case *syntax.WordIter:
		l.sets(n.Name)
	case *syntax.Redirect:
		l.found = l.found || n.N != nil && strings.HasPrefix(n.N.Value, "{")
	case *syntax.ParamExp:
		if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			l.sets(n.Param)
		}
	case *syntax.BinaryArithm:
		if n.Op == syntax.Assgn || n.Op >= syntax.AddAssgn && n.Op <= syntax.ShrAssgn {
			l.setsArithm(n.X)
		}
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			l.setsArithm(n.X)
		}
	}
	return !l.found
}

// call judges a simple command, or assignments without one.
func (l *leavings) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		for _, as := range c.Assigns {
			l.sets(as.Name)
		}
		return
	}
	name, args := c.Args[0].Lit(), c.Args[1:]
	switch {
	case name == "", strings.ContainsAny(name, `\{*?[`), listed(leaving, name):
		l.found = true
	case name == "set":
		l.found = slices.ContainsFunc(args, exports)
	case name == "printf":
		l.found = len(args) > 0 && len(args[0].Parts) > 0 && (args[0].Lit() == "-v" || isExpansion(args[0].Parts[0]))
	case listed(naming, name):
		for _, arg := range args {
			l.setsNamed(arg)
		}
		l.found = l.found || l.isExported("REPLY") || l.isExported("MAPFILE") || l.isExported("OPTARG") || l.isExported("OPTIND")
	}
}

// exports reports whether an argument of set may turn on that variables are exported.
func exports(arg *syntax.Word) bool {
	text := arg.Lit()
	switch {
	case text == "", text == "allexport", text == "keyword", text == "posix":
		return true
	}
	return (text[0] == '-' || text[0] == '+') && strings.ContainsAny(text, "ak")
}

func isExpansion(part syntax.WordPart) bool {
	switch part.(type) {
	case *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		return false
	}
	return true
}

func (l *leavings) sets(name *syntax.Lit) {
	l.found = l.found || name == nil || l.isExported(name.Value)
}

func (l *leavings) setsArithm(x syntax.ArithmExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		l.found = true
		return
	}
	l.setsNamed(w)
}

// setsNamed judges a word that names a variable, if it is no flag or value.
func (l *leavings) setsNamed(w *syntax.Word) {
	name := w.Lit()
	l.found = l.found || name == "" && isExpansion(w.Parts[0]) || strings.ContainsAny(name, "[\\") || l.isExported(name)
}
