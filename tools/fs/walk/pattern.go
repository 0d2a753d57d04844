// Matching of one line of an ignore file as git does it: by bytes, not characters.

package walk

import "strings"

// A pattern is one line. How it is compared depends on its shape, since most lines are a plain name
// or "*.ext".
type pattern struct {
	shape   shape
	negated bool    // "!": what it matches is not ignored
	dirOnly bool    // "/" at the end
	inPath  bool    // it has another slash: the whole path is compared, not only the last name
	literal string  // what the text must equal, begin with or end with
	rest    []token // globbed: what must match after literal
}

type shape uint8

const (
	exact    shape = iota // the text equals literal
	ending                // the text ends with literal
	globbed               // literal, then rest
	hopeless              // malformed: matches nothing
)

// parsePattern parses one line, without its line ending and trailing blanks.
func parsePattern(line string) pattern {
	var p pattern
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.negated, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.dirOnly, line = true, rest
	}
	if strings.Contains(line, "/") {
		p.inPath, line = true, strings.TrimPrefix(line, "/")
	}
	if rest, ok := strings.CutPrefix(line, "*"); ok && !p.inPath && literalLen(rest) == len(rest) {
		p.shape, p.literal = ending, rest
		return p
	}
	n := literalLen(line)
	p.literal = line[:n]
	if n == len(line) {
		return p
	}
	p.shape = globbed
	// git cuts off the literal start first, so that a "**" right after it counts as one at the
	// start.
	tokens, ok := compile(line[n:], p.inPath)
	if p.rest = tokens; !ok {
		p.shape = hopeless
	}
	return p
}

// literalLen is how many bytes of s come before the first special one.
func literalLen(s string) int {
	if i := strings.IndexAny(s, `*?[\`); i >= 0 {
		return i
	}
	return len(s)
}

// matches compares the pattern with path, which is relative to the ignore file's directory and ends
// in name.
func (p *pattern) matches(path, name string) bool {
	text := name
	if p.inPath {
		text = path
	}
	switch p.shape {
	case exact:
		return text == p.literal
	case ending:
		return strings.HasSuffix(text, p.literal)
	case globbed:
		rest, ok := strings.CutPrefix(text, p.literal)
		return ok && matchTokens(p.rest, rest)
	default:
		return false
	}
}

// A token is one step of a glob.
type token struct {
	kind tokenKind
	lit  byte
	set  *byteSet
}

type tokenKind uint8

const (
	literal   tokenKind = iota // lit
	anyByte                    // "?": not "/"
	class                      // "[...]": in set, not "/"
	star                       // any run without "/"
	levels                     // "**/": nothing, or any run that ends in "/"
	rest                       // "**/": nothing, or any run that ends in "/"
	unlimited                  // "**" before an escaped "/"
)

// compile parses a glob. In a path "**" between slashes crosses directories; everywhere else it is
// "*". ok is false if the glob matches nothing: a class without end, an unknown character class, a
// single backslash at the end.
func compile(s string, inPath bool) (tokens []token, ok bool) {
	for i := 0; i < len(s); {
		t, n := token{lit: s[i]}, 1
		switch s[i] {
		case '\\':
			if i+1 == len(s) {
				return nil, false
			}
			t.lit, n = s[i+1], 2
		case '?':
			t.kind = anyByte
		case '[':
			t.kind = class
			if t.set, n = parseClass(s[i:]); n == 0 {
				return nil, false
			}
		case '*':
			t.kind, n = stars(s, i, inPath)
		}
		tokens = append(tokens, t)
		i += n
	}
	return tokens, true
}

// stars returns what the run of stars at s[i] means, and how many bytes it takes.
func stars(s string, i int, inPath bool) (tokenKind, int) {
	end := i
	for end < len(s) && s[end] == '*' {
		end++
	}
	if !inPath || end-i < 2 || i > 0 && s[i-1] != '/' {
		return star, end - i
	}
	switch after := s[end:]; {
	case after == "":
		return rest, end - i
	case after[0] == '/':
		return levels, end - i + 1
	case strings.HasPrefix(after, `\/`):
		return unlimited, end - i
	default:
		return star, end - i
	}
}

func (t *token) takes(c byte) bool {
	switch t.kind {
	case literal:
		return t.lit == c
	case anyByte:
		return c != '/'
	default:
		return t.kind == class && c != '/' && t.set.has(c)
	}
}

// A mark is where to continue if what follows a star does not match: at token, with the star's run
// ending at text.
type mark struct{ token, text int }

// matchTokens matches all of text. It keeps one mark for the last star and one for the last run
// across directories. An earlier mark could give no match that the later one cannot, so the time is
// at most the product of the lengths.
func matchTokens(tokens []token, text string) bool {
	none := mark{token: -1}
	near, far := none, none
	at := mark{}
	for {
		if at.token == len(tokens) && at.text == len(text) {
			return true
		}
		if at.token < len(tokens) {
			t := &tokens[at.token]
			switch {
			case t.kind == rest:
				return true
			case t.kind == star:
				at.token++
				near = at
				continue
			case t.kind == levels || t.kind == unlimited:
				at.token++
				near, far = none, at
				continue
			case at.text < len(text) && t.takes(text[at.text]):
				at.token++
				at.text++
				continue
			}
		}
		switch {
		case near.token >= 0 && near.text < len(text) && text[near.text] != '/':
			near.text++
			at = near
		case far.token >= 0 && far.text < len(text):
			next := 1
			if tokens[far.token-1].kind == levels {
				if next = strings.IndexByte(text[far.text:], '/') + 1; next == 0 {
					return false
				}
			}
			far.text += next
			at, near = far, none
		default:
			return false
		}
	}
}
