// Paths in words of commands, where what the commands do with them is unknown: as the word itself,
// and in the ways in which programs put a path into a word with something else. It errs towards
// more.

package shell

import (
	"path"
	"regexp"
	"strings"
)

// onlyLooking are programs that show what they are given, or run it here, and write none of it.
const onlyLooking = " source . less more bat batcat view ssh ssh-add export declare local typeset readonly cd pushd popd ack ag echo "

// onlyKeeping are commands of git that do not touch the files of the working tree.
const onlyKeeping = " add stage commit push fetch tag reset status diff show log grep blame ls-files check-ignore "

// MayTouchMore reports whether the command may read or write other files here than those in Reads
// and Writes.
func (c *Command) MayTouchMore() bool {
	return !c.ReadOnly && !c.Transparent && !c.Remote && c.Unlisted
}

// MayWriteMore reports whether the command may change other files here than those in Writes.
func (c *Command) MayWriteMore() bool {
	switch words := c.gitWords(); {
	case !c.MayTouchMore() || c.Name == "":
		return false
	case c.IsGit():
		return len(words) > 1 && !listed(onlyKeeping, words[1].Text)
	}
	return !listed(onlyLooking, base(c.Name))
}

// A Mention is a word that may have names of files in it.
type Mention struct {
	Word  string
	Paths []string // as written, seen from where the command runs; the first is as a rule the word itself
	// Sets: it is NAME=VALUE as it stands in front of a command.
	Sets bool
}

// Mentions returns the words behind the command's name and those that it is fed, each with the
// paths that [PathsIn] it.
func (c *Command) Mentions() (found []Mention) {
	for _, word := range c.Words[min(1, len(c.Words)):] {
		m := Mention{Word: word.Text, Sets: word.sets()}
		if word.Literal {
			m.Paths = PathsIn(word.Text)
		}
		found = append(found, m)
	}
	for _, fed := range c.Fed {
		found = append(found, Mention{fed, PathsIn(fed), Word{Text: fed}.sets()})
	}
	return found
}

// sets reports whether the word is NAME=VALUE as it stands in front of a command.
func (w Word) sets() bool { return setting.MatchString(w.Text) }

var setting = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=`)

// maxPathsInWord bounds how many paths are found in one word.
const maxPathsInWord = 16

var withScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// PathsIn returns the paths that a program may take from an argument: the argument itself, a value
// behind the name of a flag or of a setting, @FILE as curl has it, a URL of a file, and lists with
// commas, semicolons and colons. They are as written, and at most 16.
func PathsIn(text string) (parts []string) {
	if strings.ContainsAny(text, "\x00\n") {
		return nil
	}
	add := func(part string) {
		if part != "" && !strings.HasPrefix(part, "-") && len(parts) < maxPathsInWord {
			parts = append(parts, part)
		}
	}
	if scheme := withScheme.FindString(text); scheme != "" {
		if strings.EqualFold(scheme, "file://") {
			add("/" + strings.TrimLeft(strings.TrimPrefix(text[len(scheme):], "localhost"), "/"))
		}
		return parts
	}
	if flag := len(text) > 2 && text[0] == '-' && text[1] != '-'; flag {
		add(strings.TrimLeft(text[2:], "=@<"))
	}
	add(text)
	_, value, found := strings.Cut(text, "=")
	if found {
		if withScheme.MatchString(value) {
			return append(parts, PathsIn(value)...)
		}
		add(value)
	}
	if at := strings.IndexAny(text, "@<"); at >= 0 && at < 2+strings.IndexByte(text, '=') || at == 0 {
		file, _, _ := strings.Cut(text[at+1:], ";")
		add(file)
	}
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",;:=@<", c) }) {
		if part != text && part != value && strings.ContainsAny(part, "/.") { // other words in lists are rarely files
			add(part)
		}
	}
	return parts
}

// Places returns the absolute directories in which the command may run, if the script starts in
// dir: dir itself where that is not known, and none without dir.
func (c *Command) Places(dir string) (dirs []string) {
	for _, known := range c.Dirs {
		if !strings.HasPrefix(known, "~") && dir != "" {
			dirs = append(dirs, From(dir, known))
		}
	}
	if len(dirs) == 0 && dir != "" {
		return []string{dir}
	}
	return dirs
}

// From returns the absolute path that a name stands for in a directory, also where it leads through
// /proc or /dev/fd, as throughProc follows it.
func From(dir, name string) string {
	full := name
	if !path.IsAbs(name) {
		full = dir + "/" + name
	}
	if to, _, through := throughProc(full); through {
		name = to
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}
