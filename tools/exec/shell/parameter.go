// What ${...} may become, by how it is written: several arguments, a number, or just a
// value.

package shell

import "mvdan.cc/sh/v3/syntax"

// spreads: the expansion can become several arguments even inside quotes.
func spreads(p *syntax.ParamExp) bool {
	switch {
	case p.Param == nil:
		return true
	case p.Length:
		return false
	case p.Param.Value == "@", p.Excl, p.Index != nil:
		return true
	}
	return p.Exp != nil && p.Exp.Word != nil && !plainWord(p.Exp.Word) // a default may hold "$@"
}

// plainWord: literal text, quoted or not.
func plainWord(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if _, ok := inner.(*syntax.Lit); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// numeric: it becomes one number without sign.
func numeric(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Excl || p.Slice != nil || p.Repl != nil || p.Exp != nil {
		return false
	}
	if p.Length {
		return true
	}
	name := p.Param.Value
	return p.Index == nil && (name == "?" || name == "#" || name == "$")
}

// simpleName is the name in $x or ${x}, and "" where there is more to it.
func simpleName(p *syntax.ParamExp) string {
	if !simpleParam(p) {
		return ""
	}
	return p.Param.Value
}

// simpleParam: $x or ${x} and nothing more.
func simpleParam(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && p.Index == nil && p.Slice == nil &&
		p.Repl == nil && p.Names == 0 && p.Exp == nil
}
