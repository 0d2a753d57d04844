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

// needles returns the longest texts of which every match contains one, or nil if there is no such
// set. fold means in any case.
func needles(tree *syntax.Regexp) (set []string, fold bool) {
	fold = foldsAnywhere(tree)
	return required(tree, fold), fold
}

// foldsAnywhere reports whether some literal ignores case. Then all needles do: they are searched
// for in lower case.
func foldsAnywhere(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(tree.Sub, foldsAnywhere)
}

func required(tree *syntax.Regexp, fold bool) []string {
	switch tree.Op {
	case syntax.OpLiteral:
		return literal(tree.Rune, fold)
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0], fold)
	case syntax.OpRepeat:
		if tree.Min == 0 {
			return nil
		}
		return required(tree.Sub[0], fold)
	case syntax.OpConcat:
		var best []string
		for _, sub := range tree.Sub {
			if set := required(sub, fold); better(set, best) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range tree.Sub {
			set := required(sub, fold)
			if set == nil || len(all)+len(set) > maxNeedles {
				return nil
			}
			all = append(all, set...)
		}
		return all
	default:
		return nil
	}
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
