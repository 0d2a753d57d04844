// Names of files that words stand for where the files are known that are there now: the caller passes a function that finds
// the names that fit a pattern, absolute and as path/filepath.Match has it.

package shell

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// A Glob returns the names that fit a pattern, as bash finds them.
type Glob func(pattern string) []string

// AfterDir cuts a pattern behind the directory that all names that fit it lie below.
func AfterDir(pattern string) (dir, rest string) {
	end := len(pattern)
	if first := strings.IndexAny(pattern, `*?[\`); first >= 0 {
		end = strings.LastIndexByte(pattern[:first], '/')
	}
	return path.Clean("/" + pattern[:max(end, 0)]), pattern[max(end, 0):]
}

// Stands returns the names that a word stands for in a command that runs in dir, if it is a pattern of names or begins with
// the home directory; ok is false for any other word.
func (w Word) Stands(dir, home string, glob Glob) (names []string, ok bool) {
	full := w.AtHome(home)
	if _, pattern, is := full.Pattern(dir); is {
		return glob(pattern), true
	}
	return []string{path.Clean(full.Text)}, full.Text != w.Text
}

// MayChange yields the absolute names that the words behind the command's own may stand for, if it may change files that
// are not in Writes. dirs are the directories that it may run in.
func (c *Command) MayChange(dirs []string, home string, glob Glob) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.ReadOnly || !c.Unlisted && c.Name != "ln" {
			return
		}
		for _, word := range c.Words[min(1, len(c.Words)):] {
			if !word.MayName() {
				continue
			}
			for _, dir := range dirs {
				names, ok := word.Stands(dir, home, glob)
				if !ok && word.Literal {
					names, ok = []string{From(dir, word.Text)}, true
				}
				for _, name := range names {
					if ok && !yield(name) {
						return
					}
				}
			}
		}
	}
}

// maxPlaces bounds the directories that names behind a command may be relative to.
const maxPlaces = 8

// AndThen returns the directories that names behind the command may be relative to, which dirs are in front of it.
func (c *Command) AndThen(dirs []string) []string {
	name, ok := c.Enters()
	for _, dir := range slices.Clone(dirs) {
		if to := From(dir, name); ok && len(dirs) < maxPlaces && !slices.Contains(dirs, to) {
			dirs = append(dirs, to)
		}
	}
	return dirs
}

// NamesPath reports whether a literal word behind the command's own names the path.
func (c *Command) NamesPath(named, dir string) bool {
	return slices.ContainsFunc(c.Words[min(1, len(c.Words)):], func(w Word) bool { return w.Literal && From(dir, w.Text) == named })
}

// Picked returns the files that the command takes from the directory at named by patterns; false: it takes all of it.
func (c *Command) Picked(named, dir string, glob Glob) (files []string, ok bool) {
	for _, word := range c.Spelled() {
		below, pattern, is := word.Pattern(dir)
		switch {
		case is && below == named:
			files, ok = append(files, glob(pattern)...), true
		case is:
		case !word.Literal || From(dir, word.Text) == named:
			return nil, false
		}
	}
	return files, ok
}

// Below reports whether the files that the command picks lie below the directory, which no word names.
func (p *Picks) Below(c *Command, named, dir string) bool {
	return p != nil && !c.NamesPath(named, dir) && slices.ContainsFunc(p.From, func(from string) bool { return From(dir, from) == named })
}

// WholeRepository reports whether an entry of [Command.Tracked] stands for all of the repository that it lies in.
func WholeRepository(tracked string) bool { return tracked == "." || strings.HasSuffix(tracked, "/.") }

// Misread returns, as a clause, what the command takes the name of a file for; empty: for that name.
func (p *Picks) Misread(rel string) string {
	switch {
	case p.Apart && strings.ContainsAny(rel, " \t\n'\"\\"):
		return "comes apart at blanks and quotes into others"
	case p.Kept && strings.HasPrefix(rel, "-"):
		return "is taken for a flag"
	}
	return ""
}

// Pattern returns the pattern that the flag's value is for its program; ok is false if it is unknown, as bash may make
// names of it. fits reports whether a file fits a word, which then bash replaces.
func (f Flag) Pattern(fits func(word string) bool) (glob string, ok bool) {
	if f.Value.Literal {
		return f.Value.Text, true
	}
	glob, word, ok := f.Glob()
	return glob, ok && !fits(word)
}

// Spills reports whether a script that only reads may make temporary files all the same: bash does for here-documents and
// -strings, and some programs do for what they cannot hold in memory.
func (a Analysis) Spills(script string) bool {
	return HasHeredoc(script) || slices.ContainsFunc(a.Commands, Command.Spills)
}

// ConfigurationIn returns the files that [Configuration] names, for a home directory and each of the directories that
// $XDG_CONFIG_HOME may be. git reports whether those of git are among them, which name more files.
func ConfigurationIn(program, home string, dirs []string) (files []string, git bool) {
	names := Configuration(program)
	for _, name := range names {
		for _, dir := range dirs {
			files = append(files, strings.NewReplacer("~", home, "$XDG_CONFIG_HOME", dir).Replace(name))
		}
	}
	return files, slices.Contains(names, "~/.gitconfig")
}

// Program returns the first word of the first command of a script that has words: the argument if
// it is literal, otherwise the source as written. It is empty if there is no such command.
func Program(script string) string {
	for _, c := range Analyze(script).Commands {
		if len(c.Words) > 0 {
			return c.Words[0].Text
		}
	}
	return ""
}
