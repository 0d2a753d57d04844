package permission

// Permission and the sandbox: which calls may leave it, and what being in it allows.

import (
	"slices"

	"github.com/toold/toold/tools/exec/shell"
)

// Escape is the settings about calls that leave the sandbox, or stay in it. The zero value is the default.
type Escape struct {
	// Excluded are the rules of commands that run outside; nil: none.
	Excluded *Rules
	// Denied is where leaving is switched off; nil: it is not.
	Denied *Origin
	// AutoAllow is where settings let confined calls run without a rule; nil: they do not.
	AutoAllow *Origin
}

// Excludes reports whether all that a call runs is to run outside the sandbox: a rule of excludedCommands matches each of
// its commands, apart from some builtins that only print, test or move, and at least one. That a command only reads is no
// permission to leave. A call that was not understood in full stays inside.
func (e Escape) Excludes(f *Facts) bool {
	if e.Excluded == nil || f.Unknown.Cause != "" {
		return false
	}
	c, listed, redirected := read(f), false, slices.ContainsFunc(f.Accesses, func(a Access) bool { return a.By == 0 && a.Write })
	for i := range c.Commands {
		command := &c.Commands[i]
		switch {
		case e.lists(c.texts[i]):
			listed = true
		case command.Transparent, command.DenyOnly: // a rule has to match what a wrapper runs, or the wrapper
		case redirected || !harmlessOutside(command):
			return false
		}
	}
	return listed
}

// lists reports whether a rule of excludedCommands matches the command.
func (e Escape) lists(t text) bool {
	return e.Excluded.first(AllowList, func(r *anchored) bool { return t.coveredBy(r) && !r.misplaced(t.command) }) != nil
}

// misplaced reports whether the rule names a file by a relative path, and the command runs in another directory than the
// script starts in: there the path names another file.
func (r *anchored) misplaced(c *shell.Command) bool {
	return !slices.Equal(c.Dirs, []string{"."}) && slices.ContainsFunc(r.fixedWords(), shell.IsRelativeFile)
}

// companions are the builtins that may leave the sandbox beside a listed command.
var companions = []string{"echo", "printf", "cd", "true", "false", "test", "[", "exit"}

// harmlessOutside reports whether a command is one of them and its words run nothing, or is an assignment that does not
// steer a program.
func harmlessOutside(c *shell.Command) bool {
	if c.Name == "" {
		return len(c.Assigns) == 0
	}
	return slices.Contains(companions, c.Name) && c.ReadOnly && len(c.Assigns) == 0 &&
		!slices.ContainsFunc(c.Words, shell.Word.RunsCommands)
}

// leaving returns the grounds to ask about writes for which the call leaves the sandbox, one for each directory that cannot be
// opened to it.
func (f *Facts) leaving() (found []Reason) {
	var dirs []string
	for _, a := range f.Accesses {
		if a.Leaves != "" && !slices.Contains(dirs, a.Leaves) {
			dirs = append(dirs, a.Leaves)
			found = append(found, Reason{Code: LeavesSandbox, About: a.where(), Detail: a.Leaves, Part: a.Part})
		}
	}
	return found
}

// denied is why the call may not leave the sandbox, if it asks to or has to.
func (e Escape) denied(f *Facts) (found []Reason) {
	if f.Unconfined && e.Denied != nil {
		found = append(found, Reason{Code: UnsandboxedOff, About: e.Denied.String()})
	}
	if f.Leaves() && e.Denied != nil {
		found = append(found, Reason{Code: LeavesOff, About: e.Denied.String(), Detail: f.leaving()[0].String()})
	}
	return found
}

// confined returns the reason that allows a call because it is confined, if nothing denies it or asks about it.
func (e Escape) confined(f *Facts) (found []Reason) {
	if f.Boxed && e.AutoAllow != nil {
		found = append(found, Reason{Code: ByConfinement, About: e.AutoAllow.String()})
	}
	return found
}
