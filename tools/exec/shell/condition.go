// [[ ]]: which of its operators take a value for an expression or a name, and which
// files it asks about.

package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// identifier: the name of a variable, without a subscript.
func identifier(x syntax.TestExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && syntax.ValidName(w.Lit())
}

// testClause judges [[ ]]. Its words are not split; the traps are the
// operators that take a value as an expression or as a name.
func (a *analyzer) testClause(c *syntax.TestClause) string {
	a.keyword("[[", c, func() {
		a.present().Names = true
		a.testExpr(c.X)
	})
	return "[["
}

func (a *analyzer) testExpr(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		a.testExpr(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsRefVar || x.Op == syntax.TsVarSet && !identifier(x.X) {
			a.hidden(a.source(x), "a subscript in the name can run commands")
			a.testSubscript(x.X)
		}
		a.testExpr(x.X)
		if fileTest(x.Op) {
			a.readTest(x.X)
		}
	case *syntax.BinaryTest:
		a.testExpr(x.X)
		a.testExpr(x.Y)
		if numericTest(x.Op) && (!a.numberTest(x.X) || !a.numberTest(x.Y)) {
			a.hidden(a.source(x), "a value that is compared as a number can run commands; use [ ]")
			a.testSubscript(x.X)
			a.testSubscript(x.Y)
		}
		if x.Op == syntax.TsNewer || x.Op == syntax.TsOlder || x.Op == syntax.TsDevIno {
			a.readTest(x.X)
			a.readTest(x.Y)
		}
	case *syntax.Word:
		a.pattern(x)
	default:
		a.hidden("[[", "this test is not known to be harmless")
	}
}

// testSubscript lists what a literal operand runs that is taken for arithmetic.
func (a *analyzer) testSubscript(x syntax.TestExpr) {
	if w, ok := x.(*syntax.Word); ok && plainWord(w) {
		a.subscript("[[", a.word(w))
	}
}

// readTest lists the file that a test asks about.
func (a *analyzer) readTest(x syntax.TestExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	if p, ok := w.Parts[0].(*syntax.ParamExp); ok && len(w.Parts) == 1 { // it is not split here
		w = &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{p}}}}
	}
	if slices.ContainsFunc(w.Parts, moreThanValues) { // which has been walked
		a.unlisted()
		return
	}
	a.look(a.word(w))
}

// moreThanValues: there is more to it than text and the values of variables.
func moreThanValues(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
		return false
	case *syntax.DblQuoted:
		return slices.ContainsFunc(p.Parts, moreThanValues)
	case *syntax.ParamExp:
		return !simpleParam(p)
	}
	return true
}

func fileTest(op syntax.UnTestOperator) bool {
	switch op {
	case syntax.TsNot, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsOptSet, syntax.TsVarSet, syntax.TsRefVar, syntax.TsFdTerm:
		return false
	}
	return true
}

func numericTest(op syntax.BinTestOperator) bool {
	switch op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		return true
	}
	return false
}

func (a *environment) numberTest(x syntax.TestExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && a.number(w)
}
