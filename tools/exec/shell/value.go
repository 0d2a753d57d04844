// What is known, before the script runs, of what a few programs print, whatever they
// are asked.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainOutput reports what a substitution prints: numbers, or in any case no
// argument that begins with a dash when it is quoted (solid) or not (split).
// It may print nothing.
func plainOutput(p *syntax.CmdSubst) (number, solid, split bool) {
	if len(p.Stmts) != 1 {
		return false, false, false
	}
	s, fed := p.Stmts[0], false
	if pipe, ok := s.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe && !s.Negated && len(s.Redirs) == 0 {
		s, fed = pipe.Y, true
	}
	for _, r := range s.Redirs {
		if r.Op != syntax.RdrIn || r.N != nil {
			return false, false, false
		}
		fed = true
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 {
		return false, false, false
	}
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		if words[i] = w.Lit(); !unsplit(words[i]) || strings.ContainsAny(words[i], "{}~$") {
			return false, false, false
		}
	}
	switch number = printsNumber(words, fed); {
	case number, printsObject(words):
		return number, true, true
	}
	return false, printsPath(words), false
}

// printsHere: the working directory, and nothing else.
func printsHere(p *syntax.CmdSubst) bool {
	if len(p.Stmts) != 1 || len(p.Stmts[0].Redirs) > 0 {
		return false
	}
	c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(c.Assigns) == 0 && len(c.Args) == 1 && c.Args[0].Lit() == "pwd"
}

// onlyPrintsLocation: `cd DIR && pwd`. That shows the name of DIR, and that it is there.
func onlyPrintsLocation(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 || !plainStmt(stmts[0]) {
		return false
	}
	both, ok := stmts[0].Cmd.(*syntax.BinaryCmd)
	if !ok || both.Op != syntax.AndStmt || !plainStmt(both.X) || !plainStmt(both.Y) {
		return false
	}
	goes, ok := both.X.Cmd.(*syntax.CallExpr)
	if !ok || len(goes.Assigns) > 0 || len(goes.Args) < 2 || goes.Args[0].Lit() != "cd" {
		return false
	}
	for _, w := range goes.Args[1:] {
		if slices.ContainsFunc(w.Parts, moreThanNames) {
			return false
		}
	}
	tells, ok := both.Y.Cmd.(*syntax.CallExpr)
	return ok && len(tells.Assigns) == 0 && (len(tells.Args) == 1 || len(tells.Args) == 2 && (tells.Args[1].Lit() == "-P" || tells.Args[1].Lit() == "-L")) &&
		tells.Args[0].Lit() == "pwd"
}

// plainStmt: nothing but a command, with what it complains of thrown away perhaps.
func plainStmt(s *syntax.Stmt) bool {
	silent := func(r *syntax.Redirect) bool { return silencing(r) }
	return !s.Negated && !s.Background && !s.Coprocess && !s.Disown && !slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return !silent(r) })
}

// moreThanNames: something is run to work the part out, but for `dirname`.
func moreThanNames(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.DblQuoted:
		return slices.ContainsFunc(p.Parts, moreThanNames)
	case *syntax.CmdSubst:
		if len(p.Stmts) != 1 || !plainStmt(p.Stmts[0]) {
			return true
		}
		c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
		return !ok || len(c.Args) == 0 || c.Args[0].Lit() != "dirname"
	case *syntax.Lit, *syntax.SglQuoted, *syntax.ParamExp:
		return false
	}
	return true
}

func printsNumber(words []string, fed bool) bool {
	switch line := strings.Join(words, " "); line {
	case "wc -l", "wc -w", "wc -c", "wc -m":
		return fed
	case "nproc", "id -u", "id -g", "date +%s":
		return true
	}
	return false
}

// printsObject: names of objects, or an operand as written when there is no
// such object.
func printsObject(words []string) bool {
	if len(words) < 3 || words[0] != "git" || words[1] != "merge-base" && words[1] != "rev-parse" {
		return false
	}
	operands := words[2:]
	if words[1] == "rev-parse" && (operands[0] == "--short" || operands[0] == "--verify") {
		operands = operands[1:]
	}
	for _, w := range operands {
		if strings.HasPrefix(w, "-") {
			return false
		}
	}
	return true
}

// printsPath: an absolute path, which can hold blanks.
func printsPath(words []string) bool {
	switch strings.Join(words, " ") {
	case "pwd", "git rev-parse --show-toplevel":
		return true
	}
	return false
}
