// Plain brace expansion: {a,b} in a word without quotes or nesting, and {1..9} as a
// whole word. Everything else that could be one is left to the word, which then counts
// as unknown.

package shell

import (
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxBraces = 64 // words that one word may become

// braces returns what a plain brace expansion becomes, or nil.
func braces(w *syntax.Word) []string {
	if len(w.Parts) != 1 {
		return nil
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if ok && sequence.MatchString(lit.Value) {
		return count(lit.Value)
	}
	if !ok || !strings.Contains(lit.Value, "{") || strings.ContainsAny(lit.Value, "\\\n") {
		return nil
	}
	return expandBraces(lit.Value, maxBraces)
}

// sequence is {1..9}, without zeros in front, which would be kept.
var sequence = regexp.MustCompile(`^\{(0|[1-9][0-9]?)\.\.(0|[1-9][0-9]?)\}$`)

// count are the numbers of a sequence; nil: there are too many.
func count(s string) (numbers []string) {
	ends := sequence.FindStringSubmatch(s)
	from, _ := strconv.Atoi(ends[1])
	to, _ := strconv.Atoi(ends[2])
	step := 1
	if to < from {
		step = -1
	}
	if (to-from)*step >= maxBraces {
		return nil
	}
	for n := from; n != to+step; n += step {
		numbers = append(numbers, strconv.Itoa(n))
	}
	return numbers
}

func expandBraces(s string, budget int) []string {
	pre, rest, found := strings.Cut(s, "{")
	if !found {
		if strings.Contains(s, "}") {
			return nil
		}
		return []string{s}
	}
	body, post, closed := strings.Cut(rest, "}")
	if !closed || strings.Contains(body, "{") || !strings.Contains(body, ",") || strings.Contains(pre, "}") {
		return nil
	}
	elems := strings.Split(body, ",")
	tails := []string{""}
	if post != "" {
		tails = expandBraces(post, budget/len(elems))
	}
	if tails == nil || len(elems)*len(tails) > budget {
		return nil
	}
	out := make([]string, 0, len(elems)*len(tails))
	for _, elem := range elems {
		for _, tail := range tails {
			out = append(out, pre+elem+tail)
		}
	}
	return out
}

// braceLike: bash may expand braces here. It is generous: {} and {1} are the
// only common words that it lets pass.
func braceLike(s string) bool {
	i := strings.IndexByte(s, '{')
	if i < 0 {
		return false
	}
	for rest := s[i:]; ; {
		body, after, closed := strings.Cut(rest[1:], "}")
		if !closed || strings.Contains(body, ",") || strings.Contains(body, "..") || strings.Contains(body, "{") {
			return true
		}
		if i = strings.IndexByte(after, '{'); i < 0 {
			return false
		}
		rest = after[i:]
	}
}
