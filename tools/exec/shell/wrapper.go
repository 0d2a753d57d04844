// Wrappers that every rule looks through: they are judged by what they run.

package shell

import "strings"

const maxScripts = 8 // scripts inside scripts

// mayAppend is the reason against nohup, whose own file is not covered by any rule.
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
	if !a.walk(wordsOfCommand + len(words)) {
		return ""
	}
	a.nest(via, func() { last = a.run(words, nil, Command{Words: withoutInput(words)}.String()) })
	return last
}

// nest walks what the present command runs, unless that is too deep in others.
func (a *analyzer) nest(via string, walk func()) {
	if a.nested++; a.nested > maxScripts {
		a.fail(ErrTooDeep)
	} else {
		outer := a.enter(via)
		walk()
		a.scope = outer
	}
	a.nested--
}

// enter begins the scope of what the present command runs, and returns the one
// around it. What is assigned in front of a wrapper reaches that too.
func (a *findings) enter(via string) (outer scope) {
	outer = a.scope
	a.scope.via = via
	if a.current != noCommand {
		a.scope.assigns = a.present().Assigns
	}
	return outer
}

// lookThrough makes the present command a wrapper that every kind of rule looks through,
// unless something is assigned in front of it: that is the wrapper's own.
func (a *findings) lookThrough() {
	c := a.present()
	c.Transparent = len(c.Assigns) == 0
}

// beside walks what a program runs in a process of its own, perhaps many times: it is judged, but
// an allow rule has to match the program, and what it does to the shell's place and variables ends
// with it.
func (a *judge) beside(walk func()) {
	early := a.early
	a.apart(func() {
		a.scope.asJudged()
		walk()
	})
	a.early = early
}

// asJudged makes the scope one that only deny and ask rules look through. It is judged if the scope
// around it is.
func (s *scope) asJudged() { s.denyOnly, s.followed = true, !s.denyOnly || s.followed }

// asDenied makes the scope one that only deny and ask rules look through, and for these alone.
func (s *scope) asDenied() { s.denyOnly, s.followed = true, false }

// denied lists what a wrapper runs for deny and ask rules only.
func (a *analyzer) denied(via string, words []Word) {
	outer, cwds := a.scope, a.cwds
	a.scope.asDenied()
	a.inner(via, words)
	a.scope, a.cwds = outer, cwds
}

// wrapped are the wrappers that are looked through, with their own flags:
// those without a value, and those with one. In spec is where the command
// begins when the flags are not understood.
var wrapped = map[string]struct {
	flags, operand string
	spec           wrapperSpec
}{
	"timeout": {
		flags:   "-fpv -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:",
		operand: "0123456789.", spec: wrapperSpec{values: "ks", operands: 1},
	},
	"nice":    {flags: "-# -n: --adjustment:", spec: wrapperSpec{values: "n"}},
	"stdbuf":  {flags: "-i: -o: -e: --input: --output: --error:", spec: wrapperSpec{values: "ioe"}},
	"nohup":   {},
	"command": {flags: "-p"},
	"builtin": {},
}

// xargsSpec is for an xargs with flags.
var xargsSpec = wrapperSpec{values: "nILPsdEa", long: "arg-file delimiter max-lines max-args max-chars max-procs"}

func (a *judge) wrapper(name string, args []Word) (why, last string) {
	if name == "command" && len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V") {
		return "", "command -v"
	}
	spec := wrapped[name]
	p := program{flags: spec.flags, operands: textOperands, ordered: true}
	use, why := p.parse(args)
	rest := use.operands
	if spec.operand != "" && why == "" {
		if len(rest) == 0 || !rest[0].Literal || strings.Trim(strings.TrimRight(rest[0].Text, "smhd"), spec.operand) != "" {
			why = "for how long is only known when it runs"
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
	a.lookThrough()
	last = a.inner(name, rest)
	if name == "nohup" {
		return mayAppend, last
	}
	return "", last
}

// plainInput are the flags of xargs that do not change how it builds commands.
const plainInput = " -0 -r -t -0r -r0 --null --no-run-if-empty --verbose "

// xargs is looked through by rules without flags only: with them, what it
// builds is not the command as written. What it runs is judged with a few.
func (a *judge) xargs(args []Word) string {
	before := len(a.refusals)
	why := a.xargsCalls(args)
	a.xargsFed(args, why == "" && len(a.refusals) == before)
	return why
}

func (a *judge) xargsCalls(args []Word) string {
	flags, rest := xargsFlags(args)
	if plain := len(rest) > 0 && rest[0].Literal && !rest[0].dashed(); len(rest) < len(args) && plain {
		outer := a.scope
		a.scope.asJudged()
		why := a.xargsRuns(rest, flags)
		a.scope = outer
		return why
	}
	switch {
	case len(rest) == 0: // it prints what it reads
		return ""
	case !args[0].Literal || args[0].dashed():
		a.candidates("xargs", xargsSpec, args)
		return "which commands `xargs` makes with these flags is not followed"
	}
	a.lookThrough()
	return a.xargsRuns(args, xargsUse{})
}

// xargsUse is how xargs puts what it reads into commands.
type xargsUse struct {
	zero bool   // what it reads is taken apart at zero bytes
	odd  bool   // it is taken apart at another character than zero bytes and the ends of lines
	mark string // what is replaced by one of them; empty: they come behind the command
}

// countInput are the flags of xargs that take a number: how many words or lines a
// command gets, how long it may be, and how many run at once.
const countInput = " -n -L -P -s --max-args --max-lines --max-procs --max-chars "

// xargsFlags takes flags in front of the command that are understood.
func xargsFlags(args []Word) (use xargsUse, rest []Word) {
	rest = args
	for len(rest) > 0 && rest[0].Literal {
		flag := rest[0].Text
		long, number, _ := strings.Cut(flag, "=")
		value := func() bool { return len(rest) > 1 && rest[1].Literal }
		switch {
		case listed(plainInput, flag):
			use.zero = use.zero || listed(" -0 -0r -r0 --null ", flag)
		case len(flag) > 2 && listed(countInput, flag[:2]) && isCount(flag[2:]), listed(countInput, long) && isCount(number):
		case listed(countInput, flag) && flag[1] != '-' && value() && isCount(rest[1].Text):
			rest = rest[1:]
		case flag == "-d" && value():
			use.split(rest[1].Text)
			rest = rest[1:]
		case strings.HasPrefix(flag, "-d"), long == "--delimiter" && number != "":
			use.split(strings.TrimPrefix(strings.TrimPrefix(flag, "--delimiter="), "-d"))
		case flag == "-I{}":
			use.mark = "{}"
		case flag == "-I" && value() && listed(" {} % @ _ X FILE ", rest[1].Text):
			use.mark, rest = rest[1].Text, rest[1:]
		default:
			return use, rest
		}
		rest = rest[1:]
	}
	return use, rest
}

// split notes the character at which what is read is taken apart.
func (u *xargsUse) split(at string) { u.odd = u.odd || u.zero || at != `\n` && at != "\n" }

func isCount(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// xargsRuns judges what xargs runs.
func (a *judge) xargsRuns(args []Word, use xargsUse) string {
	before := len(a.out.Commands)
	names, known := a.foundIn(a.stdin)
	known = known && names.zero == use.zero && !use.odd
	if args[len(args)-1].input {
		a.inner("xargs", args)
		known = false
	} else {
		input := Word{Text: xargsInput, shape: many, input: true}
		if known {
			input.become(textsOfAll(names.starts))
			input.below, input.solid, input.texts = true, false, nil
		}
		a.inner("xargs", use.fill(args, input))
	}
	if names.picks.Apart = !use.zero; known {
		a.takesFound(before, names)
	}
	switch name, _ := systemName(args[0].Text); name {
	case "bash", "sh", "dash", "zsh", "ksh":
		return "what it is given can become commands"
	}
	return ""
}

// fill puts what is read in its place. A word that holds the mark and more becomes
// anything.
func (u xargsUse) fill(args []Word, input Word) []Word {
	if u.mark == "" {
		return append(args[:len(args):len(args)], input)
	}
	input.Text, input.shape, input.input = u.mark, one, false
	words, _ := put(args, u.mark, func(w Word) Word {
		if w.is(u.mark) {
			return input
		}
		return Word{Text: w.Text, shape: one}
	})
	return words
}

// named is the word as reasons name it.
func (w Word) named() string {
	if w.input {
		return "a word that xargs reads and appends"
	}
	return "`" + w.Text + "`"
}
