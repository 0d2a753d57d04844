// Scripts inside scripts: bash -c, sh -c and eval with literal text, and set,
// whose options they share.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// eval runs in this very shell.
func (a *judge) eval(args []Word) (why, last string) {
	for j, w := range args {
		if !w.Literal || j == 0 && w.dashed() {
			return a.unknownScript(), ""
		}
	}
	a.lookThrough()
	return "", a.scriptIn("eval", Command{Words: args}.String(), syntax.LangBash)
}

// unknownScript is the reason against a script that is not literal.
func (a *findings) unknownScript() string {
	const why = "what it runs is only known when it runs"
	a.hidden(a.present().Text, why)
	a.unlisted()
	return why
}

// scriptIn walks the text of a nested script.
func (a *analyzer) scriptIn(via, text string, lang syntax.LangVariant) (last string) {
	if !a.walk(1) {
		return ""
	}
	a.nest(via, func() {
		a.checkText(text)
		last = a.script(text, lang)
	})
	return last
}

// shell judges bash -c and its like. sh may be bash or a plain POSIX shell,
// which read some text differently, so that text must pass as both. zsh and
// ksh read more differently, and zsh always runs the user's .zshenv.
func (a *judge) shell(name string, args []Word) (why, last string) {
	call := scriptOperand(args)
	text := call.text
	if call.odd != "" {
		why = "`" + call.odd + "` makes it read other files or read text differently"
	}
	if text == nil {
		switch {
		case len(args) == 1 && args[0].Text == "--version":
			return "", name
		case len(args) == 2 && args[0].is("-n") && args[1].solid && args[1].shape < many: // nothing is run
			return a.readOperand(args[1]), name
		}
		a.unlisted()
		a.runsFed(name, call.source(a.analyzer))
		if why == "" {
			why = "it runs a script from a file or from its input"
		}
		return why, ""
	}
	if !text.Literal {
		return a.unknownScript(), ""
	}
	if name == "zsh" || name == "ksh" {
		why = name + " reads other files first and has another grammar"
	}
	if why != "" {
		a.deniedText(name+" -c", text.Text)
		a.unlisted()
		return why, ""
	}
	a.lookThrough()
	early := a.early
	a.apart(func() {
		a.variables = a.inheritedVariables(a.scope)
		commands, redirects, place := len(a.out.Commands), len(a.out.Redirects), a.place
		last = a.scriptIn(name+" -c", text.Text, syntax.LangBash)
		if a.cwds, a.moved = place.cwds, place.moved; name == "sh" || name == "dash" {
			a.asPOSIX(name+" -c", text.Text, a.out.Commands[commands:], a.out.Redirects[redirects:])
		}
	})
	if call.early || a.early {
		last = ""
	}
	a.early = early
	return "", last
}

// asPOSIX judges a text as a plain POSIX shell would read it, after bash's
// reading. Where the two differ, both are listed and no allow rule counts.
func (a *analyzer) asPOSIX(via, text string, commands []Command, redirects []Redirect) {
	first, current, functions := a.out, a.current, a.functions
	a.functions = nil // those of the first reading, and no others reach another shell
	a.out, a.current = Analysis{Reason: first.Reason}, noCommand
	assigns := a.scope.assigns
	a.scope.assigns = first.Commands[current].Assigns
	a.scriptIn(via, text, syntax.LangPOSIX)
	second := a.out
	a.out, a.current, a.scope.assigns, a.functions = first, current, assigns, functions
	a.out.Reason = second.Reason
	if a.out.Err == nil {
		a.out.Err = second.Err
	}
	a.out.Unlisted = a.out.Unlisted || second.Unlisted
	for _, host := range second.Hosts {
		if !slices.Contains(a.out.Hosts, host) {
			a.out.Hosts = append(a.out.Hosts, host)
		}
	}
	if a.out.Opaque.Empty() {
		a.out.Opaque = second.Opaque
	}
	sameCommand := func(x, y Command) bool {
		return x.Text == y.Text && x.String() == y.String() && x.ReadOnly == y.ReadOnly
	}
	sameRedirect := func(x, y Redirect) bool { return x.Text == y.Text }
	if slices.EqualFunc(commands, second.Commands, sameCommand) && slices.EqualFunc(redirects, second.Redirects, sameRedirect) {
		return
	}
	a.hidden(text, "bash and a plain sh read it differently")
	a.out.Commands = append(a.out.Commands, second.Commands...)
	a.out.Redirects = append(a.out.Redirects, second.Redirects...)
	a.out.Reads, a.out.Writes = append(a.out.Reads, second.Reads...), append(a.out.Writes, second.Writes...)
}

// A shellCall is what the words after bash or sh ask for.
type shellCall struct {
	text  *Word  // the script after -c; nil when there is none
	file  *Word  // the file that it runs without -c
	stdin bool   // it runs what it reads all the same
	odd   string // a flag by which it reads other files, or reads text differently
	early bool   // a failure may end it before its last command
}

// plainOptions of set -o only decide when a shell ends.
const plainOptions = " errexit nounset pipefail "

// scriptOperand takes the words after bash or sh apart. A flag that is not
// known to keep the meaning is a reason against; its value, if it has
// one, is passed over so that the script is still found.
func scriptOperand(args []Word) (call shellCall) {
	command := false
	for i := 0; i < len(args); i++ {
		flag := args[i]
		switch {
		case flag.Literal && (flag.Text == "--norc" || flag.Text == "--noprofile"):
		case flag.Literal && (flag.Text == "--" || flag.Text == "-"):
			if command && i+1 < len(args) {
				call.text = &args[i+1]
			}
			return call
		case strings.HasPrefix(flag.Text, "--"):
			call.odd = flag.Text
			if flag.Text == "--rcfile" || flag.Text == "--init-file" {
				i++
			}
		case flag.dashed() || strings.HasPrefix(flag.Text, "+"):
			command = command || flag.Text[0] == '-' && strings.Contains(flag.Text, "c")
			i += call.flags(flag, args[i+1:])
		case command:
			call.text = &args[i]
			return call
		default:
			call.file = &args[i]
			return call
		}
	}
	return call
}

// source is what it runs without -c, if that is not a file.
func (call *shellCall) source(a *analyzer) *feed {
	if call.file == nil || call.stdin {
		return a.stdin
	}
	return a.contents(*call.file)
}

// flags takes one cluster of short flags, and returns how many words after it
// are values.
func (call *shellCall) flags(flag Word, after []Word) (values int) {
	if !flag.Literal || flag.Text[0] == '+' {
		call.odd = flag.Text
	}
	for _, c := range flag.Text[1:] {
		switch c {
		case 'c':
		case 'e', 'u':
			call.early = true
		case 'o':
			if call.early = true; values >= len(after) || !after[values].in(plainOptions) {
				call.odd = flag.Text
			}
			values++
		case 'O':
			call.odd = flag.Text
			values++
		case 's':
			call.stdin = true
			call.odd = flag.Text
		default:
			call.odd = flag.Text
		}
	}
	return values
}

// set passes the options that only decide when the shell ends, and none at all,
// which lists the variables.
func (a *judge) set(args []Word) (why string) {
	a.early = a.early || len(args) > 0
	if len(args) > 1 && (args[0].Text == "--" || args[0].Text == "-") {
		a.positional(args[1:])
	} else if len(args) > 0 && args[0].solid && args[0].prefix != "" && args[0].prefix[0] != '+' {
		a.positional(args)
	}
	for i := 0; i < len(args); i++ {
		const other = "it changes how the shell reads or runs what follows"
		flags := args[i].Text
		if !args[i].Literal || len(flags) < 2 || flags[0] != '-' && flags[0] != '+' || strings.Trim(flags[1:], "euo") != "" {
			return other
		}
		for range strings.Count(flags, "o") {
			if i++; i >= len(args) || !args[i].in(plainOptions) {
				return other
			}
		}
	}
	return ""
}
