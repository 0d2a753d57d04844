// Commands that run other commands. Those that every rule looks through are
// judged by what they run; the others are never read-only, and what they run
// is listed for deny and ask rules alone.

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxScripts = 8 // scripts inside scripts

// inner runs words as a command of its own, found behind via.
func (a *analyzer) inner(via string, words []Word) (last string) {
	if len(words) == 0 {
		return ""
	}
	if len(a.out.Commands) > 2*maxCommands { // wrappers of wrappers have many readings
		a.fail(ErrTooMany)
		return ""
	}
	if a.nested++; a.nested > maxScripts {
		a.fail(ErrTooDeep)
		a.nested--
		return ""
	}
	outer := a.scope
	a.scope.via = via
	last = a.run(words, nil, Command{Words: withoutInput(words)}.String())
	a.scope = outer
	a.nested--
	return last
}

// denied lists what a wrapper runs for deny and ask rules only.
func (a *analyzer) denied(via string, words []Word) {
	outer, cwds := a.scope, a.cwds
	a.scope.denyOnly = true
	a.inner(via, words)
	a.scope, a.cwds = outer, cwds
}

// wrapped are the wrappers that are looked through, with their own flags:
// those without a value, and those with one.
var wrapped = map[string]struct{ flags, operand string }{
	"timeout": {flags: "-fpv -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:", operand: "0123456789."},
	"nice":    {flags: "-# -n: --adjustment:"},
	"stdbuf":  {flags: "-i: -o: -e: --input: --output: --error:"},
	"nohup":   {},
	"command": {flags: "-p"},
	"builtin": {},
}

func (a *analyzer) wrapper(i int, name string, args []Word) (why, last string) {
	if name == "command" && len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V") {
		return "", "command -v"
	}
	spec := wrapped[name]
	p := program{flags: spec.flags, operands: textOperands, ordered: true}
	use, why := p.parse(args)
	rest := use.operands
	if spec.operand != "" && why == "" {
		if len(rest) == 0 || !rest[0].Literal || strings.Trim(strings.TrimRight(rest[0].Text, "smhd"), spec.operand) != "" {
			why = "how long is not literal"
		} else {
			rest = rest[1:]
		}
	}
	switch {
	case why != "":
		a.candidates(name, carrierSpec{}, args)
		return why, ""
	case len(rest) == 0:
		return "", name
	}
	a.transparent(i)
	last = a.inner(name, rest)
	if name == "nohup" {
		return "it may write nohup.out", last
	}
	return "", last
}

// xargs is looked through without flags only: with them, what it builds is
// not the command as written.
func (a *analyzer) xargs(i int, args []Word) string {
	switch {
	case len(args) == 0:
		return ""
	case !args[0].Literal || strings.HasPrefix(args[0].Text, "-"):
		a.candidates("xargs", carrierSpec{values: "nILPsdEa"}, args)
		return "xargs with flags is not followed"
	}
	a.transparent(i)
	words := args
	if !args[len(args)-1].input {
		words = append(args[:len(args):len(args)], Word{Text: "...", shape: many, input: true})
	}
	a.inner("xargs", words)
	switch name, _ := systemName(args[0].Text); name {
	case "bash", "sh", "dash", "zsh", "ksh":
		return "what it is given can become commands"
	}
	return ""
}

// eval runs in this very shell.
func (a *analyzer) eval(i int, args []Word) (why, last string) {
	texts := make([]string, len(args))
	for j, w := range args {
		if !w.Literal || j == 0 && strings.HasPrefix(w.Text, "-") {
			a.out.Opaque, a.out.Unlisted = true, true
			return "what it runs is not literal", ""
		}
		texts[j] = w.Text
	}
	a.transparent(i)
	return "", a.scriptIn("eval", strings.Join(texts, " "), syntax.LangBash)
}

// scriptIn walks the text of a nested script.
func (a *analyzer) scriptIn(via, text string, lang syntax.LangVariant) (last string) {
	if a.nested++; a.nested > maxScripts {
		a.fail(ErrTooDeep)
		a.nested--
		return ""
	}
	outer := a.scope
	a.scope.via = via
	a.checkText(text)
	last = a.script(text, lang)
	a.scope = outer
	a.nested--
	return last
}

// shell judges bash -c and its like. sh may be bash or a plain POSIX shell,
// which read some text differently, so that text must pass as both. zsh and
// ksh read more differently, and zsh always runs the user's .zshenv.
func (a *analyzer) shell(i int, name string, args []Word) (why, last string) {
	text, why := scriptOperand(args)
	if text == nil {
		if len(args) == 1 && args[0].Text == "--version" {
			return "", name
		}
		a.out.Unlisted = true
		if why == "" {
			why = "it runs a file or what it reads"
		}
		return why, ""
	}
	if !text.Literal {
		a.out.Opaque, a.out.Unlisted = true, true
		return "what it runs is not literal", ""
	}
	a.transparent(i)
	cwds, moved, pipefail := a.cwds, a.moved, a.pipefail
	last = a.scriptIn(name+" -c", text.Text, syntax.LangBash)
	switch name {
	case "sh", "dash":
		muted := a.muted
		a.muted, a.cwds = true, cwds
		a.scriptIn(name+" -c", text.Text, syntax.LangPOSIX)
		a.muted = muted
	case "zsh", "ksh":
		why = name + " reads other files first and has another grammar"
	}
	a.cwds, a.moved, a.pipefail = cwds, moved, pipefail
	return why, last
}

// scriptOperand finds the text after -c. A flag that is not known to leave
// the meaning alone is a reason against.
func scriptOperand(args []Word) (text *Word, why string) {
	c := false
	for i := 0; i < len(args); i++ {
		flag := args[i].Text
		switch {
		case args[i].Literal && (flag == "--norc" || flag == "--noprofile"):
		case args[i].Literal && (flag == "--" || flag == "-"):
			if c && i+1 < len(args) {
				return &args[i+1], why
			}
			return nil, why
		case strings.HasPrefix(flag, "-") || strings.HasPrefix(flag, "+"):
			c = c || flag[0] == '-' && !strings.HasPrefix(flag, "--") && strings.Contains(flag, "c")
			if !args[i].Literal || flag[0] == '+' || strings.Trim(flag[1:], "ceu") != "" {
				why = "`" + flag + "` makes it read other files or read text differently"
			}
			if strings.HasSuffix(flag, "o") || strings.HasSuffix(flag, "O") {
				i++
			}
		case c:
			return &args[i], why
		default:
			return nil, why
		}
	}
	return nil, why
}

// A carrierSpec says where in the words of a wrapper the command begins.
type carrierSpec struct {
	values   string // short flags that take a value
	operands int    // words before the command
	script   string // flag whose value is the text of a script
	joined   bool   // all words together are the text of a script
}

// carriers run other commands in ways that change what these do, so they are
// never read-only. env alone, without arguments, is in the table instead.
var carriers = map[string]carrierSpec{
	"env": {values: "uCS", script: "-S"}, "sudo": {values: "ughpCrtTUDR"}, "doas": {values: "uC"},
	"su": {script: "-c"}, "runuser": {values: "ugG", script: "-c"},
	"setsid": {}, "ionice": {values: "cnpPu"}, "watch": {values: "nq", joined: true},
	"flock": {values: "wEn", operands: 1, script: "-c"}, "chroot": {operands: 1},
	"script": {script: "-c"}, "exec": {values: "a"}, "busybox": {}, "toybox": {},
	"strace": {values: "opeuaEIPOSsUX"}, "ltrace": {values: "opeuasSnlx"}, "taskset": {operands: 1}, "chrt": {operands: 1},
	"unshare": {values: "SRw"}, "nsenter": {values: "tSG"}, "fakeroot": {}, "unbuffer": {}, "parallel": {values: "jIa"},
	"time": {values: "fo"}, "systemd-run": {values: "pEuMH"}, "coproc": {}, "prlimit": {}, "setpriv": {}, "capsh": {},
	"dbus-run-session": {}, "xvfb-run": {values: "nse"}, "catchsegv": {}, "setarch": {operands: 1}, "linux64": {}, "linux32": {},
}

func (a *analyzer) carrier(name string, spec carrierSpec, args []Word) string {
	a.candidates(name, spec, args)
	return "it runs another program in a way of its own"
}

// candidates lists every command that the words of a wrapper may hold. After
// a flag that is not known to take a value there are two readings.
func (a *analyzer) candidates(via string, spec carrierSpec, args []Word) {
	a.out.Unlisted = true
	starts := 0
	skip := spec.operands
	for i := 0; i < len(args) && starts < 2; i++ {
		text := args[i].Text
		switch {
		case spec.script != "" && strings.HasPrefix(text, spec.script):
			a.deniedScript(via, args[i:], spec.script)
		case text == "--":
		case strings.HasPrefix(text, "-"):
			if len(text) == 2 && strings.Contains(spec.values, text[1:]) {
				i++
			} else if len(text) > 1 && i+2 < len(args) && skip == 0 && !strings.HasPrefix(args[i+1].Text, "-") {
				a.denied(via, args[i+2:])
				starts++
			}
		case strings.Contains(text, "=") && args[i].solid && !strings.Contains(text[:strings.Index(text, "=")], "/"):
		case skip > 0:
			skip--
		default:
			if spec.joined {
				a.deniedText(via, args[i:])
			}
			a.denied(via, args[i:])
			return
		}
	}
}

// deniedScript walks the value of a flag such as -c as a script.
func (a *analyzer) deniedScript(via string, args []Word, flag string) {
	if value := strings.TrimPrefix(args[0].Text, flag); value != "" {
		a.deniedText(via, []Word{{Text: value, Literal: args[0].Literal}})
	} else if len(args) > 1 {
		a.deniedText(via, args[1:2])
	}
}

func (a *analyzer) deniedText(via string, words []Word) {
	outer, cwds, moved := a.scope, a.cwds, a.moved
	a.scope.denyOnly = true
	a.scriptIn(via, Command{Words: words}.String(), syntax.LangBash)
	a.scope, a.cwds, a.moved = outer, cwds, moved
}
