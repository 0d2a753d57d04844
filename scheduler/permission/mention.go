// Paths in words of commands of which it is not known what they do with them: as the word itself, and in the ways in which
// programs put a path into a word with something else. It errs towards more, and opens nothing.

package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// placesOf returns where a command may run, as far as that is known.
func placesOf(c *shell.Command, dir string) (dirs []string) {
	for _, known := range c.Dirs {
		if !strings.HasPrefix(known, "~") && dir != "" {
			dirs = append(dirs, joined(dir, known))
		}
	}
	if len(dirs) == 0 && dir != "" {
		return []string{dir}
	}
	return dirs
}

func joined(dir, name string) string {
	full := name
	if !path.IsAbs(name) {
		full = dir + "/" + name
	}
	if to, _, through := shell.Through(full); through {
		name = to
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// maxParts bounds how many paths are looked for in one word, maxMentions in all words of a script together: more are not
// held against rules, and the call asks.
const (
	maxParts    = 16
	maxMentions = 10_000
)

// A mention is a word that may be a path, of a command of which it is not known what it reads and writes.
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
		if !mayTouchMore(command) {
			continue
		}
		writes, dirs := mayWrite(command), placesOf(command, f.Dir)
		words := slices.Clone(command.Words[min(1, len(command.Words)):])
		for _, fed := range command.Fed {
			words = append(words, shell.Word{Text: fed, Literal: true})
		}
		for _, word := range words {
			names := append(pathsIn(word, dirs), f.Patterns[word.Text]...)
			if looked += 1 + len(names); looked > maxMentions {
				return found, true
			}
			for _, name := range names {
				k := key{name, writes && !setting.MatchString(word.Text)}
				if !seen[k] {
					seen[k] = true
					found = append(found, mention{i + 1, command, name, k.written})
				}
			}
		}
	}
	return found, false
}

// pathsIn are the paths that a literal word may name, seen from each of the directories.
func pathsIn(word shell.Word, dirs []string) (found []string) {
	if !word.Literal || strings.ContainsAny(word.Text, "\x00\n") {
		return nil
	}
	for _, name := range partsOf(word.Text) {
		for _, dir := range dirs {
			if full := joined(dir, name); !slices.Contains(found, full) {
				found = append(found, full)
			}
		}
	}
	return found
}

var withScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// partsOf takes a word apart: a value behind the name of a flag or of a setting, @FILE as curl has it, a URL of a file, and
// lists with commas, semicolons and colons.
func partsOf(text string) (parts []string) {
	add := func(part string) {
		if part != "" && !strings.HasPrefix(part, "-") && len(parts) < maxParts {
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
			return append(parts, partsOf(value)...)
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

// onlyLooking are programs that show what they are given, or run it here, and write none of it.
var onlyLooking = []string{
	"source", ".", "less", "more", "bat", "batcat", "view", "ssh", "ssh-add", "export", "declare", "local", "typeset", "readonly", "cd", "pushd", "popd", "ack", "ag", "echo",
}

// onlyKeeping are commands of git that leave the files of the working tree alone.
var onlyKeeping = []string{"add", "stage", "commit", "push", "fetch", "tag", "reset", "status", "diff", "show", "log", "grep", "blame", "ls-files", "check-ignore"}

// maxNamed bounds how many protected files are named to the user: each of them asks.
const maxNamed = 16

// setting is NAME=VALUE as it stands in front of a command.
var setting = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*=`)

// meddling returns the grounds to ask about commands of which it is not known what they write, as far as a word names what is
// protected.
func (c *call) meddling(guarded []guard) (found []Reason) {
	var named []string
	for _, m := range c.mentioned {
		inOther := func(other string) bool { return other == m.path || strings.HasPrefix(m.path, other+"/") }
		what := ""
		if m.written && len(named) < maxNamed {
			what = meddles(m.path, 0, guarded)
		}
		if what == "" || slices.ContainsFunc(named, inOther) {
			continue
		}
		named = append(named, m.path)
		found = append(found, Reason{Code: NamesProtected, About: m.path, Detail: what, Part: m.command.Text})
	}
	return found
}

// mayTouchMore reports whether the command may read or write other files here than those that it is known to name.
func mayTouchMore(c *shell.Command) bool {
	return !c.ReadOnly && !c.Transparent && !c.Remote && c.Unlisted
}

// MayWriteAnywhere reports whether the command may change other files here than those that it is known to name.
func MayWriteAnywhere(c *shell.Command) bool { return mayTouchMore(c) && mayWrite(c) }

func mayWrite(c *shell.Command) bool {
	if path.Base(c.Name) != "git" {
		return !slices.Contains(onlyLooking, path.Base(c.Name))
	}
	words := c.Words
	if c.Subcommand != nil {
		words = c.Subcommand
	}
	return len(words) > 1 && !slices.Contains(onlyKeeping, words[1].Text)
}
