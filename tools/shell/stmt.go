// Statements and compound commands: every construct of the grammar is either
// walked or refused, and walked even when refused, so that deny rules see all
// of it. Each function returns the program whose exit code the construct has,
// or "".

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyzer) stmts(list []*syntax.Stmt) (last string) {
	outer := a.variables
	for _, s := range list {
		last = a.stmt(s)
	}
	a.variables = outer
	return last
}

func (a *analyzer) stmt(s *syntax.Stmt) (last string) {
	if a.depth++; a.depth > maxDepth {
		a.fail(ErrTooDeep)
	}
	defer func() { a.depth-- }()
	outer, stdin := a.variables, a.stdin
	for _, r := range s.Redirs {
		a.redirect(r)
		a.feeds(r)
	}
	left := s.Background || s.Coprocess || s.Disown
	if left {
		a.refuse(a.source(s), "it is left running in the background")
	}
	last = a.command(s.Cmd)
	a.stdin = stdin
	if _, binary := s.Cmd.(*syntax.BinaryCmd); binary || left || len(s.Redirs) > 0 { // it may not have been set
		a.variables = outer
	}
	if s.Negated || s.Background {
		return ""
	}
	return last
}

func (a *analyzer) command(cmd syntax.Command) (last string) {
	switch c := cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		return a.call(c)
	case *syntax.Subshell:
		return a.isolated(c.Stmts)
	case *syntax.Block:
		return a.stmts(c.Stmts)
	case *syntax.BinaryCmd:
		return a.binary(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return a.stmt(c.Stmt)
		}
	case *syntax.IfClause:
		a.ifClause(c)
	case *syntax.WhileClause:
		a.loop(func() { a.stmts(c.Cond); a.stmts(c.Do) })
	case *syntax.ForClause:
		a.loop(func() { a.forClause(c) })
	case *syntax.CaseClause:
		a.caseClause(c)
	case *syntax.TestClause:
		return a.testClause(c)
	default:
		a.otherCommand(cmd)
	}
	return ""
}

// otherCommand walks what is never read-only.
func (a *analyzer) otherCommand(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.FuncDecl:
		text := a.source(c)
		a.hidden(text, "a function can stand in for any program")
		if a.forks(c) {
			a.add(Command{Name: c.Name.Value, Words: []Word{{Text: text}}, Text: text, ForkBomb: true})
		}
		a.stmt(c.Body)
		a.function(c)
	case *syntax.ArithmCmd:
		a.keyword("((", c, func() { a.arithmetic(c.X, a.source(c)) })
	case *syntax.LetClause:
		a.hidden(a.source(c), "arithmetic on a value can run commands")
		a.keyword("let", c, func() {
			for _, x := range c.Exprs {
				a.arithmetic(x, a.source(c))
			}
		})
	case *syntax.DeclClause:
		a.decl(c)
	case *syntax.CoprocClause:
		a.refuse(a.source(c), "it is left running in the background")
		a.stmt(c.Stmt)
	default:
		a.hidden(a.source(cmd), "this construct is not known to be harmless")
	}
}

// keyword lists a compound command that is not a program, so that an allow
// rule for the rest does not cover it, and judges it.
func (a *analyzer) keyword(name string, n syntax.Node, judge func()) {
	text := a.source(n)
	i := a.add(Command{Name: name, Words: []Word{{Text: text}}, Text: text})
	before := a.refusals
	a.inherited(text)
	a.as(i, judge)
	a.out.Commands[i].ReadOnly = a.refusals == before
}

func (a *analyzer) decl(c *syntax.DeclClause) {
	shows := a.source(c) == c.Variant.Value+" -p"
	if !shows {
		a.declared = true
		a.forget()
		a.refuse(a.source(c), "`"+c.Variant.Value+"` changes variables")
	}
	words := []Word{literalWord(c.Variant.Value)}
	for _, as := range c.Args {
		words = append(words, Word{Text: a.source(as), shape: many})
	}
	a.add(Command{Name: c.Variant.Value, Words: words, Text: a.source(c), Literal: true, ReadOnly: shows})
	for _, as := range c.Args {
		a.assign(as)
		if as.Naked && as.Value != nil {
			a.subscript(c.Variant.Value, a.word(as.Value))
		}
	}
}

// binary: what follows && or || or a pipe decides the exit code.
func (a *analyzer) binary(c *syntax.BinaryCmd) string {
	outer := a.variables
	a.stmt(c.X)
	if c.Op != syntax.AndStmt {
		a.variables = outer
	}
	stdin := a.stdin
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		a.stdin = a.printedBy([]*syntax.Stmt{c.X})
	}
	last := a.stmt(c.Y)
	a.stdin = stdin
	if c.Op != syntax.AndStmt {
		a.variables = outer
	}
	return last
}

func (a *analyzer) ifClause(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		a.stmts(c.Cond)
		a.stmts(c.Then)
	}
}

// loop refuses a change of directory inside: what stands before it in the
// text comes after it in the next round.
func (a *analyzer) loop(body func()) {
	moved, commands, redirects := a.moved, len(a.out.Commands), len(a.out.Redirects)
	a.moved = false
	a.rounds++
	body()
	a.rounds--
	if a.moved {
		a.refuse("cd", "it is inside a loop; put the body into ( )")
		a.cwds = nil
		a.unlisted()
		for i := commands; i < len(a.out.Commands); i++ {
			a.out.Commands[i].Unlisted = true
		}
		for i := redirects; i < len(a.out.Redirects); i++ {
			a.out.Redirects[i].Paths = nil
		}
	}
	a.moved = a.moved || moved
}

func (a *analyzer) forClause(c *syntax.ForClause) {
	outer := a.variables
	defer func() { a.variables = outer }()
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		if !ownName(l.Name.Value) {
			a.hidden(a.source(l), "only a variable in lower case is known to steer nothing")
		}
		a.variables = append(slices.Clip(a.variables), a.over(l))
	case *syntax.CStyleLoop:
		text := a.source(l)
		a.hidden(text, "arithmetic on a value can run commands")
		a.arithmetic(l.Init, text)
		a.arithmetic(l.Cond, text)
		a.arithmetic(l.Post, text)
	default:
		a.hidden(a.source(c), "this loop is not known to be harmless")
	}
	if c.Select {
		a.refuse("select", "it waits for an answer")
	}
	a.stmts(c.Do)
}

// over is the variable of a loop. That of a loop around it must not change
// behind its back.
func (a *analyzer) over(l *syntax.WordIter) *variable {
	if why := a.reset(l.Name.Value); why != "" {
		a.refuse(a.source(l), why)
	}
	items := a.words(l.Items)
	if slices.ContainsFunc(items, a.namesDevice) {
		a.refuse(a.source(l), "it gives a device another name")
	}
	return loopOver(l.Name.Value, items)
}

func (a *analyzer) caseClause(c *syntax.CaseClause) {
	a.expansions(c.Word)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.pattern(p)
		}
		a.stmts(item.Stmts)
	}
}

// pattern judges a word that is matched and not expanded to files: extended
// globs are harmless in it. Their inside is not parsed, but expanded it is.
func (a *analyzer) pattern(w *syntax.Word) {
	for _, part := range w.Parts {
		glob, ok := part.(*syntax.ExtGlob)
		switch {
		case !ok:
			a.expansion(part)
		case glob.Pattern == nil || strings.ContainsAny(glob.Pattern.Value, "$`<>\"'\\"):
			a.hidden(a.source(glob), "an expansion inside an extended glob is not followed")
		}
	}
}

// identifier: the name of a variable, without a subscript.
func identifier(x syntax.TestExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && syntax.ValidName(w.Lit())
}

// testClause judges [[ ]]. Its words are not split; the traps are the
// operators that take a value as an expression or as a name.
func (a *analyzer) testClause(c *syntax.TestClause) string {
	a.keyword("[[", c, func() {
		a.out.Commands[a.current].Names = true
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
	for _, part := range w.Parts {
		switch part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		default:
			a.unlisted()
			return
		}
	}
	a.read(a.word(w).path)
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

func (a *analyzer) numberTest(x syntax.TestExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && a.number(w)
}
