// Paths that commands mention, where what the commands do with them is unknown.

package permission

import (
	"slices"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
)

// maxMentions bounds how many paths in words of a script are held against rules: with more, the call asks.
const maxMentions = 10_000

// A mention is a word that may be a path, of a command whose reads and writes are unknown.
type mention struct {
	by      int // 1 + the command's index
	command *shell.Command
	path    string
	written bool // the command may write it
}

// mentionsOf returns what the words of a call's commands mention, each path once, and whether there are more than are
// looked at.
func mentionsOf(f *Facts) (found []mention, more bool) {
	type key struct {
		path    string
		written bool
	}
	seen, looked := map[key]bool{}, 0
	for i := range f.Commands {
		command := &f.Commands[i]
		if !command.MayTouchMore() {
			continue
		}
		writes, dirs := command.MayWriteMore(), command.Places(f.Dir)
		for _, word := range command.Mentions() {
			names := append(located(word.Paths, dirs), f.Patterns[word.Word]...)
			if looked += 1 + len(names); looked > maxMentions {
				return found, true
			}
			for _, name := range names {
				k := key{name, writes && !word.Sets}
				if !seen[k] {
					seen[k] = true
					found = append(found, mention{i + 1, command, name, k.written})
				}
			}
		}
	}
	return found, false
}

// located returns the paths as seen from each of the directories, each once.
func located(paths, dirs []string) (found []string) {
	for _, name := range paths {
		for _, dir := range dirs {
			if full := shell.From(dir, name); !slices.Contains(found, full) {
				found = append(found, full)
			}
		}
	}
	return found
}

// maxNamed bounds how many protected files are named to the user: each of them asks.
const maxNamed = 16

// meddling returns the grounds to ask about commands whose writes are unknown and that have a word which names something
// protected.
func (c *call) meddling(guarded []guard) (found []Reason) {
	for _, m := range c.mentioned {
		inOther := func(g Reason) bool { return pathname.Within(g.About, m.path) }
		if !m.written || len(found) == maxNamed || slices.ContainsFunc(found, inOther) {
			continue
		}
		if what := meddles(m.path, 0, guarded); what != "" {
			found = append(found, Reason{Code: NamesProtected, About: m.path, Detail: what, Part: m.command.Text})
		}
	}
	return found
}
