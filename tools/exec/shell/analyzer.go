// The state of one analysis, cut into parts: what has been found so far, and where in the
// script it stands.

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An analyzer walks the syntax tree of a script. Each part of it has an owner: what is found, what
// is known of variables, and where the text stands are structs with methods of their own, which can
// be read without the rest.
type analyzer struct {
	listing
	environment
	origin

	depth   int               // statements inside statements
	nested  int               // scripts inside scripts
	aliases map[string]string // of git's configuration
	looked  bool              // see Setting
}

// A judge decides by the program that a command names. It walks on where that program runs others.
type judge struct{ *analyzer }

// findings is what has been found so far, and whose doing it is.
type findings struct {
	place

	out      Analysis
	current  int       // whose paths are being listed: an index of out.Commands, or -1
	listed   int       // paths so far
	walked   int       // words so far; see maxWords
	refusals []refusal // why the script is not read-only
	scope    scope
}

// listing adds to the findings what the words of programs name. It runs nothing.
type listing struct{ findings }

// place is where the shell may be.
type place struct {
	cwds           []string // where a relative path may start; nil when unknown
	arrived        []string // where the last cd leads if it succeeds; nil when unknown
	chained        []string // where the last && leads if both sides of it succeed
	moved          bool     // the shell's own working directory may have changed
	printsLocation bool     // the present list only goes to a directory and prints its name
	early          bool     // the exit code may be that of any command
}

// environment is what is known of the variables and functions that the script has.
type environment struct {
	variables  []*variable
	fixed      []string // names that were made readonly
	exported   []string // names that may get another value in the environment of later commands
	haunted    bool     // something may set variables at any time
	declared   bool     // a declaration may give variables another nature
	rounds     int      // loops around the present place
	functions  map[string]function
	inFunction int               // functions around the present place
	renamed    map[string]string // by hash -p: what a name runs
	instanced  int               // commands listed for the values of variables
}

// origin is the text that is being walked, and what the present command reads.
type origin struct {
	src         string  // the text that positions of the current script refer to
	stdin       *feed   // what the present command reads; nil: what the script itself does, or a file
	substituted []*feed // what process substitutions print
}

// scope is what the commands of a nested script inherit.
type scope struct {
	via      string
	denyOnly bool
	followed bool // of what is for deny and ask rules only: judged nevertheless
	assigns  []string
	given    []string // names that env sets, apart from harmless ones, or takes away
	cleared  bool     // env has taken all of them away
	remote   bool     // it runs on another machine, or in a container
}

// noCommand is the index for what the shell itself reads or writes, and no command.
const noCommand = -1

const (
	maxCwds     = 8
	maxPaths    = 500 // listed; the rest makes the analysis Unlisted
	maxExported = 64  // names; with more of them no command counts as read-only
)

// result closes the analysis; last is the program that decides the exit code.
func (a *analyzer) result(last string) Analysis {
	if len(a.out.Commands) > maxCommands {
		a.fail(ErrTooMany)
	}
	if a.declared {
		a.distrust()
	}
	a.steer()
	a.out.Reason = first(a.refusals).Reason
	if len(a.refusals) > 0 {
		a.blame()
	}
	out := a.out
	out.Background = out.Background || slices.ContainsFunc(out.Commands, func(c Command) bool { // it is meant to outlive the script
		return listed(" nohup setsid ", path.Base(c.Name))
	})
	out.Walked = a.walked
	if out.Err == nil && !a.early {
		out.Last = last
	}
	out.ReadOnly = len(a.refusals) == 0
	out.Concurrent = out.ReadOnly && !a.moved
	if out.ReadOnly && a.moved {
		out.Reason = Reason{"cd", "the working directory changes"}
	}
	out.Unlisted = out.Unlisted || out.Err != nil
	return out
}

// blame ensures that a script that is not read-only has a part that is not. How parts
// are combined can be the reason as well, as with what is left running: then it is all
// of them.
func (a *findings) blame() {
	own := func(c Command) bool { return !c.ReadOnly && !c.Transparent && !c.DenyOnly }
	file := func(r Redirect) bool { return r.Writes || !r.Target.foretold() }
	if a.out.Err != nil || !a.out.Opaque.Empty() || slices.ContainsFunc(a.out.Commands, own) || slices.ContainsFunc(a.out.Redirects, file) {
		return
	}
	found := false
	for i := range a.out.Commands {
		c := &a.out.Commands[i]
		c.ReadOnly, c.Why = false, a.out.Reason.Why
		found = found || !c.Transparent && !c.DenyOnly
	}
	if !found {
		a.out.Opaque = a.out.Reason
	}
}

// distrust revokes that assignments are harmless: a variable that is declared an integer
// or a reference runs what is assigned to it.
func (a *findings) distrust() {
	for i := range a.out.Commands {
		if c := &a.out.Commands[i]; len(c.Words) == 0 && c.ReadOnly {
			a.refuse(c.Text, "a declaration in the script may make the variable more than text")
			a.judged(i, len(a.refusals)-1)
		}
	}
}

// steer revokes that commands are read-only if they obey a variable that the script
// itself may export: a rule that allows the export does not allow them.
func (a *analyzer) steer() {
	set := map[string]string{}
	for _, name := range a.exported {
		if set[name] = "/"; len(set) > maxExported { // whatever the value is, it is not plain
			break
		}
	}
	steered := a.out.Steered(set)
	for i := range a.out.Commands {
		if _, ok := steered[i]; ok || len(set) > maxExported {
			a.out.Commands[i].ReadOnly = false
		}
	}
}

// A refusal is a reason why the script is not read-only. One that is aside, such as one
// in what only deny and ask rules look through, counts only if there is no other.
type refusal struct {
	Reason
	denyOnly bool // in what only deny and ask rules look through
	aside    bool
}

// refuse records that the script is not read-only.
func (a *findings) refuse(text, why string) {
	a.refusals = append(a.refusals, refusal{Reason{text, why}, a.scope.denyOnly, a.scope.denyOnly && !a.scope.followed})
}

// mute puts aside what was refused since there were that many refusals.
func (a *findings) mute(before int) {
	for i := range a.refusals[before:] {
		a.refusals[before+i].aside = true
	}
}

// first returns the first of the refusals that counts; the zero value if there are none.
func first(refusals []refusal) refusal {
	if len(refusals) == 0 {
		return refusal{}
	}
	return refusals[max(0, slices.IndexFunc(refusals, func(r refusal) bool { return !r.aside }))]
}

// judged records whether command i is read-only, which it is if nothing was refused since there
// were that many refusals.
func (a *findings) judged(i, before int) {
	c, r := &a.out.Commands[i], first(a.refusals[before:])
	c.ReadOnly, c.Why = len(a.refusals) == before, r.Why
	if r.denyOnly && !c.DenyOnly { // one reading of a wrapper's words, and perhaps not the right one
		c.Why = "it runs another program in a way of its own"
	}
}

// hidden refuses, and records that the listed commands are not all that may run.
func (a *findings) hidden(text, why string) {
	a.refuse(text, why)
	if a.out.Opaque.Empty() {
		a.out.Opaque = Reason{text, why}
	}
}

// A Reason is a part of a script, and a clause about why it decided.
type Reason struct{ Part, Why string }

// Empty reports whether there is no reason.
func (r Reason) Empty() bool { return r == Reason{} }

// String returns the part in backquotes, shortened, and the clause; empty without a reason.
func (r Reason) String() string {
	if r.Empty() {
		return ""
	}
	return "`" + shorten(r.Part) + "`: " + r.Why
}

func (a *findings) fail(err error) {
	a.refuse("script", err.Error())
	if a.out.Err == nil {
		a.out.Err = err
	}
}

// shorten keeps a reason readable.
func shorten(s string) string {
	const limit = 100
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// source is the text of a node as written.
func (a *origin) source(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(a.src)) {
		return ""
	}
	return a.src[from:to]
}

// script parses and walks text in the place where the shell would run it.
func (a *analyzer) script(text string, lang syntax.LangVariant) (last string) {
	last = a.reading(text, lang)
	if other := endComments(text); other != text && a.walk(0) {
		a.hidden("#", "a backslash ends its line, so where a comment ends is not certain")
		a.reading(other, lang)
	}
	return last
}

func (a *analyzer) reading(text string, lang syntax.LangVariant) (last string) {
	if !a.walkText(text) {
		return ""
	}
	stmts, err := parse(text, lang)
	if err != nil && a.nested > 0 {
		a.walk(wordsOfFailure * len(text))
	}
	outer := a.src
	a.src = text
	last = a.stmts(stmts)
	if a.onlySets(stmts) {
		a.refuse(text, "it only sets variables, perhaps for a later command")
	}
	a.src = outer
	if err != nil {
		a.fail(err)
		a.hidden("script", err.Error())
		return ""
	}
	return last
}

// apart walks what leaves the shell where it is, with the variables and the input that it has, in
// the scope that it is in. That the exit code may be that of any command lasts.
func (a *analyzer) apart(walk func()) {
	place, scope, variables, src, stdin := a.place, a.scope, a.variables, a.src, a.stdin
	walk()
	place.early = a.early
	a.place, a.scope, a.variables, a.src, a.stdin = place, scope, variables, src, stdin
}

// isolated walks statements that a shell of their own runs.
func (a *analyzer) isolated(stmts []*syntax.Stmt) (last string) {
	a.apart(func() {
		a.printsLocation = onlyPrintsLocation(stmts)
		last = a.stmts(stmts)
	})
	return last
}

// present returns the command that is judged; where there is none, one that is not listed anywhere.
func (a *findings) present() *Command {
	if a.current == noCommand {
		return new(Command)
	}
	return &a.out.Commands[a.current]
}
