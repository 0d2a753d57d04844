// What the commands of a script mean for those behind them: where they may run, what variables may
// hold, and which command runs which. Conditions are not followed: whatever may have happened has.
// Where following ends, the state records it.

package damage

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// A state is what is known when a script has come to one of its commands.
type scriptState struct {
	Around
	commands []shell.Command
	wrappers []int               // of each command, which one runs it; -1: the shell does
	dirs     []string            // where the command may run, one of each kind
	kinds    map[kind]bool       // of the dirs
	here     string              // where it runs if each cd did what it was meant to; empty: that is not known
	values   map[string][]string // what the script has put into variables
	astray   bool                // the command may run elsewhere too
	lost     map[string]bool     // variables that may hold more than values has
	depth    int                 // of substitutions that are being read
	steps    int                 // that were taken so far
}

// Bounds of what is followed. What goes beyond one is never taken for harmless.
const (
	maxDirs   = 64
	maxValues = 16
	maxDepth  = 8
	// maxSteps bounds all of it: paths that are joined, readings that are made longer, words that
	// the analysis of a text walks. It is reached after about 20 ms.
	maxSteps = 20_000
)

// step counts n more steps, and reports whether the trail may be followed further.
func (t *scriptState) step(n int) bool {
	t.steps += n
	return t.steps <= maxSteps
}

// unfollowed ends a clause about what is beyond them.
const unfollowed = "too involved to be followed"

// follow notes what a command leaves behind for the next.
func (t *scriptState) follow(c *shell.Command) {
	if len(c.Assigns) > 0 {
		for _, set := range c.Sets {
			t.assign(set.Name, set.Value)
		}
	}
	switch c.Name {
	case "cd", "pushd":
		t.enter(c)
	case "export", "declare", "typeset", "readonly", "local":
		for _, word := range c.Words[1:] {
			if name, value, ok := strings.Cut(word.Text, "="); ok {
				t.assign(strings.TrimSuffix(name, "+"), shell.Word{Text: value})
			}
		}
	}
}

func (t *scriptState) enter(c *shell.Command) {
	words := operands(c)
	switch {
	case mentions(c, "-"):
		words = []shell.Word{{Text: "$OLDPWD"}}
	case len(words) == 0:
		words = []shell.Word{{Text: "~"}}
	}
	readings := t.readings(words[0])
	if len(readings) > 1 {
		t.here = ""
	} else if t.here != "" {
		t.here = t.absolute(t.here, readings[0].text)
	}
	for _, r := range readings {
		t.astray = t.astray || r.lost
		if r.text == "" || r.guessed && strings.Trim(r.text, "/") != "" {
			continue
		}
		for _, dir := range t.dirs {
			if !t.step(2) { // it is a longer one than most
				t.astray = true
				return
			}
			t.reach(t.absolute(dir, r.text))
		}
	}
}

// reach adds a directory, unless there is one of its kind.
func (t *scriptState) reach(dir string) {
	kind := t.kind(dir)
	switch {
	case t.kinds[kind]:
	case len(t.dirs) == maxDirs:
		t.astray = true
	default:
		t.dirs, t.kinds[kind] = append(t.dirs, dir), true
	}
}

// A kind is what directories have in common from which the same names are worth asking about: the
// nearest directory above that is worth asking about itself, and how far below that they are.
type kind struct {
	above string
	depth int
}

func (t *scriptState) kind(dir string) kind {
	k := kind{above: "/"}
	for rest := strings.Trim(dir, "/"); rest != ""; {
		name, further, _ := strings.Cut(rest, "/")
		next := path.Join(k.above, name)
		if t.special(next) == "" && !among(temporary, next) && !holdsDevices(next) {
			k.depth = 1 + strings.Count(rest, "/") // nothing below such a name is worth asking about
			break
		}
		k.above, rest = next, further
	}
	return k
}

// implausible reports whether a name in /, which a command would have there if it ran in dir, can
// be left out: it ran there only if several cds had failed, and the name is not a common one there.
func (t *scriptState) implausible(dir, name string) bool {
	if name == "/" || path.Dir(name) != "/" || t.here == "" || dir == t.Dir || t.kind(dir) == t.kind(t.here) {
		return false
	}
	return !slices.ContainsFunc(topLevel, func(common string) bool { fits, _ := path.Match(path.Base(name), common); return fits })
}

// topLevel is what there is in / by the Filesystem Hierarchy Standard 3.0 and on macOS.
var topLevel = strings.Fields("bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin srv sys" +
	" tmp usr var Applications Library System Users Volumes cores private")

// holdsDevices reports whether names below may be devices, which are told apart by their whole
// names.
func holdsDevices(name string) bool {
	return strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/sys/") || strings.HasPrefix(name, "/proc/")
}

// assign notes what a variable may hold from now on.
func (t *scriptState) assign(name string, value shell.Word) {
	for _, r := range t.readings(value) {
		switch known := t.values[name]; {
		case r.lost:
			t.lost[name] = true
		case r.text == "", r.guessed, slices.Contains(known, r.text):
		case len(known) == maxValues:
			t.lost[name] = true
		default:
			t.values[name] = append(t.values[name], r.text)
		}
	}
}

// valuesOf returns what a variable may hold as far as that is known, and whether it is never empty.
func (t *scriptState) valuesOf(name string) (values []string, sure bool) {
	values = slices.Clip(t.values[name])
	switch {
	case name == "HOME" && t.Home != "":
		return append(values, path.Clean(t.Home)), true
	case name == "PWD":
		return append(values, "."), true
	}
	for _, pair := range t.Environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok && value != "" {
			values = append(values, value)
		}
	}
	return values, false
}

// wrappersOf returns, for each command, the index of the nearest one in front of it that runs it,
// or -1 if the shell does.
func wrappersOf(commands []shell.Command) []int {
	list, last := make([]int, len(commands)), map[string]int{}
	for i := range commands {
		via, _, _ := strings.Cut(commands[i].Via, " ")
		list[i] = -1
		if at, ok := last[via]; ok && via != "" {
			list[i] = at
		}
		last[path.Base(commands[i].Name)] = i
	}
	return list
}

// feeder returns the command in front of command i, or of what runs it, whose output it may read;
// -1: there is none.
func feeder(wrappers []int, i int) int {
	for i > 0 && wrappers[i] == i-1 {
		i--
	}
	return i - 1
}

// movers are wrappers with the flags that name a directory in which they run what they run.
var movers = map[string]string{"env": "-C --chdir", "sudo": "-D --chdir", "systemd-run": "--working-directory"}

// placesOf returns where command i may run: where the script is, and where what runs it goes.
func (t *scriptState) placesOf(i int) []string {
	dirs := t.dirs
	strays := func(pair string) bool { return strings.HasPrefix(pair, "CDPATH=") } // cd may go elsewhere than its operand
	if known := t.commands[i].Dirs; len(known) > 0 && !slices.ContainsFunc(t.Environ, strays) {
		dirs = nil
		for _, dir := range known {
			dirs = append(dirs, t.absolute(t.Dir, dir))
		}
	}
	for k := t.wrappers[i]; k >= 0 && t.step(1); k = t.wrappers[k] {
		words := t.commands[k].Words
		for flag := range strings.FieldsSeq(movers[path.Base(t.commands[k].Name)]) {
			for j, word := range words {
				to, attached := strings.CutPrefix(word.Text, flag)
				switch {
				case !attached:
					continue
				case to != "":
					to = strings.TrimPrefix(to, "=")
				case j+1 < len(words):
					to = words[j+1].Text
				}
				dirs = append(slices.Clip(dirs), t.absolute(t.Dir, to))
			}
		}
	}
	return dirs
}

// shells take the text of a script as a word.
const shells = "bash sh dash zsh ksh eval su trap alias"

// take takes in the commands, and behind each those of a script that is one of its words, where the
// shell analysis has not listed them since the text is not literal, or that it is sent by an echo.
// beyond is one whose script is over a bound.
func (t *scriptState) take(commands []shell.Command) (beyond *shell.Command) {
	wrappers := wrappersOf(commands)
	for i := range commands {
		c := &commands[i]
		t.commands = append(t.commands, *c)
		if !among(shells, path.Base(c.Name)) {
			continue
		}
		found := shell.Analyze(innerText(commands, wrappers, i))
		over := func(bound error) bool { return errors.Is(found.Err, bound) }
		if !t.step(found.Walked) || slices.ContainsFunc([]error{shell.ErrTooMany, shell.ErrTooDeep, shell.ErrTooInvolved}, over) {
			return c
		}
		for _, inner := range found.Commands {
			if inner.Via == "" {
				inner.Via = path.Base(c.Name)
			}
			t.commands = append(t.commands, inner)
		}
	}
	t.wrappers = wrappersOf(t.commands)
	return nil
}

// innerText is the script that is not a literal word of command i; empty: there is none.
func innerText(commands []shell.Command, wrappers []int, i int) string {
	c := &commands[i]
	var texts []string
	for _, word := range c.Words[1:] {
		_, value, _ := strings.Cut(word.Text, "=")
		switch {
		case c.Name == "alias":
			return unwrapped(value)
		case c.Name == "trap" && word.Literal:
			return word.Text
		case !word.Literal:
			texts = append(texts, unwrapped(word.Text))
		case c.Name == "eval":
			texts = append(texts, word.Text)
		}
	}
	if slices.ContainsFunc(c.Words, func(w shell.Word) bool { return !w.Literal }) {
		return strings.Join(texts, " ")
	}
	from := feeder(wrappers, i)
	if len(operands(c)) > 0 || from < 0 || !among(outputPrograms, commands[from].Name) {
		return ""
	}
	for _, word := range operands(&commands[from]) {
		texts = append(texts, unwrapped(word.Text))
	}
	return strings.ReplaceAll(strings.Join(texts, " "), `\n`, "\n")
}

// outputPrograms print their operands.
const outputPrograms = "echo printf"

// prints returns the words that a command prints if it prints its operands.
func (t *scriptState) prints(c *shell.Command) (found []reading) {
	for _, word := range operands(c) {
		for _, r := range t.readings(word) {
			if r.lost || r.escaped {
				found = append(found, r)
			}
			for _, r.text = range strings.Fields(blanks.Replace(r.text)) {
				found = append(found, r)
			}
		}
	}
	return found
}

var blanks = strings.NewReplacer(`\n`, " ", `\0`, " ")

// outermost leaves out the commands of substitutions, which are listed before the command that has
// them in its words.
func outermost(commands []shell.Command) (list []shell.Command) {
	for _, c := range slices.Backward(commands) {
		inside := func(w shell.Word) bool { return !w.Literal && strings.Contains(w.Text, c.Text) }
		if len(list) == 0 || !slices.ContainsFunc(list[len(list)-1].Words, inside) {
			list = append(list, c)
		}
	}
	return list
}

// unwrapped takes the double quotes off a word. What it expands between single quotes is expanded
// all the same.
func unwrapped(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	return expandedInQuotes.ReplaceAllString(strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`), `"$1"`)
}

var expandedInQuotes = regexp.MustCompile(`'([^'\s;|&]*\$[^'\s;|&]*)'`)
