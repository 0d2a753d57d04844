// env, and what the variables that it sets mean to what it runs. Only the value of PATH
// counts.

package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// minds reports whether a variable that is set around a command may change what it
// runs, reads or writes; "" stands for what the shell does itself. All programs may:
// what is not on the list of harmless names is passed on to shells and their builtins
// only, and only if it means nothing to these.
func minds(program, name string) bool {
	own := program == "" || listed(plainShells, program) || listed(builtins, program) && !listed(specialBuiltins, program)
	return !own || listed(harmlessNames, name) || listed(steeringNames, name) || // its value is not plain
		fits(shellsPaths, name) || fits(shellsOwn, name) || fits(everyProgram, name) || fits(locales, name)
}

const (
	plainShells = " bash sh dash "
	// specialBuiltins keep in a plain sh what is assigned in front of them.
	specialBuiltins = " : . break continue eval exec exit export readonly return set shift source times trap unset "
)

// shellsPaths are names by which a shell or what it starts finds files.
var shellsPaths = strings.Fields("PATH HOME PWD OLDPWD TMPDIR TMP TEMP POSIX* _* FPATH INPUTRC HIST* MAIL* TMOUT")

// inherited refuses what runs with an assignment in front of a wrapper around it, as it
// would with that in front of itself, or with what env sets and it minds.
func (a *findings) inherited(program, text string) {
	for _, name := range a.scope.assigns {
		a.refuse(text, "`"+name+"=` can change what it runs or reads")
	}
	for _, name := range a.scope.given {
		if minds(program, name) {
			a.refuse(text, "`"+name+"=` can change what it runs or reads")
		}
	}
	own, known := steeredBy[base(program)]
	if a.scope.cleared && program != "" && (len(own) > 0 || !known || listed(plainShells, base(program))) { // whose $HOME would be empty
		a.refuse(text, "without the variables that `env -i` takes away it may do something else")
	}
}

// envUse is how env changes what a command gets as its environment.
type envUse struct {
	names   []string // set or taken away, but for the harmless ones
	cleared bool
	path    bool // PATH is set, to directories of the system
}

// envCommand judges env with words: as the command that it runs. ok is false when it
// does more than to set variables and to take them away.
func (a *judge) envCommand(args []Word) (why string, ok bool) {
	use, rest, ok := envWords(args)
	if !ok || use.cleared && !use.path || len(rest) == 0 || !rest[0].Literal || rest[0].dashed() ||
		len(use.names) > 0 && !listed(plainShells, base(rest[0].Text)) {
		return "", false
	}
	outer, before := a.scope, len(a.refusals)
	a.scope.asJudged()
	a.scope.cleared = outer.cleared || use.cleared
	a.scope.given = slices.Concat(outer.given, use.names)
	a.inner("env", rest)
	a.scope = outer
	if len(a.refusals) > before {
		a.unlisted()
		a.mute(before)
		return inItsOwnWay("env"), true
	}
	return "", true
}

// envWords takes the words of env apart.
func envWords(args []Word) (use envUse, rest []Word, ok bool) {
	for len(args) > 0 {
		w := args[0]
		name, value, set := strings.Cut(w.prefix, "=")
		switch {
		case w.Literal && (w.Text == "-i" || w.Text == "-" || w.Text == "--ignore-environment"):
			use.cleared = true
		case w.is("-u") && len(args) > 1 && args[1].Literal && syntax.ValidName(args[1].Text):
			use.names, args = append(use.names, args[1].Text), args[1:]
		case strings.HasPrefix(w.prefix, "-"), w.shape > one, w.prefix == "":
			return use, nil, w.Literal && w.Text != "" && w.Text[0] != '-'
		case !set || !syntax.ValidName(name):
			return use, args, true
		case name == "PATH" && w.Literal && systemPath.MatchString(value):
			use.path = true
		case listed(harmlessNames, name) && w.Literal && plainValue(name, value):
		default:
			use.names = append(use.names, name)
		}
		args = args[1:]
	}
	return use, nil, true
}

// systemPath: a value for PATH that has only directories of the system.
var systemPath = regexp.MustCompile(`^(/usr)?/s?bin(:(/usr)?/s?bin)*$`)
