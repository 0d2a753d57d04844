// A word is what one place of a command can become: a known argument, one
// unknown argument, or any number of them.

package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Word is one word of a command.
type Word struct {
	// Text is the argument that the program gets if Literal is set, otherwise the
	// source as written.
	Text string
	// Literal is set if no expansion of any kind takes part.
	Literal bool

	shape shape
	// prefix is what every argument that the word becomes begins with, as far
	// as known (shape many: only of the first). For shape known it is all.
	prefix string
	// solid: what it becomes does not begin with a dash.
	solid bool
	path  string // what it names as a file, the first if it may name several; "" when that is not known
	more  []string
	below bool   // what it names lies below these
	texts []text // all that it becomes, if variables take part and they are known
	pipe  bool   // a process substitution: names no file of the tree
	input bool   // stands for what xargs reads and appends
	// spread is the source, as written, where that is "${NAME[@]}" and the word one of the
	// elements.
	spread string
	feed   int // of a process substitution: which of those in the script it is, from 1
}

type shape uint8

const (
	known shape = iota // exactly prefix
	one                // exactly one argument that begins with prefix
	files              // one or more arguments that all begin with prefix: a glob
	many               // any number of any arguments
)

// words resolves the words of a command, brace expansions taken apart.
func (a *analyzer) words(ws []*syntax.Word) []Word {
	out := make([]Word, 0, len(ws))
	for _, w := range ws {
		if alts := braces(w); alts != nil {
			if !a.walk(2 * len(alts)) {
				return out
			}
			for _, alt := range alts {
				if alt == "" {
					continue // bash drops it
				}
				word := literalWord(alt)
				word.Text, word.Literal = alt, false
				if strings.ContainsAny(alt, "*?[~") {
					word = Word{Text: alt, shape: many}
				}
				out = append(out, word)
			}
			continue
		}
		if elements, ok := a.spread(w); ok {
			if !a.walk(len(elements)) {
				return out
			}
			out = append(out, elements...)
			continue
		}
		out = append(out, a.word(w))
	}
	return out
}

func literalWord(s string) Word {
	return Word{Text: s, Literal: true, prefix: s, solid: !strings.HasPrefix(s, "-"), path: quotedTilde(s)}
}

// literalWords are the words of a text, at its blanks.
func literalWords(text string) (words []Word) {
	for word := range strings.FieldsSeq(text) {
		words = append(words, literalWord(word))
	}
	return words
}

// A wordBuilder collects what is known of one word from its parts.
type wordBuilder struct {
	a        *analyzer
	prefix   strings.Builder
	shape    shape
	open     bool // the prefix has ended: something unknown came
	bracket  bool // an unquoted [ came
	prefixed int  // where that is in the prefix, if it has not ended; then what follows it may match a dash
	dashless bool // what ended the prefix does not begin with a dash
	empty    bool // that may be nothing
	expands  bool
	tilde    bool
	here     bool   // the word begins with $PWD or $(pwd)
	own      bool   // it holds $$, the number of the shell that runs the script
	texts    []text // all that it may be so far, if variables take part
	vague    bool   // something came of which the texts are not known
	pipe     bool
	feed     int
	rest     strings.Builder // literal text after $HOME, or after a glob began

	unknowns, globs int
}

func (a *analyzer) word(w *syntax.Word) Word {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\*?[~{") {
			return literalWord(lit.Value)
		}
	}
	b := wordBuilder{a: a}
	for i, part := range w.Parts {
		b.part(part, i == 0)
	}
	return b.finish(a.source(w))
}

func (b *wordBuilder) part(part syntax.WordPart, first bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		b.unquoted(p.Value, first)
	case *syntax.SglQuoted:
		b.single(p)
	case *syntax.DblQuoted:
		b.double(p, first)
	case *syntax.ProcSubst:
		b.a.expansion(part)
		b.a.substituted = append(b.a.substituted, b.a.printedBy(p.Stmts))
		b.pipe, b.feed = true, len(b.a.substituted)
		b.add("/dev/fd/")
		b.unknown(one)
	default:
		b.a.expansion(part)
		b.dynamic(part, many, first)
	}
}

func (b *wordBuilder) add(s string) {
	if b.open {
		b.rest.WriteString(s)
		for i := range b.texts {
			b.texts[i], _ = b.texts[i].followedBy(text{prefix: s})
		}
		return
	}
	b.prefix.WriteString(s)
}

func (b *wordBuilder) unknown(s shape) {
	b.shape = max(b.shape, s)
	b.open, b.expands = true, true
	b.unknowns++
	if s != files {
		b.vague = true
		return
	}
	b.globs++
	for i := range b.texts {
		b.texts[i].glob = true
	}
}

// unquoted takes literal text outside quotes: backslashes, globs, tilde, and
// braces that were not simple enough to take apart.
func (b *wordBuilder) unquoted(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		b.tilde, b.expands = true, true
		b.shape = max(b.shape, one)
	}
	if braceLike(s) {
		b.unknown(many)
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.add(s[i : i+1])
			}
		case '*', '?':
			b.unknown(files)
			b.add(s[i : i+1])
		case '[':
			if !b.bracket {
				b.bracket, b.prefixed = true, b.prefix.Len()
			}
			if strings.Contains(s[i:], "]") {
				b.unknown(files)
			}
			b.add("[")
		case ']':
			if b.bracket {
				b.class()
			}
			b.add("]")
		default:
			b.add(s[i : i+1])
		}
	}
}

// class ends a bracket expression, some of which may be quoted: what stands in it
// is not what the word begins with.
func (b *wordBuilder) class() {
	prefix, rest := b.prefix.String(), b.rest.String()
	if b.prefixed < len(prefix) {
		b.prefix.Reset()
		b.prefix.WriteString(prefix[:b.prefixed])
		b.rest.Reset()
		b.rest.WriteString(prefix[b.prefixed:] + rest)
	}
	b.vague = b.vague || slices.ContainsFunc(b.texts, func(t text) bool { return !t.glob })
	b.unknown(files)
}

// single takes '...' and $'...'. Of the escapes of the latter only the usual
// ones are resolved; any other leaves the word unknown.
func (b *wordBuilder) single(q *syntax.SglQuoted) {
	if !q.Dollar {
		b.add(q.Value)
		return
	}
	plain := plainEscapes.FindString(q.Value)
	b.add(plainEscape.ReplaceAllStringFunc(plain, func(escape string) string {
		if c, _, _, err := strconv.UnquoteChar(escape, 0); err == nil {
			return string(c)
		}
		return escape[1:] // a quote
	}))
	if plain != q.Value {
		b.unknown(one)
	}
}

// plainEscapes is the beginning of a $'...' in which all escapes are usual ones.
var (
	plainEscapes = regexp.MustCompile(`^([^\\]|` + plainEscape.String() + `)*`)
	plainEscape  = regexp.MustCompile(`\\([nt\\'"]|x[2-6][0-9A-Fa-f]|x7[0-9A-Ea-e])`)
)

func (b *wordBuilder) double(q *syntax.DblQuoted, first bool) {
	if q.Dollar {
		b.a.hidden(b.a.source(q), "a translated string comes from a file")
	}
	if text := b.a.source(q); strings.Contains(text, `\"`) && (strings.ContainsAny(text, ";&\n") || strings.Contains(text, " | ")) {
		b.a.refuse(text, "an escaped quote and a separator in one string; use single quotes")
	}
	for i, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			b.a.quotedExpansion(part)
			b.dynamic(part, one, first && i == 0)
			continue
		}
		b.add(unescaped(lit.Value, true))
	}
}

// dynamic takes an expansion; s is what it becomes unless more is known.
func (b *wordBuilder) dynamic(part syntax.WordPart, s shape, first bool) {
	p, isParam := part.(*syntax.ParamExp)
	var texts []text
	switch {
	case isParam && spreads(p):
		s = many
	case isParam && numeric(p):
		s, b.own = one, b.own || p.Param.Value == "$" && !p.Length
		b.startsPlain()
	case isParam && first && s == one && simpleName(p) == "HOME":
		texts = []text{{prefix: "~", home: true}}
	case isParam && first && s == one && simpleName(p) == "PWD":
		b.here = true
	}
	switch p := part.(type) {
	case *syntax.ArithmExp:
		s = one
	case *syntax.ParamExp:
		if v, ok := b.a.variable(simpleName(p)); ok {
			s, texts = b.value(v, s), v.texts
		}
	case *syntax.CmdSubst:
		b.here = b.here || first && s == one && printsHere(p)
		if _, solid, split := plainOutput(p); solid {
			s = b.value(&variable{solid: true, single: split, empty: true}, s)
		}
	}
	vague := b.vague || s != one || !b.vary(texts)
	b.unknown(s)
	b.vague = vague
}

// value takes what is known of an expansion that becomes s without it.
func (b *wordBuilder) value(v *variable, s shape) shape {
	switch {
	case s == many && !v.single:
		return s
	case s == many && v.empty: // a few without quotes, or none
		b.shape = max(b.shape, files)
	}
	if v.solid {
		b.startsPlain()
		b.empty = b.empty || v.empty
	}
	return one
}

// startsPlain: what comes next does not begin with a dash.
func (b *wordBuilder) startsPlain() { b.dashless = b.dashless || !b.open && b.prefix.Len() == 0 }

func (b *wordBuilder) finish(source string) Word {
	prefix, rest := b.prefix.String(), b.rest.String()
	if !b.expands {
		return literalWord(prefix)
	}
	w := Word{Text: source, shape: b.shape, prefix: prefix, pipe: b.pipe, feed: b.feed}
	switch {
	case b.shape == many:
	case b.texts != nil && !b.vague:
		w.become(b.texts)
	case b.tilde:
		w.solid = true
		if below, ok := strings.CutPrefix(prefix, "~+"); !b.open && ok && (below == "" || below[0] == '/') {
			w.path = "." + below
		} else if !b.open && tildeHome(prefix) {
			w.path = prefix
		} else if dir := globDir(prefix); b.onlyGlobs() && plainPattern(prefix, rest) && tildeHome(dir) {
			w.path = dir
		}
	case b.here:
		sure := b.shape == one && b.unknowns == 1 && (rest == "" || rest[0] == '/')
		w.solid = sure
		if sure {
			w.path = "." + rest
		}
	case b.own && b.unknowns == 1 && prefix == "/proc/" && strings.HasPrefix(rest, "/"):
		w.solid, w.path = true, "/proc/self"+rest // what one process of the call may see, another may
	default:
		dashless := b.dashless && (!b.empty || b.unknowns == 1 && !strings.HasPrefix(rest, "-"))
		w.solid = dashless || prefix != "" && prefix[0] != '-'
		if b.onlyGlobs() && plainPattern(prefix, rest) {
			w.path = quotedTilde(globDir(prefix))
		}
	}
	return w
}

// onlyGlobs: all that is unknown of the word is a pattern.
func (b *wordBuilder) onlyGlobs() bool { return b.shape == files && b.unknowns == b.globs }

// plainPattern: all that the pattern matches lies below globDir(prefix). A dot
// and a pattern could match ".." in older versions of bash.
func plainPattern(prefix, rest string) bool {
	for part := range strings.SplitSeq(prefix[strings.LastIndexByte(prefix, '/')+1:]+rest, "/") {
		if part == "." || strings.HasPrefix(part, ".") && strings.IndexByte(".*?[", part[1]) >= 0 {
			return false
		}
	}
	return true
}

// tildeHome: ~ or ~/..., and not another user's home or ~+ and ~-.
func tildeHome(s string) bool { return s == "~" || strings.HasPrefix(s, "~/") }

// globDir is the directory that holds all matches of a pattern which begins
// with the literal prefix.
func globDir(prefix string) string {
	switch i := strings.LastIndexByte(prefix, '/'); {
	case i > 0:
		return prefix[:i]
	case i == 0:
		return "/"
	}
	return "."
}
