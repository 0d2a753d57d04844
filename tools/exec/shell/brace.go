// Plain brace expansion: {a,b} in a word without quotes or nesting, and {1..9} as a
// whole word. Everything else that could be one is left to the word, which then counts
// as unknown.

package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
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
func braces(w *syntax.Word) (words []string) {
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || len(w.Parts) != 1 || !strings.Contains(lit.Value, "{") || !plainBraces.MatchString(lit.Value) && !sequence.MatchString(lit.Value) {
		return nil
	}
	split := &syntax.Word{Parts: []syntax.WordPart{lit}}
	syntax.SplitBraces(split)
	for word, err := range expand.BracesSeq(nil, split) {
		if err != nil || len(words) == maxBraces {
			return nil
		}
		text := ""
		for _, part := range word.Parts {
			text += part.(*syntax.Lit).Value
		}
		words = append(words, text)
	}
	return words
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
