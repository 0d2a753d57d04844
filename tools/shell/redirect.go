// Redirections: /dev/null and copies of descriptors are free, reading a
// literal file is read-only, everything else is not.

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyzer) redirect(r *syntax.Redirect) {
	text := a.source(r)
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		a.hidden(text, "it sets a variable")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		a.heredoc(r)
		return
	case syntax.WordHdoc:
		a.expansions(r.Word)
		return
	}
	target := a.word(r.Word)
	if duplicate := r.Op == syntax.DplIn || r.Op == syntax.DplOut; duplicate && isDescriptor(a.source(r.Word)) {
		return
	}
	if target.Literal && target.Text == "/dev/null" {
		return
	}
	writes := r.Op != syntax.RdrIn && r.Op != syntax.DplIn
	if !a.muted {
		a.out.Redirects = append(a.out.Redirects, Redirect{Op: r.Op.String(), Target: target, Writes: writes})
	}
	if writes {
		a.refuse(text, "it writes a file")
		a.writeOperand(target)
		return
	}
	a.input(target, text)
}

// input judges < file. Bash itself opens connections for some names, so the
// name has to be literal.
func (a *analyzer) input(target Word, text string) {
	if !target.Literal {
		a.refuse(text, "the file is not literal")
		a.out.Unlisted = true
		return
	}
	if why := a.readOperand(target); why != "" {
		a.refuse(text, why)
	}
}

// isDescriptor: 2, - or 2-, without any quoting.
func isDescriptor(source string) bool {
	return source != "" && strings.Trim(strings.TrimSuffix(source, "-"), "0123456789") == ""
}

// heredoc judges the body, unless the delimiter is quoted. Only delimiters on
// which all readers of shell agree are taken.
func (a *analyzer) heredoc(r *syntax.Redirect) {
	quoted := false
	text := a.source(r.Word)
	inner := text
	switch {
	case len(text) > 2 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0]:
		quoted, inner = true, text[1:len(text)-1]
	case len(text) > 1 && text[0] == '\\':
		quoted, inner = true, text[1:]
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"
	if inner == "" || strings.Trim(inner, letters) != "" {
		a.hidden(text, "where this heredoc ends is not certain; use a plain word")
	}
	if !quoted {
		a.expansions(r.Hdoc)
	}
}
