// Words that are patterns of file names: which files they are compared with, and what else of a
// word's value is known before it runs.

package shell

import (
	"path"
	"regexp"
	"strings"
)

// maxPatternDepth bounds the directories that a pattern may go through behind its first star: one
// with more is not looked at.
const maxPatternDepth = 4

// patternShape is a pattern in which every other character stands for itself.
var patternShape = regexp.MustCompile(`^[A-Za-z0-9_./*?\[\]!^-]+$`)

// Pattern returns, for a word that is a plain pattern of file names and stands in a command that
// runs in dir, the directory in which the names are and the pattern as [path/filepath.Match] has
// it, both absolute; ok is false for any other word.
func (w Word) Pattern(dir string) (within, pattern string, ok bool) {
	first := strings.IndexAny(w.Text, "*?[")
	if w.Literal || first < 0 || strings.Count(w.Text[first:], "/") > maxPatternDepth || !patternShape.MatchString(w.Text) {
		return "", "", false
	}
	within, pattern = w.Text[:first], strings.ReplaceAll(w.Text, "[!", "[^")
	within = within[:strings.LastIndexByte(within, '/')+1]
	if !path.IsAbs(pattern) {
		within, pattern = path.Join(dir, within), Quoted(dir)+"/"+pattern
	}
	return path.Clean(within), path.Clean(pattern), true
}

// isPlainPattern reports whether a text is a pattern in which every character but those of globs
// stands for itself.
func isPlainPattern(text string) bool { return patternShape.MatchString(text) }

// Quoted returns a pattern that only the name itself fits.
func Quoted(name string) string { return globQuotes.Replace(name) }

var globQuotes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// IsVisible reports whether bash too takes a name that fits a pattern for a match: a dot at a
// name's beginning has to be named.
func IsVisible(pattern, name string) bool {
	parts, wanted := strings.Split(name, "/"), strings.Split(pattern, "/")
	for i := range min(len(parts), len(wanted)) {
		if strings.HasPrefix(parts[i], ".") && !strings.HasPrefix(wanted[i], ".") && !strings.HasPrefix(wanted[i], "[") {
			return false
		}
	}
	return true
}

// homes are the ways in which a word begins with the home directory; in front there may be the name
// of a flag.
var homes = regexp.MustCompile(`^(?:[A-Za-z0-9_-]+=)?"?(?:~|\$HOME|\$\{HOME\})(/[^$"'\x60\\]*)?"?$`)

// AtHome returns the word with the home directory in the place of what it begins with, if that
// stands for it.
func (w Word) AtHome(home string) Word {
	if m := homes.FindStringSubmatch(w.Text); m != nil && home != "" {
		w.Text = home + m[1]
	}
	return w
}

// Spelled returns the words behind the first, with what those with variables are known to become in
// their places.
func (c *Command) Spelled() (all []Word) {
	for _, word := range c.Words[min(1, len(c.Words)):] {
		texts := word.Spelled()
		if c.Via == "expansion" { // the values stand in it as written
			texts = []string{word.Text}
		} else if word.Literal || len(texts) == 0 {
			all = append(all, word)
			continue
		}
		for _, text := range texts {
			all = append(all, Word{Text: text, Literal: !strings.ContainsAny(text, `*?[~\`)})
		}
	}
	return all
}

// SteersPatterns reports whether the command may change what patterns behind it stand for.
func (c Command) SteersPatterns() bool {
	return c.Name == "shopt" || c.Name == "set" || strings.Contains(c.Text, "GLOBIGNORE") || strings.Contains(c.Text, "BASHOPTS")
}
