// Statements and compound commands: every construct of the grammar is either
// walked or refused, and walked even when refused, so that deny rules see all
// of it. Each function returns the program whose exit code the construct has,
// or "".

package shell

import (
	"regexp"
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
	if !a.walk(1) {
		return ""
	}
	if a.depth++; a.depth > maxDepth {
		a.fail(ErrTooDeep)
	}
	defer func() { a.depth-- }()
	outer, stdin := a.variables, a.stdin
	for _, r := range s.Redirs {
		a.as(noCommand, func() { a.redirection(r) })
		a.feeds(r)
	}
	left := s.Background || s.Coprocess || s.Disown
	if left {
		a.exit(s)
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
		for ; c != nil; c = c.Else {
			a.stmts(c.Cond)
			a.stmts(c.Then)
		}
	case *syntax.WhileClause:
		a.loop(func() { a.stmts(c.Cond); a.stmts(c.Do) })
	case *syntax.ForClause:
		a.loop(func() { a.forClause(c) })
	case *syntax.CaseClause:
		a.expansions(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				a.pattern(p)
			}
			a.stmts(item.Stmts)
		}
	case *syntax.TestClause:
		a.keyword("[[", c, func() {
			a.present().Names = true
			a.testExpr(c.X)
		})
		return "[["
	default:
		a.otherCommand(cmd)
	}
	return ""
}

// otherCommand walks what is never read-only.
func (a *analyzer) otherCommand(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.FuncDecl:
		a.declaration(c)
	case *syntax.ArithmCmd:
		a.keyword("((", c, func() { a.arithmetic(c.X, a.source(c)) })
	case *syntax.LetClause:
		a.hidden(a.source(c), "arithmetic on a value can run commands")
		a.forget()
		a.keyword("let", c, func() {
			for _, x := range c.Exprs {
				a.arithmetic(x, a.source(c))
			}
		})
	case *syntax.DeclClause:
		a.decl(c)
	case *syntax.CoprocClause:
		a.exit(c)
		a.stmt(c.Stmt)
		a.forget() // it is told in variables how to reach it
	default:
		a.hidden(a.source(cmd), "this construct is not known to be harmless")
	}
}

// exit notes that the script does not wait for the end of a part of it.
func (a *analyzer) exit(n syntax.Node) {
	a.refuse(a.source(n), "it is left running in the background")
	a.out.Background = true
}

// anywhere records that the commands from an index on run later, wherever the shell is
// then.
func (a *findings) anywhere(from int) {
	for i := range a.out.Commands[from:] {
		a.out.Commands[from+i].Dirs = nil
	}
}

// keyword lists a compound command that is not a program, so that an allow
// rule for the rest does not cover it, and judges it.
func (a *analyzer) keyword(name string, n syntax.Node, judge func()) {
	text := a.source(n)
	a.list(Command{Name: name, Words: []Word{{Text: text}}, Text: text}, func() {
		a.inherited("", text)
		judge()
	})
}

// showing finds declarations that print what there is, by plain names.
var showing = regexp.MustCompile(`^(declare|typeset) -[pfF]( [A-Za-z_][A-Za-z0-9_]*)*$`)

func (a *analyzer) decl(c *syntax.DeclClause) {
	if c.Variant.Value == "readonly" && !slices.ContainsFunc(c.Args, isMore) {
		a.fix(c)
		return
	}
	if a.setsPlainly(c) {
		a.declares(c)
		return
	}
	shows := len(c.Args) == 0 && c.Variant.Value != "local" || a.source(c) == c.Variant.Value+" -p" || showing.MatchString(a.source(c))
	before := len(a.refusals)
	if !shows {
		a.declared, a.haunted = true, true
		a.forget()
		a.refuse(a.source(c), "`"+c.Variant.Value+"` changes variables")
	}
	i := a.add(a.declaredBy(c))
	a.judged(i, before)
	for _, as := range c.Args {
		value := a.assign(as)
		if !shows && !value.harmless {
			a.exported = append(a.exported, value.name)
		}
		a.as(i, func() { a.valuesMayRun([]assign{value}) })
		if as.Naked && as.Value != nil {
			a.subscript(c.Variant.Value, a.word(as.Value))
		}
	}
}

// declaredBy is a declaration as a command.
func (a *origin) declaredBy(c *syntax.DeclClause) Command {
	words := []Word{literalWord(c.Variant.Value)}
	for _, as := range c.Args {
		words = append(words, Word{Text: a.source(as), shape: many})
	}
	return Command{Name: c.Variant.Value, Words: words, Text: a.source(c), Literal: true}
}

// binary: what follows && or || or a pipe decides the exit code.
func (a *analyzer) binary(c *syntax.BinaryCmd) string {
	outer := a.variables
	a.stmt(c.X)
	cwds := a.cwds
	if c.Op != syntax.AndStmt {
		a.variables = outer
	} else if arrived := a.arrivedBy(c.X); arrived != nil {
		a.cwds = arrived
	}
	stdin := a.stdin
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		a.stdin = a.printedBy([]*syntax.Stmt{c.X})
	}
	last := a.stmt(c.Y)
	a.stdin = stdin
	if c.Op != syntax.AndStmt {
		a.variables = outer
		return last
	}
	a.chained = a.arrivedBy(c.Y)
	if a.chained == nil {
		a.chained = a.cwds
	}
	a.cwds = eitherOf(cwds, a.cwds)
	return last
}

// arrivedBy is where the shell is when a statement that has just been walked has
// succeeded; nil: where it may be anyway.
func (a *place) arrivedBy(s *syntax.Stmt) []string {
	if s.Negated || s.Background || s.Coprocess {
		return nil
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Assigns) == 0 && len(c.Args) > 0 && c.Args[0].Lit() == "cd" {
			return a.arrived
		}
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt {
			return a.chained
		}
	}
	return nil
}

// eitherOf are the directories of both; nil: one of them is not known.
func eitherOf(x, y []string) []string {
	if x == nil || y == nil {
		return nil
	}
	for _, dir := range y {
		x = addTo(x[:len(x):len(x)], dir)
	}
	if len(x) > maxCwds {
		return nil
	}
	return x
}

func (a *analyzer) forClause(c *syntax.ForClause) {
	outer := a.variables
	defer func() { a.variables = outer }()
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		if !ownName(l.Name.Value) {
			a.hidden(a.source(l), "the variable may mean something to a program; a name in lower case does not")
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
	why := a.reset(l.Name.Value)
	items := a.words(l.Items)
	v := loopOver(l.Name.Value, items)
	if why != "" {
		a.refuse(a.source(l), why)
		v.lost = true
	}
	if slices.ContainsFunc(items, a.namesDevice) {
		a.refuse(a.source(l), "by another name a device could not be told from a file")
	}
	return v
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
