// Expansions: what bash runs or changes while it works a word out. Only what is listed
// here as harmless passes.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// RunsCommands reports whether bash may run a command to work the word out.
func (w Word) RunsCommands() bool {
	runs := func(mark string) bool { return strings.Contains(w.Text, mark) }
	return !w.Literal && slices.ContainsFunc([]string{"$(", "`", "<(", ">(", "${ ", "${|", "@P"}, runs)
}

// expansion judges one part of a word, and walks what it runs.
func (a *analyzer) expansion(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
	case *syntax.DblQuoted:
		if p.Dollar {
			a.hidden(a.source(p), "a translated string comes from a file")
		}
		for _, inner := range p.Parts {
			a.quotedExpansion(inner)
		}
	case *syntax.ParamExp:
		a.param(p)
	case *syntax.CmdSubst:
		a.substitution(p)
	case *syntax.ProcSubst:
		if p.Op != syntax.CmdIn {
			a.refuse(a.source(p), "only <( ) is read-only")
		}
		stdin := a.stdin
		if p.Op != syntax.CmdIn {
			a.stdin = &feed{}
		}
		a.isolated(p.Stmts)
		a.stdin = stdin
	case *syntax.ArithmExp:
		a.arithmetic(p.X, a.source(p))
	default:
		a.hidden(a.source(part), "this kind of expansion is not known to be harmless")
	}
}

// quotedExpansion judges a part of what stands in double quotes or in a
// heredoc. There bash takes a single quote inside ${...} for a character like
// any other, or not, depending on the operator; the parser takes it for a quote.
func (a *analyzer) quotedExpansion(part syntax.WordPart) {
	if p, ok := part.(*syntax.ParamExp); ok && singleQuoted(p) {
		a.hidden(a.source(p), "a single quote inside an expansion in double quotes may not quote")
	}
	a.expansion(part)
}

func singleQuoted(p *syntax.ParamExp) bool {
	for _, w := range wordsIn(p) {
		for _, part := range w.Parts {
			inner, param := part.(*syntax.ParamExp)
			if _, quoted := part.(*syntax.SglQuoted); quoted || param && singleQuoted(inner) {
				return true
			}
		}
	}
	return false
}

// wordsIn are the words inside ${...}.
func wordsIn(p *syntax.ParamExp) (words []*syntax.Word) {
	if p.Repl != nil {
		words = append(words, p.Repl.Orig, p.Repl.With)
	}
	if p.Exp != nil {
		words = append(words, p.Exp.Word)
	}
	return slices.DeleteFunc(words, func(w *syntax.Word) bool { return w == nil })
}

func (a *analyzer) substitution(p *syntax.CmdSubst) {
	if p.TempFile || p.ReplyVar {
		a.hidden(a.source(p), "this kind of substitution is not known to be harmless")
	}
	if p.Backquotes && strings.Contains(a.source(p), `\`) {
		a.hidden(a.source(p), "a backslash inside backquotes changes what is run; use $( )")
	}
	a.isolated(p.Stmts)
}

// expansions judges all parts of a word whose value does not matter.
func (a *analyzer) expansions(w *syntax.Word) {
	if w == nil {
		return
	}
	for _, part := range w.Parts {
		a.expansion(part)
	}
}

// inside judges a word inside ${...}. There bash expands <( ) and >( ) too; the
// parser takes them for text.
func (a *analyzer) inside(w *syntax.Word) {
	if text := a.source(w); strings.Contains(text, "<(") || strings.Contains(text, ">(") {
		a.hidden(text, "a process substitution inside an expansion is not followed")
	}
	a.expansions(w)
}

// param judges ${...}. Refused: what runs text (@P), what reads a name from a
// value (!), what assigns (=), and arithmetic that a value takes part in.
func (a *analyzer) param(p *syntax.ParamExp) {
	text := a.source(p)
	switch {
	case p.Param == nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0:
		a.hidden(text, "this form is not bash")
	case keys(p):
	case p.Excl || p.Names != 0:
		a.hidden(text, "the value of a variable is taken as a name, which can run commands")
	case p.Index != nil && !plainIndex(p.Index) && !a.counted(p.Index):
		a.hidden(text, "a subscript is arithmetic, which can run commands")
		a.arithmetic(p.Index, text)
	}
	if p.Slice != nil {
		a.arithmetic(p.Slice.Offset, text)
		a.arithmetic(p.Slice.Length, text)
	}
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			a.hidden(text, "it sets a variable")
			a.forget()
		case syntax.OtherParamOps:
			a.hidden(text, "`@` can run what the variable holds")
		}
	}
	for _, w := range wordsIn(p) {
		a.inside(w)
	}
}

// counted: a subscript or operand that is a number, even that of a loop.
func (a *environment) counted(x syntax.Node) bool {
	w, ok := x.(*syntax.Word)
	return ok && a.number(w)
}

// keys: ${!NAME[@]}, the subscripts that an array has.
func keys(p *syntax.ParamExp) bool {
	index, ok := p.Index.(*syntax.Word)
	return ok && p.Excl && (index.Lit() == "@" || index.Lit() == "*") && !p.Length && p.Names == 0 && p.Exp == nil && p.Slice == nil &&
		p.Repl == nil && p.Flags == nil && !p.Width && !p.IsSet && len(p.Modifiers) == 0 && syntax.ValidName(p.Param.Value)
}

// plainIndex: [@], [*] or a number.
func plainIndex(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*" || isNumber(w.Lit()))
}

// arithmetic judges an expression. Bash evaluates the value of a variable as
// an expression again, in which a subscript can run commands: so numbers,
// counts, and variables that the script has set to numbers only.
func (a *analyzer) arithmetic(x syntax.ArithmExpr, text string) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		if op := x.Op.String(); strings.HasSuffix(op, "=") && !listed(" == != <= >= ", op) {
			a.hidden(text, "it sets a variable")
			a.forget()
		}
		a.arithmetic(x.X, text)
		a.arithmetic(x.Y, text)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			a.hidden(text, "it sets a variable")
			a.forget()
		}
		a.arithmetic(x.X, text)
	case *syntax.ParenArithm:
		a.arithmetic(x.X, text)
	case *syntax.Word:
		if !a.number(x) {
			a.hidden(text, "arithmetic on a value can run commands")
			if plainWord(x) {
				a.subscript("((", a.word(x))
			}
		}
		a.expansions(x)
	default:
		a.hidden(text, "this arithmetic is not known to be harmless")
	}
}

// number: the word is a literal number, a count such as $# and ${#x}, or what a
// program prints that prints numbers.
func (a *environment) number(w *syntax.Word) bool {
	if constant(w.Lit()) || a.numeral(w.Lit()) {
		return true
	}
	switch p := onlyPart(w).(type) {
	case *syntax.Lit:
		return constant(p.Value)
	case *syntax.SglQuoted:
		return !p.Dollar && constant(p.Value)
	case *syntax.ParamExp:
		return numeric(p) || a.numeral(simpleName(p))
	case *syntax.ArithmExp:
		return true // judged by itself
	case *syntax.CmdSubst:
		number, _, _ := plainOutput(p)
		return number
	}
	return false
}

// numeral: the script itself has set the variable, to a number whatever it is.
func (a *environment) numeral(name string) bool {
	if name == "" {
		return false
	}
	v, ok := a.variable(name)
	return ok && v.number || ok && len(v.texts) > 0 && !slices.ContainsFunc(v.texts, func(t text) bool {
		return t.glob || t.prefix == "" || strings.Trim(t.prefix, "0123456789") != ""
	})
}

// constant: a number in any base. What begins with a digit is never a name.
func constant(s string) bool {
	return isNumber(s) || s != "" && s[0] >= '0' && s[0] <= '9' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#") == ""
}

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}
