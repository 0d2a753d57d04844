// What ${...} may become, by how it is written: several arguments, a number, or just a
// value.

package shell

import (
	"iter"

	"mvdan.cc/sh/v3/syntax"
)

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

// allParts are the parts of a word, those in double quotes one by one. quoted: it is one of these.
func allParts(w *syntax.Word) iter.Seq2[syntax.WordPart, bool] {
	return func(yield func(part syntax.WordPart, quoted bool) bool) {
		for _, part := range w.Parts {
			inner, quoted := []syntax.WordPart{part}, false
			if q, ok := part.(*syntax.DblQuoted); ok {
				inner, quoted = q.Parts, true
			}
			for _, part := range inner {
				if !yield(part, quoted) {
					return
				}
			}
		}
	}
}

// onlyPart returns the only part of a word, in double quotes or not; nil: there are more.
func onlyPart(w *syntax.Word) syntax.WordPart {
	if len(w.Parts) != 1 {
		return nil
	}
	if q, ok := w.Parts[0].(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		return q.Parts[0]
	}
	return w.Parts[0]
}

// plainWord: literal text, quoted or not.
func plainWord(w *syntax.Word) bool {
	for part := range allParts(w) {
		if !plainPart(part) {
			return false
		}
	}
	return true
}

func plainPart(part syntax.WordPart) bool {
	switch part.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
		return true
	}
	return false
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
