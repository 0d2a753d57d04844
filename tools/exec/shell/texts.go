// What a word becomes where the variables in it are known: all the texts, and the
// paths that they are.

package shell

import (
	"regexp"
	"slices"
	"strings"
)

// A text is one that a word may become, or the pattern that it matches.
type text struct {
	prefix string // all of it, or of a pattern what stands before its first character that is special
	rest   string // of a pattern, the rest
	glob   bool
	home   bool // prefix begins with ~ for the home directory, or with what is $HOME
}

// maxTexts bounds how many one word may become, maxText how long each of them may
// get, in bytes: Linux takes no longer path.
const (
	maxTexts = 64
	maxText  = 4096
)

// textsOf are all texts that a word becomes; nil: they are not known.
func textsOf(w Word) []text {
	switch {
	case w.texts != nil:
		return w.texts
	case w.Literal, w.shape == known:
		return []text{{prefix: w.prefix}}
	case w.shape == one && strings.HasPrefix(w.path, "/"):
		return []text{{prefix: w.path}}
	case w.shape == one && tildeHome(w.path):
		return []text{{prefix: w.path, home: true}}
	case w.shape == files && w.path != "":
		return []text{{prefix: w.prefix, rest: "*", glob: true, home: tildeHome(w.path)}}
	}
	return nil
}

// textsOfAll are those of several words together.
func textsOfAll(words []Word) (all []text) {
	for _, w := range words {
		texts := textsOf(w)
		if texts == nil || len(all)+len(texts) > maxTexts {
			return nil
		}
		all = append(all, texts...)
	}
	return all
}

// followedBy returns the text with another behind it; ok is false where that is not a
// path any more.
func (t text) followedBy(next text) (both text, ok bool) {
	switch {
	case next.home && (t.prefix != "" || t.glob):
		return t, false
	case t.glob:
		t.rest += next.prefix + next.rest
	default:
		t.prefix, t.rest, t.glob = t.prefix+next.prefix, next.rest, next.glob
	}
	t.home = t.home || next.home
	return t, true
}

// path is what the text names as a file, or the directory that holds all that
// the pattern matches; "": that is not known.
func (t text) path() (p string) {
	switch p = t.prefix; {
	case t.home && !tildeHome(p) || t.glob && !plainPattern(p, t.rest):
		return ""
	case t.glob:
		p = globDir(p)
	}
	if !t.home {
		p = quotedTilde(p)
	}
	return p
}

// quotedTilde keeps a tilde from meaning a home directory.
func quotedTilde(p string) string {
	if strings.HasPrefix(p, "~") {
		return "./" + p
	}
	return p
}

// solid: it does not begin with a dash, even if there is no home directory.
func (t text) solid() bool {
	if t.home {
		return tildeHome(t.prefix)
	}
	return t.prefix != "" && t.prefix[0] != '-'
}

// vary goes on with each of the texts; false: what the word becomes is not known.
func (b *wordBuilder) vary(texts []text) bool {
	begun := b.texts
	switch {
	case b.vague || b.open && begun == nil || b.tilde && !tildeHome(b.prefix.String()):
		return false
	case begun == nil:
		begun = []text{{prefix: b.prefix.String(), home: b.tilde}}
	}
	var next []text
	for _, t := range begun {
		for _, more := range texts {
			both, ok := t.followedBy(more)
			if !ok || len(next) == maxTexts || len(both.prefix)+len(both.rest) > maxText || !b.a.walkText(both.prefix) {
				return false
			}
			next = append(next, both)
		}
	}
	b.texts = next
	return len(next) > 0
}

// become sets the texts that the word becomes, and their paths.
func (w *Word) become(texts []text) {
	w.texts, w.path, w.more = texts, "", nil
	w.solid = !slices.ContainsFunc(texts, func(t text) bool { return !t.solid() })
	w.below = slices.ContainsFunc(texts, func(t text) bool { return t.glob })
	for i, t := range texts {
		switch p := t.path(); {
		case p == "":
			w.path, w.more = "", nil
			return
		case i == 0:
			w.path = p
		default:
			w.more = addTo(w.more, p)
		}
	}
}

// paths are all that the word names as files; none: that is not known.
func (w Word) paths() []string {
	if w.path == "" {
		return nil
	}
	return append([]string{w.path}, w.more...)
}

// Spelled are all the words that w may become, each as it could be written in the
// script without variables: special characters behind backslashes, but for those
// of patterns and for a leading ~ that is the home directory. Nil: they are not
// known, or no variables take part.
func (w Word) Spelled() (words []string) {
	for _, t := range w.texts {
		words = append(words, t.source())
	}
	return words
}

func (t text) source() string {
	home, rest := "", t.prefix
	if below, ok := strings.CutPrefix(rest, "~"); ok && t.home {
		home, rest = "~", below
	}
	return home + specialByte.ReplaceAllString(rest, `\$0`) + t.rest
}

// specialByte is a character that means something to the shell, or may.
var specialByte = regexp.MustCompile(`[^A-Za-z0-9_./+,:=@%^\x{80}-\x{10FFFF}-]`)

// Values returns what a program may take from the word as written: the word itself, what stands
// behind its first "=", and what stands behind the letter of a flag.
func (w Word) Values() []string {
	_, value, _ := strings.Cut(w.Text, "=")
	flagged := strings.TrimLeft(w.Text, "-")
	return []string{w.Text, value, flagged[min(1, len(flagged)):]}
}

// foretold: it is literal, or all that it may be is known.
func (w Word) foretold() bool { return w.Literal || w.texts != nil && w.path != "" }

// holds: its paths are directories in which what it names lies.
func (w Word) holds() bool { return w.shape == files || w.below }
