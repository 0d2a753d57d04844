// Which files a command picks out of a directory that it reads by patterns of names, which are held against the files
// that are there now.

package pipeline

import (
	"path/filepath"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/workspace"
)

// matching returns the files that a pattern stands for, absolute. Bash will do the same; what it finds may differ by then.
func matching(places *workspace.Workspace, pattern string) (names []string) {
	where := pattern
	if first := strings.IndexAny(pattern, `*?[\`); first > 0 { // the directory under the name that calls use
		end := strings.LastIndexByte(pattern[:first], '/')
		where = shell.Quoted(places.Disk(filepath.Clean("/"+pattern[:end]))) + pattern[end:]
	}
	found, err := filepath.Glob(where)
	if err != nil {
		return nil
	}
	for _, name := range found {
		if name = places.Seen(name); shell.IsVisible(pattern, name) {
			names = append(names, name)
		}
	}
	return names
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
			full := word.AtHome(home)
			if _, pattern, ok := full.Pattern(dir); ok {
				found[word.Text] = matching(places, pattern)
			} else if full.Text != word.Text {
				found[word.Text] = []string{filepath.Clean(full.Text)}
			}
		}
	}
	return found
}

// picked returns the files that a command takes from the directory at named by patterns; false: it takes all of it.
func picked(places *workspace.Workspace, c *shell.Command, named, dir string) (files []string, ok bool) {
	for _, word := range c.Spelled() {
		within, pattern, is := word.Pattern(dir)
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

func at(name, dir string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
