// Arrays that a script sets for itself, and "${NAME[@]}" of them, which becomes their
// elements. Only elements that are written as a list are known.

package shell

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// plainArray: NAME=(WORD ...), with or without a plus, and no subscripts.
func plainArray(as *syntax.Assign) bool {
	return as.Name != nil && as.Index == nil && as.Array != nil && !as.Naked &&
		!slices.ContainsFunc(as.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Index != nil || e.Value == nil })
}

// arraySet is what is known of a variable after NAME=(...) or NAME+=(...).
func (a *analyzer) arraySet(as *syntax.Assign, words []Word) *variable {
	v := &variable{name: as.Name.Value, elements: a.elementsOf(as)}
	v.list(words)
	if !as.Append {
		return v
	}
	before := a.setter(v.name)
	if v.listed = before != nil && before.listed && before.rounds == a.rounds && !a.haunted && !before.lost; v.listed {
		v.list(slices.Concat(before.items, words))
	}
	return v
}

// maxItems bounds how many elements of an array are followed.
const maxItems = 256

// list notes all elements of an array, if they are not too many.
func (v *variable) list(words []Word) {
	if v.listed = len(words) <= maxItems; v.listed {
		v.items = slices.Clone(words)
		for i, w := range words {
			v.items[i] = w.later()
		}
	}
}

// later is the word as it is where it is used later, in another directory perhaps.
func (w Word) later() Word {
	texts := textsOf(w)
	next := Word{Text: w.Text, shape: w.shape, prefix: w.prefix, solid: w.solid}
	switch {
	case w.pipe || w.input || w.shape == many && texts == nil:
		return Word{Text: w.Text, shape: many}
	case w.Literal:
		next.become([]text{{prefix: w.Text}})
	case texts != nil && w.shape != many:
		next.become(texts)
	}
	return next
}

// spread returns what "${NAME[@]}" and "$@" become as a whole word; ok is false for
// any other word, and where that is not known.
func (a *analyzer) spread(w *syntax.Word) (words []Word, ok bool) {
	p, param := onlyPart(w).(*syntax.ParamExp)
	if !param || !allElements(p) && !keys(p) {
		return nil, false
	}
	if q, quoted := w.Parts[0].(*syntax.DblQuoted); !quoted || q.Dollar {
		return nil, false
	}
	v, known := a.variable(p.Param.Value)
	switch {
	case !known || !v.listed:
		return nil, false
	case keys(p):
		return v.numbers()
	}
	for _, item := range v.items {
		item.spread = a.source(w)
		words = append(words, item)
	}
	return words, true
}

// numbers are the subscripts of the elements; ok is false where it is not known how
// many there are.
func (v *variable) numbers() (words []Word, ok bool) {
	for i, item := range v.items {
		if item.shape > one {
			return nil, false
		}
		words = append(words, literalWord(strconv.Itoa(i)).later())
	}
	return words, true
}

// allElements: ${NAME[@]} or $@, and nothing more.
func allElements(p *syntax.ParamExp) bool {
	plain := *p
	plain.Index = nil
	if !simpleParam(&plain) {
		return false
	}
	index, ok := p.Index.(*syntax.Word)
	return p.Index == nil && p.Param.Value == "@" || ok && index.Lit() == "@"
}
