package pipeline

// What patterns of file names in commands stand for at this moment. It does not know which rules are about that.

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// maxDepth bounds the directories that a pattern may go through behind its first star: one with more is not looked at.
const maxDepth = 4

// patternShape is a pattern in which every other character stands for itself.
var patternShape = regexp.MustCompile(`^[A-Za-z0-9_./*?\[\]!^-]+$`)

// expanded gives the files that words which are patterns stand for, absolute, by the words' texts, of commands of which
// it is not known what they read and write. Bash will do the same; what it finds may differ by then.
func expanded(commands []shell.Command, dir string) map[string][]string {
	found := map[string][]string{}
	for _, c := range commands {
		if c.ReadOnly || !c.Unlisted {
			continue
		}
		for _, word := range c.Words {
			first := strings.IndexAny(word.Text, "*?[")
			if !word.Literal && first >= 0 && strings.Count(word.Text[first:], "/") <= maxDepth && patternShape.MatchString(word.Text) {
				found[word.Text] = expand(word.Text, dir)
			}
		}
	}
	return found
}

func expand(pattern, dir string) (names []string) {
	if !filepath.IsAbs(pattern) {
		pattern = escaped.Replace(dir) + "/" + pattern
	}
	pattern = filepath.Clean(strings.ReplaceAll(pattern, "[!", "[^"))
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	for _, name := range matches {
		if visible(pattern, name) {
			names = append(names, name)
		}
	}
	return names
}

var escaped = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// visible says whether bash would find a match as well: a dot at a name's beginning has to be named.
func visible(pattern, name string) bool {
	parts, wanted := strings.Split(name, "/"), strings.Split(pattern, "/")
	for i := range min(len(parts), len(wanted)) {
		if strings.HasPrefix(parts[i], ".") && !strings.HasPrefix(wanted[i], ".") && !strings.HasPrefix(wanted[i], "[") {
			return false
		}
	}
	return true
}
