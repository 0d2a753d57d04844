// Plain brace expansion: {a,b} in a word without quotes or nesting, and {1..9} as a
// whole word. Everything else that could be one is left to the word, which then counts
// as unknown.

package shell

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxBraces = 64 // words that one word may become

// plainBraces are lists in a word and nothing else that could be a brace expansion, sequence a
// whole word of numbers without zeros in front, which would be kept.
var (
	plainBraces = regexp.MustCompile(`^[^{}\\\n]*(\{[^{},\\\n]*,[^{}\\\n]*\}[^{}\\\n]*)+$`)
	sequence    = regexp.MustCompile(`^\{(0|[1-9][0-9]?)\.\.(0|[1-9][0-9]?)\}$`)
)

// braces returns what a plain brace expansion becomes, or nil.
func braces(w *syntax.Word) []string {
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || len(w.Parts) != 1 || !strings.Contains(lit.Value, "{") {
		return nil
	}
	if ends := sequence.FindStringSubmatch(lit.Value); ends != nil {
		return counted(ends[1], ends[2])
	}
	if !plainBraces.MatchString(lit.Value) {
		return nil
	}
	words := []string{""}
	for rest := lit.Value; rest != ""; {
		var before, list string
		before, rest, _ = strings.Cut(rest, "{")
		list, rest, _ = strings.Cut(rest, "}")
		elems := strings.Split(list, ",")
		if len(words)*len(elems) > maxBraces {
			return nil
		}
		longer := make([]string, 0, len(words)*len(elems))
		for _, word := range words {
			for _, elem := range elems {
				longer = append(longer, word+before+elem)
			}
		}
		words = longer
	}
	return words
}

// counted returns the numbers from one text to another, or nil if there are too many.
func counted(first, last string) (numbers []string) {
	n, _ := strconv.Atoi(first)
	end, _ := strconv.Atoi(last)
	for step := cmp.Compare(end, n); len(numbers) < maxBraces; n += step {
		if numbers = append(numbers, strconv.Itoa(n)); n == end {
			return numbers
		}
	}
	return nil
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
