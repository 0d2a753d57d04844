// Which files a command picks out of a directory that it reads by patterns of names, which are held against the files
// that are there now.

package pipeline

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toold/toold/tools/shell"
	"github.com/toold/toold/tools/workspace"
)

// maxDepth bounds the directories that a pattern may go through behind its first star: one with more is not looked at.
const maxDepth = 4

// patternShape is a pattern in which every other character stands for itself.
var patternShape = regexp.MustCompile(`^[A-Za-z0-9_./*?\[\]!^-]+$`)

// asPattern returns the directory in which a word that is a pattern looks for names, and the pattern, both absolute.
func asPattern(word shell.Word, dir string) (within, pattern string, ok bool) {
	first := strings.IndexAny(word.Text, "*?[")
	if word.Literal || first < 0 || strings.Count(word.Text[first:], "/") > maxDepth || !patternShape.MatchString(word.Text) {
		return "", "", false
	}
	within, pattern = word.Text[:first], strings.ReplaceAll(word.Text, "[!", "[^")
	within = within[:strings.LastIndexByte(within, '/')+1]
	if !filepath.IsAbs(pattern) {
		within, pattern = filepath.Join(dir, within), escaped.Replace(dir)+"/"+pattern
	}
	return filepath.Clean(within), filepath.Clean(pattern), true
}

var escaped = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// matching returns the files that a pattern stands for, absolute. Bash will do the same; what it finds may differ by then.
func matching(places *workspace.Workspace, pattern string) (names []string) {
	where := pattern
	if first := strings.IndexAny(pattern, `*?[\`); first > 0 { // the directory under the name that calls use
		end := strings.LastIndexByte(pattern[:first], '/')
		where = escaped.Replace(places.Disk(filepath.Clean("/"+pattern[:end]))) + pattern[end:]
	}
	found, err := filepath.Glob(where)
	if err != nil {
		return nil
	}
	for _, name := range found {
		if name = places.Seen(name); visible(pattern, name) {
			names = append(names, name)
		}
	}
	return names
}

// visible reports whether bash would find a match as well: a dot at a name's beginning has to be named.
func visible(pattern, name string) bool {
	parts, wanted := strings.Split(name, "/"), strings.Split(pattern, "/")
	for i := range min(len(parts), len(wanted)) {
		if strings.HasPrefix(parts[i], ".") && !strings.HasPrefix(wanted[i], ".") && !strings.HasPrefix(wanted[i], "[") {
			return false
		}
	}
	return true
}

// expanded returns what the words of commands stand for now that are patterns or begin with the home directory, by the words'
// texts, where it is not known what a command does with them.
func expanded(places *workspace.Workspace, commands []shell.Command, dir, home string) map[string][]string {
	found := map[string][]string{}
	for _, c := range commands {
		if c.ReadOnly || !c.Unlisted {
			continue
		}
		for _, word := range c.Words {
			if _, done := found[word.Text]; done {
				continue
			}
			full := word
			full.Text = atHome(word.Text, home)
			if _, pattern, ok := asPattern(full, dir); ok {
				found[word.Text] = matching(places, pattern)
			} else if full.Text != word.Text {
				found[word.Text] = []string{filepath.Clean(full.Text)}
			}
		}
	}
	return found
}

// homes are the ways in which a word begins with the home directory; in front there may be the name of a flag.
var homes = regexp.MustCompile(`^(?:[A-Za-z0-9_-]+=)?"?(?:~|\$HOME|\$\{HOME\})(/[^$"'\x60\\]*)?"?$`)

// atHome puts the home directory into a word that begins with it.
func atHome(text, home string) string {
	if m := homes.FindStringSubmatch(text); m != nil && home != "" {
		return home + m[1]
	}
	return text
}

// picked returns the files that a command takes from the directory at named by patterns; false: it takes all of it.
func picked(places *workspace.Workspace, c *shell.Command, named, dir string) (files []string, ok bool) {
	for _, word := range spelled(c) {
		within, pattern, is := asPattern(word, dir)
		switch {
		case is && within == named:
			files, ok = append(files, matching(places, pattern)...), true
		case is:
		case !word.Literal || at(word.Text, dir) == named:
			return nil, false
		}
	}
	return files, ok
}

// spelled returns the words behind the first, and what those with variables are known to become in their places.
func spelled(c *shell.Command) (all []shell.Word) {
	for _, word := range c.Words[min(1, len(c.Words)):] {
		texts := word.Spelled()
		if c.Via == "expansion" { // the values stand in it as written
			texts = []string{word.Text}
		} else if word.Literal || len(texts) == 0 {
			all = append(all, word)
			continue
		}
		for _, text := range texts {
			all = append(all, shell.Word{Text: text, Literal: !strings.ContainsAny(text, `*?[~\`)})
		}
	}
	return all
}

// steersPatterns reports whether a command may change what patterns behind it stand for.
func steersPatterns(c shell.Command) bool {
	return c.Name == "shopt" || c.Name == "set" || strings.Contains(c.Text, "GLOBIGNORE") || strings.Contains(c.Text, "BASHOPTS")
}

func at(name, dir string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
