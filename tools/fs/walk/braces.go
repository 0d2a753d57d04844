// Expansion of alternatives in braces.

package walk

// MaxBraces is how many patterns the braces of one pattern may stand for.
const MaxBraces = 1_000

// Braces returns the patterns that "{a,b}" in pattern stands for, with nested and several pairs
// multiplied. Ignore files have no braces, but patterns of users and models do. ok is false if
// there are more than MaxBraces. A backslash escapes a brace, and so does a class in brackets.
// Unclosed braces stay as they are.
func Braces(pattern string) (all []string, ok bool) {
	open, parts, end := outerBraces(pattern)
	if open < 0 {
		return []string{pattern}, true
	}
	tails, ok := Braces(pattern[end+1:])
	if !ok {
		return nil, false
	}
	for _, part := range parts {
		heads, ok := Braces(part)
		if !ok || len(all)+len(heads)*len(tails) > MaxBraces {
			return nil, false
		}
		for _, head := range heads {
			for _, tail := range tails {
				all = append(all, pattern[:open]+head+tail)
			}
		}
	}
	return all, true
}

// outerBraces finds the first outer pair and the parts between its commas; open is -1 if there is
// none.
func outerBraces(pattern string) (open int, parts []string, end int) {
	open, depth, from := -1, 0, 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			if _, n := parseClass(pattern[i:]); n > 0 {
				i += n - 1
			}
		case c == '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case c == ',' && depth == 1:
			parts, from = append(parts, pattern[from:i]), i+1
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, append(parts, pattern[from:i]), i
			}
		}
	}
	return -1, nil, 0
}
