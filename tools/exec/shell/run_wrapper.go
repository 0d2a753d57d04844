// Commands that run others in ways of their own: never read-only, and what they run is
// listed only for deny and ask rules. Where an unknown flag may take a value or not,
// both readings are listed.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A wrapperSpec is where in the words of a wrapper the command begins.
type wrapperSpec struct {
	values   string // short flags that take a value
	long     string // long flags that take a value, without the dashes, separated by blanks
	operands int    // words before the command
	optional bool   // those words may be missing
	script   string // short flag whose value is the text of a script, and perhaps a long one, which may be abbreviated
	permutes bool   // that flag may stand behind the operands
	joined   bool   // all words together are the text of a script
	textOnly bool   // the words themselves are not a command
	remote   bool   // it runs elsewhere, so that what it names are not files here
}

// unknownProgram lists, for deny and ask rules, what a program might run that is named
// like a wrapper but is not the system's.
func (a *judge) unknownProgram(name string, args []Word) {
	if !inTables(name) {
		a.mayRun(args)
	}
	if w, ok := wrapped[name]; ok {
		a.candidates(name, w.spec, args)
	} else if spec, ok := wrappers[name]; ok {
		a.candidates(name, spec, args)
	}
	a.carried(name, args)
	switch name {
	case "xargs":
		a.candidates(name, xargsSpec, args)
	case "bash", "sh", "dash", "zsh", "ksh":
		if text := scriptOperand(args).text; text != nil {
			a.deniedText(name+" -c", text.Text)
		}
	}
}

func (a *judge) judgeWrapper(name string, spec wrapperSpec, args []Word) (why string) {
	switch name {
	case "env":
		if why, ok := a.envCommand(args); ok {
			return why
		}
	case "mapfile", "readarray":
		if why = a.mapfile(args); why == "" {
			return ""
		}
	}
	if name == "parallel" {
		args = a.parallel(spec, args)
	}
	a.candidates(name, spec, args)
	if listed(otherShells, name) {
		a.mayRun(args)
	}
	switch name {
	case "mapfile", "readarray":
		return why
	case "exec":
		return "it replaces the shell, or its files"
	case "compgen", "complete":
		return "it belongs to an interactive shell"
	}
	return inItsOwnWay(name)
}

func inItsOwnWay(name string) string {
	return "it runs another command in its own way, which only a rule for `" + name + "` itself can allow"
}

// carried lists what a program runs that does so with one of its subcommands,
// or that goes by another name than the one in rules.
func (a *judge) carried(name string, args []Word) {
	sub, ok := strings.CutPrefix(name, "git-")
	switch loader := strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so") || name == "ld.so"; {
	case ok && sub != "":
		a.denied(name, append([]Word{literalWord("git"), literalWord(sub)}, args...))
	case loader:
		a.candidates(name, wrapperSpec{long: "library-path preload audit argv0 inhibit-rpath"}, args)
	case name == "git":
		a.gitSettings(args)
		if slices.ContainsFunc(args, func(w Word) bool { return w.is("filter-repo") }) { // whose callbacks are texts of Python
			a.mayRun(args)
		}
	case name == "ssh" && len(args) > 1:
		a.candidates(name, ssh, args)
	}
	a.besides(name, args)
	specs, before := subcommands[name], ""
	for i := 0; i < len(args) && i < maxReadings && specs != nil; i++ {
		word := args[i].Text
		if spec, ok := specs[strings.TrimSpace(before+" "+word)]; ok {
			a.candidates(name+" "+word, spec, args[i+1:])
			return
		}
		if spec, ok := specs[word]; ok && name != "git" { // before may be the value of a flag
			a.candidates(name+" "+word, spec, args[i+1:])
			return
		}
		switch flag := strings.HasPrefix(word, "-"); {
		case !flag && before != "" && name == "git":
			return
		case !flag:
			before = word
		case name == "git" && listed(gitValues, word):
			i++
		}
	}
}

// besides lists the texts of commands that a program is given by flags.
func (a *judge) besides(name string, args []Word) {
	flags := beside[name]
	for i := 0; i < len(args) && flags != "" && a.walk(1); i++ {
		flag, value, attached := strings.Cut(args[i].Text, "=")
		switch short := flag[:min(2, len(flag))]; {
		case listed(flags, flag) && attached:
		case listed(flags, flag) && i+1 < len(args):
			value = args[i+1].Text
		case listed(flags, short) && len(flag) > 2:
			value = args[i].Text[2:]
		case abbreviated(flags, flag) && attached:
		case abbreviated(flags, flag) && i+1 < len(args):
			value = args[i+1].Text
		default:
			continue
		}
		a.deniedText(name+" "+flag, strings.TrimPrefix(value, "exec="))
	}
}

// abbreviated: the long flag may stand for one of the list.
func abbreviated(flags, flag string) bool {
	return len(flag) > len("--a") && strings.HasPrefix(flag, "--") && strings.Contains(flags, " "+flag)
}

// gitSettings lists what the settings run that git is given: aliases, and
// settings that are named after a program.
func (a *judge) gitSettings(args []Word) {
	const programs = " pager editor sshcommand askpass fsmonitor external textconv clean smudge process cmd helper program "
	for i, w := range args {
		if !a.walk(1) {
			return
		}
		key, value, ok := strings.Cut(w.Text, "=")
		if i == 0 || args[i-1].Text != "-c" {
			if ok = !ok && i+1 < len(args) && strings.Contains(key, "."); ok { // as the words of git config
				value = args[i+1].Text
			}
		}
		key = strings.ToLower(key)
		text, runs := strings.CutPrefix(value, "!")
		switch alias := strings.HasPrefix(key, "alias."); {
		case !ok || value == "":
		case alias && runs, listed(programs, key[strings.LastIndexByte(key, '.')+1:]):
			a.deniedText("git", text)
		case alias && a.walk(len(args)-i):
			a.deniedWords("git", append([]Word{{Text: "git " + value}}, args[min(i+2, len(args)):]...))
		}
	}
}

// parallel lists what the words behind ::: make of those in front of it, and
// returns the latter.
func (a *judge) parallel(spec wrapperSpec, args []Word) (template []Word) {
	at := slices.IndexFunc(args, func(w Word) bool { return strings.HasPrefix(w.Text, ":::") })
	if at < 0 {
		return args
	}
	first := 0
	for first < at && args[first].dashed() {
		if first++; spec.takes(args[first-1].Text) == aValue {
			first++
		}
	}
	text := Command{Words: args[min(first, at):at]}.String()
	for _, input := range args[at+1 : min(len(args), at+1+maxInputs)] {
		whole := strings.ReplaceAll(text, "{}", input.Text)
		if whole == text {
			whole = strings.TrimSpace(text + " " + input.Text)
		}
		a.deniedText("parallel", whole)
	}
	return args[:at]
}

// maxInputs bounds how many words are tried in the place that they are put into.
const maxInputs = 16

// candidates lists every command that the words of a wrapper may hold. After
// a flag that is not known to take a value there are two readings.
func (a *judge) candidates(via string, spec wrapperSpec, args []Word) {
	a.unlisted()
	outer := a.scope
	a.scope.remote = outer.remote || spec.remote
	defer func() { a.scope = outer }()
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
			case takes == notKnown && skip == 0 && i+2 < len(args) && !args[i+1].dashed() && !spec.textOnly:
				a.denied(via, args[i+2:])
				readings++
			}
		case text == "--", text == "-", spec.textOnly: // a single dash is a flag of env and su
		case strings.Contains(text, "=") && args[i].solid && !strings.Contains(text[:strings.Index(text, "=")], "/"):
		case skip > 0:
			if spec.optional {
				a.denied(via, args[i:])
			}
			skip--
		default:
			a.carries(via, spec, args[i:])
			return
		}
	}
}

// carries lists the words that are a command, or the text of one.
func (a *judge) carries(via string, spec wrapperSpec, words []Word) {
	if spec.joined {
		a.deniedWords(via, words)
	}
	a.denied(via, words)
	for i := range words {
		if !a.walk(1) {
			return
		}
		if value, ok := spec.scriptAt(words[i:]); ok && spec.permutes && words[i].dashed() {
			a.deniedScript(via, value)
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

func (s wrapperSpec) takes(flag string) taking {
	if name, ok := strings.CutPrefix(flag, "--"); ok {
		if strings.Contains(name, "=") {
			return nothing
		}
		if strings.Contains(" "+s.long, " "+name) {
			return aValue
		}
		return notKnown
	}
	switch at := strings.IndexAny(flag, s.values); at {
	case -1:
		return notKnown
	case len(flag) - 1:
		return aValue
	}
	return nothing // what follows in the same word is the value
}

// scriptAt finds the text of a script that the first word, a flag, has: attached, behind "=", or as
// the next word.
func (s wrapperSpec) scriptAt(args []Word) (script string, ok bool) {
	flag := args[0].Text
	if s.script == "" {
		return "", false
	}
	_, longScript, _ := strings.Cut(s.script, " ")
	at := strings.IndexByte(flag, s.script[1])
	name, value, attached := strings.Cut(flag, "=")
	switch long := strings.HasPrefix(flag, "--"); {
	case long && (len(name) < 4 || !strings.HasPrefix(longScript, name)), !long && at < 0:
		return "", false
	case !long:
		value, attached = flag[at+1:], at+1 < len(flag)
	}
	if !attached && len(args) > 1 {
		return args[1].Text, true
	}
	return value, attached
}

// deniedScript walks the value of a flag such as -c. That of env -S is words for env itself.
func (a *judge) deniedScript(via, script string) {
	if via == "env" {
		script = "env " + script
	}
	a.deniedText(via, script)
}

// deniedWords walks words that are the text of a script together.
func (a *judge) deniedWords(via string, words []Word) {
	if a.walk(len(words) - 1) {
		a.deniedText(via, Command{Words: words}.String())
	}
}

// deniedText lists what a text runs for deny and ask rules only.
func (a *analyzer) deniedText(via, text string) {
	if !a.walk(1) {
		return
	}
	a.apart(func() {
		a.scope.asDenied()
		a.scriptIn(via, text, syntax.LangBash)
	})
}
