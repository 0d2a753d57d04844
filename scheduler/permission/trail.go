// What the commands of a script say about those behind them: where they may run, what variables may hold, and which
// command runs which. It follows no conditions: whatever may have happened has.

package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// A trail is what is known when a script has come to one of its commands.
type trail struct {
	Around
	commands []shell.Command
	dirs     []string            // where the command may run
	values   map[string][]string // what the script has put into variables
}

// Bounds of what is followed. A script with more commands than that is always asked about.
const (
	maxDirs     = 16
	maxValues   = 16
	maxCommands = 1000
)

// follow notes what a command leaves behind for the next.
func (t *trail) follow(c *shell.Command) {
	if len(c.Assigns) > 0 {
		t.assign(strings.Fields(c.Text))
	}
	switch c.Name {
	case "cd", "pushd":
		t.enter(c)
	case "export", "declare", "typeset", "readonly", "local":
		for _, word := range c.Words[1:] {
			t.assign([]string{word.Text})
		}
	}
}

func (t *trail) enter(c *shell.Command) {
	words := operands(c)
	if len(words) == 0 {
		words = []shell.Word{{Text: "~"}}
	}
	for _, r := range t.readings(words[0]) {
		if r.text == "" || r.guessed && strings.Trim(r.text, "/") != "" {
			continue
		}
		for _, dir := range t.dirs {
			if to := t.absolute(dir, r.text); !slices.Contains(t.dirs, to) && len(t.dirs) < maxDirs {
				t.dirs = append(t.dirs, to)
			}
		}
	}
}

// assign reads NAME=VALUE words.
func (t *trail) assign(words []string) {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "+")
		for _, r := range t.readings(shell.Word{Text: value}) {
			if r.text != "" && !r.guessed && len(t.values[name]) < maxValues {
				t.values[name] = append(t.values[name], r.text)
			}
		}
	}
}

// carrier gives the command that runs command i; -1: the shell does.
func carrier(commands []shell.Command, i int) int {
	via, _, _ := strings.Cut(commands[i].Via, " ")
	if via == "" {
		return -1
	}
	for i--; i >= 0 && path.Base(commands[i].Name) != via; i-- {
	}
	return i
}

// feeder gives the command in front of command i, or of what runs it, whose output it may read; -1: there is none.
func feeder(commands []shell.Command, i int) int {
	for i > 0 && carrier(commands, i) == i-1 {
		i--
	}
	return i - 1
}

// movers are wrappers with the flags that name a directory in which they run what they run.
var movers = map[string][]string{"env": {"-C", "--chdir"}, "sudo": {"-D", "--chdir"}, "systemd-run": {"--working-directory"}}

// placesOf gives where command i may run: where the script is, and where what runs it goes.
func (t *trail) placesOf(i int) []string {
	dirs := t.dirs
	for k := carrier(t.commands, i); k >= 0; k = carrier(t.commands, k) {
		words := t.commands[k].Words
		for _, flag := range movers[path.Base(t.commands[k].Name)] {
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
var shells = []string{"bash", "sh", "dash", "zsh", "ksh", "eval", "su", "trap", "alias"}

// withInner puts behind each command the commands of a script that is one of its words, where the shell analysis has not
// listed them since the text is not literal, and those that it is sent by an echo.
func withInner(commands []shell.Command) []shell.Command {
	var list []shell.Command
	for i := range commands[:min(len(commands), maxCommands)] {
		c := &commands[i]
		list = append(list, *c)
		if !slices.Contains(shells, path.Base(c.Name)) {
			continue
		}
		for _, inner := range shell.Analyze(innerText(commands, i)).Commands {
			if inner.Via == "" {
				inner.Via = path.Base(c.Name)
			}
			list = append(list, inner)
		}
	}
	return list
}

// innerText is the script that is no literal word of command i; empty: there is none.
func innerText(commands []shell.Command, i int) string {
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
	from := feeder(commands, i)
	if len(operands(c)) > 0 || from < 0 || !slices.Contains(printers, commands[from].Name) {
		return ""
	}
	for _, word := range operands(&commands[from]) {
		texts = append(texts, unwrapped(word.Text))
	}
	return strings.ReplaceAll(strings.Join(texts, " "), `\n`, "\n")
}

// printers print their operands.
var printers = []string{"echo", "printf"}

// unwrapped takes the double quotes off a word. What it expands between single quotes is expanded all the same.
func unwrapped(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	return expandedInQuotes.ReplaceAllString(strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`), `"$1"`)
}

var expandedInQuotes = regexp.MustCompile(`'([^'\s;|&]*\$[^'\s;|&]*)'`)
