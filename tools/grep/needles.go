// Needles: texts of which every match contains at least one, so that most of a file can be skipped
// without the regular expression.

package grep

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxNeedles is how many alternatives are searched for one by one. Each is a pass over the file, at
// about a tenth of a regular expression's cost.
const maxNeedles = 8

// foldsAnywhere reports whether some literal ignores case. Then all needles do: they are searched
// for in lower case.
func foldsAnywhere(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(tree.Sub, foldsAnywhere)
}

// parts returns lists of texts: every match contains one text of each. With fold they match in any
// case.
func parts(tree *syntax.Regexp, fold bool) (lists [][]string) {
	switch tree.Op {
	case syntax.OpLiteral:
		if text := literal(tree.Rune, fold); text != nil {
			lists = [][]string{text}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return parts(tree.Sub[0], fold)
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return parts(tree.Sub[0], fold)
		}
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			lists = append(lists, parts(sub, fold)...)
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range tree.Sub {
			list := best(parts(sub, fold))
			if list == nil || len(all)+len(list) > maxNeedles {
				return nil
			}
			all = append(all, list...)
		}
		return [][]string{all}
	}
	return lists
}

// best returns the list whose shortest text is the longest; nil: there is none.
func best(lists [][]string) (found []string) {
	for _, list := range lists {
		if better(list, found) {
			found = list
		}
	}
	return found
}

// literal returns the needle of a literal. With fold it is the longest run whose case depends only
// on ASCII: k and s have other forms outside ASCII.
func literal(runes []rune, fold bool) []string {
	if slices.Contains(runes, utf8.RuneError) {
		return nil
	}
	if !fold {
		return []string{string(runes)}
	}
	best := ""
	for run := range strings.FieldsFuncSeq(lowerASCII(runes), func(r rune) bool { return r >= utf8.RuneSelf || r == 'k' || r == 's' }) {
		if len(run) > len(best) {
			best = run
		}
	}
	if best == "" {
		return nil
	}
	return []string{best}
}

func lowerASCII(runes []rune) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, string(runes))
}

func better(set, than []string) bool {
	if set == nil || than == nil {
		return set != nil
	}
	a, b := shortest(set), shortest(than)
	return a > b || a == b && len(set) < len(than)
}

func shortest(set []string) int {
	n := len(set[0])
	for _, s := range set[1:] {
		n = min(n, len(s))
	}
	return n
}

// isLiteral reports whether tree is one text with its case.
func isLiteral(tree *syntax.Regexp) bool {
	for tree.Op == syntax.OpCapture {
		tree = tree.Sub[0]
	}
	return tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0
}

// holdsNewline reports whether the expression contains a line break.
func holdsNewline(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpLiteral && slices.Contains(tree.Rune, '\n') || slices.ContainsFunc(tree.Sub, holdsNewline)
}
