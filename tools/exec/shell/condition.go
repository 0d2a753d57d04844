// [[ ]]: which of its operators take a value for an expression or a name, and which
// files it asks about.

package shell

import "mvdan.cc/sh/v3/syntax"

// testExpr judges what is in [[ ]]. Its words are not split; the traps are the
// operators that take a value as an expression or as a name.
func (a *analyzer) testExpr(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		a.testExpr(x.X)
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); x.Op == syntax.TsRefVar || x.Op == syntax.TsVarSet && !(ok && syntax.ValidName(w.Lit())) {
			a.hidden(a.source(x), "a subscript in the name can run commands")
			a.testSubscript(x.X)
		}
		a.testExpr(x.X)
		if !listed(" ! -z -n -o -v -R -t ", x.Op.String()) {
			a.readTest(x.X)
		}
	case *syntax.BinaryTest:
		a.testExpr(x.X)
		a.testExpr(x.Y)
		if listed(" -eq -ne -le -ge -lt -gt ", x.Op.String()) && (!a.counted(x.X) || !a.counted(x.Y)) {
			a.hidden(a.source(x), "a value that is compared as a number can run commands; use [ ]")
			a.testSubscript(x.X)
			a.testSubscript(x.Y)
		}
		if listed(fileComparisons, x.Op.String()) {
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
	for part := range allParts(w) {
		p, param := part.(*syntax.ParamExp)
		if !plainPart(part) && !(param && simpleParam(p)) { // which has been walked
			a.unlisted()
			return
		}
	}
	a.look(a.word(w))
}
