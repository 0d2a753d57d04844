// Commands that run other commands. Those that every rule looks through are
// judged by what they run; the others are never read-only, and what they run
// is listed for deny and ask rules alone.

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxScripts = 8 // scripts inside scripts

// mayAppend is the reason against nohup, whose own file no rule is about.
const mayAppend = "it may write nohup.out"

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
	outer := a.enter(via)
	last = a.run(words, nil, Command{Words: withoutInput(words)}.String())
	a.scope = outer
	a.nested--
	return last
}

// enter begins the scope of what the present command runs, and returns the one
// around it. What is assigned in front of a wrapper reaches that too.
func (a *analyzer) enter(via string) (outer scope) {
	outer = a.scope
	a.scope.via = via
	if a.current != nobody {
		a.scope.assigns = a.out.Commands[a.current].Assigns
	}
	return outer
}

// denied lists what a wrapper runs for deny and ask rules only.
func (a *analyzer) denied(via string, words []Word) {
	outer, cwds := a.scope, a.cwds
	a.scope.denyOnly, a.scope.followed = true, false
	a.inner(via, words)
	a.scope, a.cwds = outer, cwds
}

// wrapped are the wrappers that are looked through, with their own flags:
// those without a value, and those with one. In spec is where the command
// begins when the flags are not understood.
var wrapped = map[string]struct {
	flags, operand string
	spec           carrierSpec
}{
	"timeout": {
		flags:   "-fpv -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:",
		operand: "0123456789.", spec: carrierSpec{values: "ks", operands: 1},
	},
	"nice":    {flags: "-# -n: --adjustment:", spec: carrierSpec{values: "n"}},
	"stdbuf":  {flags: "-i: -o: -e: --input: --output: --error:", spec: carrierSpec{values: "ioe"}},
	"nohup":   {},
	"command": {flags: "-p"},
	"builtin": {},
}

// xargsSpec is for an xargs with flags.
var xargsSpec = carrierSpec{values: "nILPsdEa", long: "arg-file delimiter max-lines max-args max-chars max-procs"}

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
		a.candidates(name, spec.spec, args)
		return why, ""
	case len(rest) == 0:
		return "", name
	}
	a.out.Commands[i].Transparent = true
	last = a.inner(name, rest)
	if name == "nohup" {
		return mayAppend, last
	}
	return "", last
}

// plainInput are the flags of xargs that leave alone how it builds commands.
const plainInput = " -0 -r -0r -r0 --null --no-run-if-empty "

// xargs is looked through by rules without flags only: with them, what it
// builds is not the command as written. What it runs is judged with a few.
func (a *analyzer) xargs(i int, args []Word) string {
	rest := args
	for len(rest) > 0 && rest[0].Literal && listed(plainInput, rest[0].Text) {
		rest = rest[1:]
	}
	if plain := len(rest) > 0 && rest[0].Literal && !strings.HasPrefix(rest[0].Text, "-"); len(rest) < len(args) && plain {
		outer := a.scope
		a.scope.denyOnly, a.scope.followed = true, !outer.denyOnly || outer.followed
		why := a.xargsRuns(rest)
		a.scope = outer
		return why
	}
	switch {
	case len(args) == 0:
		return ""
	case !args[0].Literal || strings.HasPrefix(args[0].Text, "-"):
		a.candidates("xargs", xargsSpec, args)
		return "xargs with flags is not followed"
	}
	a.out.Commands[i].Transparent = true
	return a.xargsRuns(args)
}

// xargsRuns judges what xargs runs.
func (a *analyzer) xargsRuns(args []Word) string {
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

// A carrierSpec says where in the words of a wrapper the command begins.
type carrierSpec struct {
	values   string // short flags that take a value
	long     string // long flags that take a value, without the dashes, separated by blanks
	operands int    // words before the command
	script   string // short flag whose value is the text of a script
	// longScript is the same with two dashes, which may be abbreviated.
	longScript string
	joined     bool // all words together are the text of a script
}

// carriers run other commands in ways that change what these do, so they are
// never read-only. env alone, without arguments, is in the table instead.
var carriers = map[string]carrierSpec{
	"env":  {values: "uCS", long: "unset chdir split-string", script: "-S", longScript: "--split-string"},
	"sudo": {values: "ughpCrtTUDR", long: "user group host prompt close-from role type command-timeout other-user chdir chroot"},
	"doas": {values: "uC"}, "su": {values: "cCgGsTuw", long: "command group shell supp-group", operands: 1, script: "-c", longScript: "--command"}, "runuser": {values: "ugG", script: "-c"},
	"setsid": {}, "ionice": {values: "cnpPu", long: "class classdata pid pgid uid"},
	"watch": {values: "nq", long: "interval equexit", joined: true},
	"flock": {values: "wE", long: "timeout wait conflict-exit-code", operands: 1, script: "-c"}, "chroot": {operands: 1},
	"script": {script: "-c"}, "exec": {values: "a"}, "busybox": {}, "toybox": {},
	"strace": {values: "opeuaEIPOSsUX"}, "ltrace": {values: "opeuasSnlx"}, "taskset": {operands: 1}, "chrt": {operands: 1},
	"unshare": {values: "SRw"}, "nsenter": {values: "tSG"}, "fakeroot": {}, "unbuffer": {}, "parallel": {values: "jIa"},
	"time": {values: "fo", long: "format output"}, "systemd-run": {values: "pEuMH"}, "coproc": {}, "prlimit": {}, "setpriv": {}, "capsh": {},
	"dbus-run-session": {}, "xvfb-run": {values: "nse"}, "catchsegv": {}, "setarch": {operands: 1}, "linux64": {}, "linux32": {},
}

// stranger lists, for deny and ask rules, what a program might run that is named
// like a wrapper but is not the system's.
func (a *analyzer) stranger(name string, args []Word) {
	if w, ok := wrapped[name]; ok {
		a.candidates(name, w.spec, args)
	} else if spec, ok := carriers[name]; ok {
		a.candidates(name, spec, args)
	}
	switch name {
	case "xargs":
		a.candidates(name, xargsSpec, args)
	case "bash", "sh", "dash", "zsh", "ksh":
		if text := scriptOperand(args).text; text != nil {
			a.deniedText(name+" -c", []Word{*text})
		}
	}
}

func (a *analyzer) carrier(name string, spec carrierSpec, args []Word) string {
	a.candidates(name, spec, args)
	return "it runs another program in a way of its own"
}

// candidates lists every command that the words of a wrapper may hold. After
// a flag that is not known to take a value there are two readings.
func (a *analyzer) candidates(via string, spec carrierSpec, args []Word) {
	a.unlisted()
	readings := 0
	skip := spec.operands
	for i := 0; i < len(args) && readings < maxReadings; i++ {
		text := args[i].Text
		switch {
		case strings.HasPrefix(text, "-") && len(text) > 1 && text != "--":
			if value, ok := spec.scriptAt(args[i:]); ok {
				a.deniedScript(via, value)
			}
			switch takes := spec.takes(text); {
			case takes == aValue:
				i++
			case takes == notKnown && skip == 0 && i+2 < len(args) && !strings.HasPrefix(args[i+1].Text, "-"):
				a.denied(via, args[i+2:])
				readings++
			}
		case text == "--":
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

// maxReadings bounds how often a flag that is not known splits the words of a wrapper.
const maxReadings = 6

// taking is what a flag does with the word behind it.
type taking uint8

const (
	notKnown taking = iota
	aValue
	nothing
)

func (s carrierSpec) takes(flag string) taking {
	if name, ok := strings.CutPrefix(flag, "--"); ok {
		if strings.Contains(name, "=") {
			return nothing
		}
		for _, long := range strings.Fields(s.long) {
			if strings.HasPrefix(long, name) {
				return aValue
			}
		}
		return notKnown
	}
	for i := 1; i < len(flag); i++ {
		if strings.IndexByte(s.values, flag[i]) < 0 {
			continue
		}
		if i == len(flag)-1 {
			return aValue
		}
		return nothing // what follows in the same word is the value
	}
	return notKnown
}

// scriptAt finds the text of a script that the first word, a flag, gives: attached, behind "=", or as the next word.
func (s carrierSpec) scriptAt(args []Word) (script Word, ok bool) {
	flag := args[0].Text
	if s.script == "" {
		return script, false
	}
	at := strings.IndexByte(flag, s.script[1])
	name, value, attached := strings.Cut(flag, "=")
	switch {
	case strings.HasPrefix(flag, "--"):
		if s.longScript == "" || len(name) < 4 || !strings.HasPrefix(s.longScript, name) {
			return script, false
		}
	case at < 0:
		return script, false
	default:
		value, attached = flag[at+1:], at+1 < len(flag)
	}
	switch {
	case attached:
		return Word{Text: value, Literal: args[0].Literal}, true
	case len(args) > 1:
		return args[1], true
	}
	return script, false
}

// deniedScript walks the value of a flag such as -c. That of env -S is words for env itself.
func (a *analyzer) deniedScript(via string, script Word) {
	if via == "env" {
		script.Text = "env " + script.Text
	}
	a.deniedText(via, []Word{script})
}

func (a *analyzer) deniedText(via string, words []Word) {
	outer, cwds, moved := a.scope, a.cwds, a.moved
	a.scope.denyOnly, a.scope.followed = true, false
	a.scriptIn(via, Command{Words: words}.String(), syntax.LangBash)
	a.scope, a.cwds, a.moved = outer, cwds, moved
}
