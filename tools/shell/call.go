// A simple command: listed with its words and assignments, then judged by the
// program it names. What the programs do is in the files named after them and
// in the table.

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyzer) call(c *syntax.CallExpr) (last string) {
	assigns := make([]assign, 0, len(c.Assigns))
	for _, as := range c.Assigns {
		assigns = append(assigns, a.assign(as))
	}
	text := a.source(c)
	words := a.words(c.Args)
	if len(words) == 0 {
		a.refuse(text, "an assignment can steer what runs later")
		a.add(Command{Text: text, Literal: true})
		return ""
	}
	return a.run(words, assigns, text)
}

// add lists a command and returns its index, or -1 when it is not listed.
func (a *analyzer) add(c Command) int {
	if a.muted {
		return -1
	}
	c.Via, c.DenyOnly = a.scope.via, a.scope.denyOnly
	a.out.Commands = append(a.out.Commands, c)
	return len(a.out.Commands) - 1
}

func (a *analyzer) settle(i int, readOnly bool) {
	if i >= 0 {
		a.out.Commands[i].ReadOnly = readOnly
	}
}

func (a *analyzer) transparent(i int) {
	if i >= 0 {
		a.out.Commands[i].Transparent = true
	}
}

// run lists and judges one command.
func (a *analyzer) run(words []Word, assigns []assign, text string) (last string) {
	i := a.add(Command{
		Name: words[0].Text, Words: withoutInput(words), Text: text, Literal: words[0].Literal,
	})
	before := a.refusals
	if !words[0].Literal {
		if words[0].shape == known && i >= 0 {
			a.out.Commands[i].Name = words[0].prefix
		}
		a.out.Unlisted = true
		a.refuse(text, "which program it runs is not literal")
		return ""
	}
	name := words[0].Text
	for _, as := range assigns {
		splits := as.name == "IFS" && name == "read" && as.value.Literal
		if !as.harmless && !splits {
			a.refuse(text, "`"+as.name+"=` can steer the program")
		}
	}
	if a.scope.denyOnly {
		a.refuse(text, "what runs it is not read-only")
	}
	why, last := a.judge(i, words)
	if why != "" {
		a.refuse(text, why)
		a.out.Unlisted = a.out.Unlisted || why != changesFiles
	}
	a.settle(i, a.refusals == before)
	return last
}

// judge decides by program. Names that are not here are looked up in the
// table of programs that only flags and operands tell apart.
func (a *analyzer) judge(i int, words []Word) (why, last string) {
	name, ok := systemName(words[0].Text)
	if !ok {
		return "a program by its path can be anything", ""
	}
	args := words[1:]
	switch name {
	case "timeout", "nice", "stdbuf", "nohup", "command", "builtin":
		return a.wrapper(i, name, args)
	case "xargs":
		return a.xargs(i, args), ""
	case "eval":
		return a.eval(i, args)
	case "bash", "sh", "dash", "zsh", "ksh":
		return a.shell(i, name, args)
	case "git":
		return a.gitCommand(args)
	case "find":
		return a.find(args), "find"
	case "sed", "gsed":
		return a.sed(args), "sed"
	case "awk", "gawk", "mawk", "nawk":
		return a.awk(args), "awk"
	case "set":
		a.pipefail = a.pipefail || mentions(args, "pipefail")
		return "shell options are not followed", ""
	}
	if spec, ok := carriers[name]; ok && (name != "env" || len(args) > 0) {
		return a.carrier(name, spec, args), ""
	}
	if why, ok := a.builtin(name, args); ok {
		return why, name
	}
	return a.program(name, args)
}

// systemName is the name to look up: bare, or in one of the directories that
// belong to the system.
func systemName(name string) (string, bool) {
	dir, file := name[:strings.LastIndexByte(name, '/')+1], base(name)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/":
		return file, true
	}
	return "", false
}

func mentions(words []Word, s string) bool {
	for _, w := range words {
		if strings.Contains(w.Text, s) {
			return true
		}
	}
	return false
}

// withoutInput leaves out what xargs appends, which is not in the source.
func withoutInput(words []Word) []Word {
	if n := len(words) - 1; n >= 0 && words[n].input {
		return words[:n:n]
	}
	return words
}

// harmlessNames steer no program to another file or program: language, time
// zone, colours and verbosity. Sources: locale(7), tzset(3), no-color.org and
// the documentation of node and cargo.
var harmlessNames = map[string]bool{
	"LANG": true, "LANGUAGE": true, "TZ": true, "NO_COLOR": true, "FORCE_COLOR": true,
	"CLICOLOR": true, "CLICOLOR_FORCE": true, "COLUMNS": true, "LINES": true,
	"NODE_ENV": true, "RUST_BACKTRACE": true, "RUST_LOG": true, "CI": true,
	"PYTHONUNBUFFERED": true,
	"LC_ALL":           true, "LC_COLLATE": true, "LC_CTYPE": true, "LC_MESSAGES": true,
	"LC_MONETARY": true, "LC_NUMERIC": true, "LC_TIME": true,
}

// An assign is an assignment in front of a command, or alone.
type assign struct {
	name  string
	value Word
	// harmless: the name is on the fixed list of those that steer no program
	// to another file or program, and the value is plain literal text.
	harmless bool
}

func (a *analyzer) assign(as *syntax.Assign) assign {
	out := assign{}
	if as.Name != nil {
		out.name = as.Name.Value
	}
	if as.Index != nil || as.Array != nil {
		a.hidden(a.source(as), "an array is not followed")
		a.array(as)
		return out
	}
	plain := true
	if as.Value != nil {
		out.value = a.word(as.Value)
		plain = out.value.Literal && plainValue(out.name, out.value.Text)
	} else {
		out.value = literalWord("")
	}
	out.harmless = harmlessNames[out.name] && plain && !as.Append && !as.Naked
	return out
}

func (a *analyzer) array(as *syntax.Assign) {
	a.arithmetic(as.Index, a.source(as))
	a.expansions(as.Value)
	if as.Array == nil {
		return
	}
	for _, e := range as.Array.Elems {
		a.arithmetic(e.Index, a.source(as))
		a.expansions(e.Value)
	}
}

// plainValue leaves no way to name a file outside the system's own tables.
// Only a time zone has slashes in its name.
func plainValue(name, s string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:@+-="
	if name == "TZ" && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, ":") && !strings.Contains(s, "..") {
		s = strings.ReplaceAll(s, "/", "")
	}
	return strings.Trim(s, plain) == ""
}
