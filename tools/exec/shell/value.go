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
	line := strings.Join(words, " ")
	if number = printsNumber(line, fed); number || printsObject(words) {
		return number, true, true
	}
	switch line {
	case "pwd", "git rev-parse --show-toplevel": // an absolute path, which can hold blanks
		solid = true
	}
	return false, solid, false
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
	if !ok || both.Op != syntax.AndStmt {
		return false
	}
	goes, tells := plainCall(both.X), plainCall(both.Y)
	if goes == nil || tells == nil || len(goes.Args) < 2 || goes.Args[0].Lit() != "cd" || slices.ContainsFunc(goes.Args[1:], moreThanNames) {
		return false
	}
	flags := tells.Args[min(1, len(tells.Args)):]
	return len(tells.Args) > 0 && tells.Args[0].Lit() == "pwd" && (len(flags) == 0 || len(flags) == 1 && listed(" -P -L ", flags[0].Lit()))
}

// plainStmt: nothing but a command, with what it complains of thrown away perhaps.
func plainStmt(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && !s.Disown && !slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return !silencing(r) })
}

// plainCall returns the command of a plain statement that assigns nothing; nil: it is none.
func plainCall(s *syntax.Stmt) *syntax.CallExpr {
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && plainStmt(s) && len(c.Assigns) == 0 {
		return c
	}
	return nil
}

// moreThanNames: something is run to work the word out, but for `dirname`.
func moreThanNames(w *syntax.Word) bool {
	for part := range allParts(w) {
		switch p := part.(type) {
		case *syntax.CmdSubst:
			if len(p.Stmts) != 1 || !plainStmt(p.Stmts[0]) {
				return true
			}
			if c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr); !ok || len(c.Args) == 0 || c.Args[0].Lit() != "dirname" {
				return true
			}
		case *syntax.Lit, *syntax.SglQuoted, *syntax.ParamExp:
		default:
			return true
		}
	}
	return false
}

func printsNumber(line string, fed bool) bool {
	switch line {
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
	return !slices.ContainsFunc(operands, func(w string) bool { return strings.HasPrefix(w, "-") })
}
