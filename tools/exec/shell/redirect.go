// Redirections: /dev/null and copies of descriptors are free, reading a
// literal file is read-only, everything else is not. For some names bash opens
// no file but a connection.

package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// highDescriptor is the reason against descriptors of more than one digit: the
// process that starts the shell keeps its own among them.
const highDescriptor = "a descriptor over 9 may be the caller's"

func (a *analyzer) redirection(r *syntax.Redirect) {
	text := a.source(r)
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		a.hidden(text, "it sets a variable")
		a.forget()
	} else if r.N != nil && len(r.N.Value) > 1 {
		a.hidden(text, highDescriptor)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		a.heredoc(r)
		return
	case syntax.WordHdoc:
		a.expansions(r.Word)
		return
	}
	if p, ok := onlyPart(r.Word).(*syntax.ProcSubst); ok && r.Op == syntax.RdrIn && p.Op == syntax.CmdIn { // opens nothing but a pipe from the list
		a.expansion(p)
		return
	}
	target := a.word(r.Word)
	if duplicate := r.Op == syntax.DplIn || r.Op == syntax.DplOut; duplicate && descriptor.MatchString(a.source(r.Word)) {
		if len(strings.TrimSuffix(a.source(r.Word), "-")) > 1 {
			a.hidden(text, highDescriptor)
		}
		return
	}
	if target.is("/dev/null") || a.scope.remote {
		return
	}
	if a.contact(target) {
		a.refuse(text, "it makes a connection")
		return
	}
	writes := r.Op != syntax.RdrIn && r.Op != syntax.DplIn
	found := Redirect{Op: r.Op.String(), Target: target, Text: text, Writes: writes}
	if !target.holds() || !writes && target.texts != nil {
		found.Paths = a.seen(target.paths()...)
	}
	a.out.Redirects = append(a.out.Redirects, found)
	if writes {
		a.refuse(text, "it writes a file")
		a.writeOperand(Fills, target)
		return
	}
	a.input(target, text)
}

// connection matches the names for which bash connects to a host.
var connection = regexp.MustCompile(`^/dev/(?:tcp|udp)/([^/]+)/`)

// contact lists the host that a redirection connects to, and reports whether it does. The value of a
// variable is never such a name: it counts as unknown.
func (a *findings) contact(target Word) bool {
	host := firstGroup(connection, target.Text)
	if host == "" || !target.Literal {
		return false
	}
	if !slices.Contains(a.out.Hosts, host) {
		a.out.Hosts = append(a.out.Hosts, host)
	}
	return true
}

// input judges < file. Bash itself opens connections for some names, so all
// that the name may be has to be known.
func (a *listing) input(target Word, text string) {
	if !target.foretold() {
		a.refuse(text, "which file it opens is not known beforehand")
		if a.read(target.paths()...); target.path == "" || target.holds() {
			a.unlisted()
		}
		return
	}
	if why := a.readOperand(target); why != "" {
		a.refuse(text, why)
	}
}

// descriptor is 2, - or 2-, without any quoting.
var descriptor = regexp.MustCompile(`^([0-9]+-?|-)$`)

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
	if !quoted && r.Hdoc != nil {
		for _, part := range r.Hdoc.Parts {
			a.quotedExpansion(part)
		}
	}
}
