// Package damage finds what in a script could destroy more than a workspace: removing, moving or
// changing places that everything lives by, writing to disks as a whole, ending the system. It
// works on the commands that [shell.Analyze] lists, and follows what they set and where they go as
// far as words tell.
//
// It does not know the file system: a link to / is not seen, and neither is what a program reads
// from a file or an answer.
package damage

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// Around is where a command would run.
type Around struct {
	Dir     string   // working directory
	Home    string   // of the user; empty: not known
	Roots   []string // of the workspace
	Environ []string // NAME=VALUE, what the client has sent and earlier calls have exported
}

// Find returns, as a sentence, the first damage that these commands may do, or that writing to
// these names may; empty: none. Work on a script is bounded: what goes beyond a bound counts as
// damage where it could hide any.
func Find(commands []shell.Command, writes []string, around Around) string {
	for _, name := range writes {
		if isDevice(around.absolute(around.Dir, name)) {
			return fmt.Sprintf("It writes to %s, which may be a block device.", name)
		}
	}
	if len(commands) == 0 {
		return ""
	}
	t := scriptState{Around: around, here: around.Dir, kinds: map[kind]bool{}, values: map[string][]string{}, lost: map[string]bool{}}
	t.reach(around.Dir)
	if beyond := t.take(commands); beyond != nil {
		return fmt.Sprintf("`%s` runs a script that is %s.", shortened(beyond.Text), unfollowed)
	}
	for i := range t.commands {
		if !t.step(1) {
			return fmt.Sprintf("`%s` stands in a script that is %s.", shortened(t.commands[i].Text), unfollowed)
		}
		if t.commands[i].Remote {
			continue // it reaches nothing here
		}
		if why := t.critical(i); why != "" {
			return fmt.Sprintf("`%s` %s.", t.commands[i].Text, why)
		}
		t.follow(&t.commands[i])
	}
	return ""
}

func (t *scriptState) critical(i int) string {
	c := &t.commands[i]
	name := path.Base(c.Name)
	switch {
	case c.ForkBomb:
		return "starts copies of itself without end"
	case !c.Literal && c.Name != "":
		if !mentions(c, "-rf -fr -Rf -fR") {
			return ""
		}
		name = "rm" // who knows, and nothing else has such a flag
	}
	switch name {
	case "rm", "rmdir", "unlink":
		return t.reaches(i, operation{verb: "remove", deep: name == "rm" && recursive(c, "rR")}, operands(c))
	case "shred":
		if why := t.given(i, operation{verb: "remove"}); why != "" {
			return why
		}
	case "chmod", "chown", "chgrp", "chattr", "setfacl":
		return t.changes(i, c)
	case "mv":
		return t.reaches(i, operation{verb: "move away", picks: true}, moved(c))
	case "rsync":
		if words := operands(c); len(words) > 0 && slices.ContainsFunc(c.Words, func(w shell.Word) bool { return strings.HasPrefix(w.Text, "--del") }) {
			return t.reaches(i, operation{verb: "remove what is in", deep: true}, words[len(words)-1:])
		}
	case "find":
		if mentions(c, "-delete") {
			return t.searched(c, operation{verb: "remove"}, t.placesOf(i))
		}
	}
	return t.endsMachine(c, name, t.placesOf(i))
}

// An operation is what a command does to what it is given.
type operation struct {
	verb string
	// deep: to all that is below it too, so that a variable which is empty by mistake matters.
	deep bool
	// picks: taking all that is in a root, and leaving the root, is usual.
	picks bool
}

// changes judges programs that change modes and owners, as far as they go into directories.
func (t *scriptState) changes(i int, c *shell.Command) string {
	words := operands(c)
	isReference := func(w shell.Word) bool { return strings.HasPrefix(w.Text, "--ref") }
	if !strings.HasPrefix(c.Name, "set") && len(words) > 0 && !slices.ContainsFunc(c.Words, isReference) {
		words = words[1:] // the mode or owner
	}
	if recursive(c, "R") {
		return t.reaches(i, operation{verb: "change all of", deep: true}, words)
	}
	return t.given(i, operation{verb: "change all of", picks: true}) // one by one
}

// moved returns the words that name what a mv takes away.
func moved(c *shell.Command) (words []shell.Word) {
	for i := 1; i < len(c.Words); i++ {
		switch text := c.Words[i].Text; {
		case text == "-t" || text == "--target-directory":
			for j, word := range c.Words {
				if j != i+1 && j > 0 && !strings.HasPrefix(word.Text, "-") {
					words = append(words, word)
				}
			}
			return words
		case strings.HasPrefix(text, "-t"), strings.HasPrefix(text, "--target-directory="):
			return operands(c)
		}
	}
	words = operands(c)
	return words[:max(0, len(words)-1)]
}

// reaches returns why doing that to one of the words, or to what the command is handed by another,
// would be critical.
func (t *scriptState) reaches(i int, d operation, words []shell.Word) string {
	dirs := t.placesOf(i)
	for _, word := range words {
		if why := t.meetsOne(d, t.readings(word), dirs); why != "" {
			return why
		}
	}
	return t.given(i, d)
}

// given judges what a command is handed by the find or xargs that runs it.
func (t *scriptState) given(i int, d operation) string {
	for k := t.wrappers[i]; k >= 0 && t.step(1); k = t.wrappers[k] {
		switch path.Base(t.commands[k].Name) {
		case "find":
			if why := t.searched(&t.commands[k], d, t.placesOf(k)); why != "" {
				return why
			}
		case "xargs":
			if why := t.fed(k, d); why != "" {
				return why
			}
		}
	}
	return ""
}

// fed judges what the command in front of an xargs prints, where that can be told.
func (t *scriptState) fed(xargs int, d operation) string {
	at := feeder(t.wrappers, xargs)
	if at < 0 {
		return ""
	}
	from, dirs := &t.commands[at], t.placesOf(at)
	switch path.Base(from.Name) {
	case "find":
		return t.searched(from, d, dirs)
	case "ls":
		if len(operands(from)) == 0 {
			return t.meets(d, reading{text: "*"}, dirs)
		}
		if mentions(from, "-d") {
			return t.meetsOne(d, t.prints(from), dirs)
		}
	case "echo", "printf":
		return t.meetsOne(d, t.prints(from), dirs)
	}
	return ""
}

// pickers are tests of find that take some files and leave others.
const pickers = "-name -iname -path -ipath -regex -iregex -mtime -mmin -newer -size -empty"

// searched returns why doing that to all that a find comes upon would be critical. To pick files in
// a root is usual.
func (t *scriptState) searched(c *shell.Command, d operation, dirs []string) string {
	d.picks, d.deep = d.picks || mentions(c, pickers), true
	paths := 0
	for _, word := range c.Words[1:] {
		if word.Literal && word.Text != "" && strings.ContainsAny(word.Text[:1], "-!(") {
			if among("-H -L -P", word.Text) {
				continue
			}
			break
		}
		paths++
		readings := t.readings(word)
		for i := range readings {
			readings[i].text = strings.TrimSuffix(readings[i].text, "/") + "/*"
		}
		if why := t.meetsOne(d, readings, dirs); why != "" {
			return why
		}
	}
	if paths == 0 {
		return t.meets(d, reading{text: "*"}, dirs)
	}
	return ""
}

// meetsOne returns why doing that to what one of the readings stands for would be critical.
func (t *scriptState) meetsOne(d operation, readings []reading, dirs []string) string {
	for _, r := range readings {
		if why := t.meets(d, r, dirs); why != "" {
			return why
		}
	}
	return ""
}

// meets returns why doing that to what a word stands for would be critical.
func (t *scriptState) meets(d operation, r reading, dirs []string) string {
	source := shortened(r.source)
	switch {
	case r.escaped:
		return "spells what it would " + d.verb + " in escapes, which are not read"
	case r.lost:
		return fmt.Sprintf("would %s what %s may come to, which is %s", d.verb, source, unfollowed)
	case t.astray && isRelative(r.text):
		return fmt.Sprintf("would %s %s in a directory that is %s", d.verb, source, unfollowed)
	case r.leads && d.deep:
		return fmt.Sprintf("would reach / if the variable that %s begins with is empty", r.source)
	case r.text == "" || r.guessed && !d.deep:
		return ""
	case !t.step(len(dirs)):
		return fmt.Sprintf("would %s %s in a script that is %s", d.verb, source, unfollowed)
	}
	condition := ""
	if r.guessed {
		condition = fmt.Sprintf(" if a variable in %s is empty", r.source)
	}
	for _, dir := range dirs {
		name, all := everythingIn(t.absolute(dir, r.text))
		what := t.special(name)
		switch {
		case what == "", isRelative(r.text) && t.implausible(dir, name), (all || r.guessed) && among(temporary, name), all && d.picks && slices.Contains(t.Roots, name):
			continue
		case all:
			return fmt.Sprintf("would %s everything in %s%s", d.verb, what, condition)
		}
		return fmt.Sprintf("would %s %s%s", d.verb, what, condition)
	}
	return ""
}

// temporary are directories whose contents no program relies on.
const temporary = "/tmp /var/tmp"

// special returns what is behind a path whose loss would be serious; empty: nothing special.
func (a Around) special(name string) string {
	holdsRoot := func(root string) bool { return strings.HasPrefix(root, name+"/") }
	for _, root := range a.Roots {
		if name == root {
			return "a root of the workspace"
		}
		if name == path.Dir(root) && name != "/" {
			return name + ", which holds a root of the workspace"
		}
	}
	switch {
	case name == "/":
		return "/"
	case path.Dir(name) == "/":
		return name + ", a child of /"
	case a.Home != "" && name == path.Clean(a.Home):
		return "the home directory"
	case a.Home != "" && strings.HasPrefix(path.Clean(a.Home), name+"/"):
		return name + ", which holds the home directory"
	case slices.ContainsFunc(a.Roots, holdsRoot):
		return name + ", which holds a root of the workspace"
	}
	return ""
}

// isRelative reports whether a text is a name that depends on the working directory.
func isRelative(text string) bool { return text != "" && text[0] != '/' && text[0] != '~' }

// absolute returns what a name stands for in dir, links left as they are.
func (a Around) absolute(dir, name string) string {
	switch {
	case name == "~", strings.HasPrefix(name, "~/"):
		return path.Join("/", a.Home, name[1:])
	case path.IsAbs(name):
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// among reports whether a list that is separated by blanks holds a text.
func among(list, text string) bool {
	for entry := range strings.FieldsSeq(list) {
		if entry == text {
			return true
		}
	}
	return false
}

// mentions reports whether one of a list of texts is a word of the command.
func mentions(c *shell.Command, texts string) bool {
	return slices.ContainsFunc(c.Words, func(w shell.Word) bool { return among(texts, w.Text) })
}

// operands are the words that are not flags; behind a -- all are.
func operands(c *shell.Command) (words []shell.Word) {
	ended := false
	for _, word := range c.Words[min(1, len(c.Words)):] {
		switch {
		case ended || !word.Literal || !strings.HasPrefix(word.Text, "-"):
			words = append(words, word)
		case word.Text == "--":
			ended = true
		}
	}
	return words
}

// recursive reports whether a program is told to go into directories, by one of the letters or in
// full. A flag that is not literal may tell it so.
func recursive(c *shell.Command, letters string) bool {
	return slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		long := strings.HasPrefix(w.Text, "--")
		return long && len(w.Text) > 4 && strings.HasPrefix("--recursive", w.Text) || !long && strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, letters)
	})
}

// shortened keeps a sentence readable.
func shortened(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
