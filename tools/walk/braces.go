// Alternatives in braces, taken apart. It does not know what the patterns that come out match.

package walk

// MaxBraces is how many patterns the braces of one may stand for; whoever needs more wants a list.
const MaxBraces = 1_000

// Braces returns the patterns that "{a,b}" in pattern stands for, with nested and several pairs multiplied; ignore files
// have no braces, but the patterns that people and models write do. ok is false when they are more than MaxBraces. A
// backslash makes a brace plain, and so does a class in brackets. Braces that are not closed stay as they are.
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

// outerBraces finds the first outer pair and what its commas part; open is -1 when there is none.
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
