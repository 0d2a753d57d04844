// Names with a subscript among the words of builtins: bash takes the subscript
// for arithmetic, and runs the substitutions in it, quoted or not. The judge of the
// builtin refuses such a name.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// subscripts lists, for deny and ask rules, what the subscripts run that a
// builtin evaluates among its words.
func (a *judge) subscripts(name string, args []Word) {
	switch name {
	case "printf", "wait":
		a.subscriptsAfter(name, args, "-v", "-p")
	case "test", "[":
		a.subscriptsAfter(name, args, "-v", "-R")
	case "read", "unset", "mapfile", "readarray", "getopts", "let", "declare", "typeset", "local", "export", "readonly":
		for _, w := range args {
			a.subscript(name, w)
		}
	}
}

// subscriptsAfter takes the words behind flags, or in one word with them.
func (a *judge) subscriptsAfter(name string, args []Word, flags ...string) {
	for i, w := range args {
		if i > 0 && slices.Contains(flags, args[i-1].Text) || slices.Contains(flags, w.Text[:min(2, len(w.Text))]) {
			a.subscript(name, w)
		}
	}
}

// subscript walks the substitutions in a literal text; those in any other have
// been walked as they stand.
func (a *analyzer) subscript(via string, w Word) {
	at := strings.IndexByte(w.prefix, '[')
	if w.shape != known || !strings.ContainsAny(w.prefix, "$`") || at < 0 {
		return
	}
	text := w.prefix[at+1:]
	if a.nested < maxScripts {
		a.apart(func() {
			a.nest(via, func() {
				a.scope.asDenied()
				a.src = text
				a.expansions(quotedText(text))
			})
		})
	}
}

// quotedText parses text as if it stood in double quotes; nil: that is not
// possible.
func quotedText(text string) (w *syntax.Word) {
	if len(text) > maxParsed || strings.Count(text, "(") > maxOpen {
		return nil
	}
	defer unparsed(&w)
	w, err := newParser(syntax.LangBash).Document(strings.NewReader(text))
	if err != nil {
		return nil
	}
	return w
}
