// What a verdict is derived from: a call as the sum of the things that it would do, each of which has to be permitted.

package permission

import (
	"cmp"
	"slices"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/memstore"
)

// Facts is what is known of a call before it runs.
type Facts struct {
	Tool string
	// Input is the scalars at the input's top level, as text, for rules about a parameter.
	Input    map[string]string
	Accesses []Access
	Commands []shell.Command
	Hosts    []string
	// Memory is what it reads and changes of the files of the tool Memory.
	Memory []memstore.Touch
	// Reachable are the domains that commands may contact in any case, as rules have them.
	Reachable []string
	// External is the program outside the daemon that carries it out and may do anything meanwhile; empty: none.
	External string
	// Opaque: it does more than is listed here. Reason is a clause about what.
	Opaque bool
	Reason string
	// Unknown is what a script does that no rule can cover by its commands.
	Unknown shell.Unknown
	// Dir is the working directory; absolute.
	Dir string
	// Patterns are what words of the commands that are patterns of file names stand for now, absolute, by their text.
	Patterns map[string][]string
	// Unconfined: it asks to leave the sandbox.
	Unconfined bool
	// Boxed: it starts processes, and all of them will be fully confined.
	Boxed bool
	// Check is why the state check wants a client to be asked, as a clause; empty: it does not.
	Check string
	// Steered are the commands that the state check has found not to be read-only, by their index, each with the reason as a
	// clause.
	Steered map[int]string
	// Critical is why the call could destroy more than a workspace, as a clause; empty: it could not.
	Critical string
	// Opinions are the hooks', in their order.
	Opinions []Opinion
}

// An Access is one path that a call would read or write.
type Access struct {
	Named, Real string // as it was named, and where that leads, both as the session's calls know it; absolute
	// Disk is where Real lies on the disk if that is another path, as for the session's own temporary files; empty: it is Real.
	Disk    string
	Missing int  // how many components at the end of Real do not exist
	Dir     bool // it is a directory
	Write   bool
	// Tree: everything below it too. Names: only names and facts of what is below it.
	Tree, Names bool
	// Scratch: it is among the session's own temporary files.
	Scratch bool
	// Inside: in a root, or among the session's own temporary files, or for reading in a place that may be read.
	Inside bool
	// Open: it is not Inside, but a command that may run needs no further permission for it: settings open it to commands,
	// or the sandbox has one of its own there.
	Open bool
	// Hidden is the file or directory that the sandbox hides from commands and that it is or lies in, such as a place of
	// credentials; empty: none.
	Hidden string
	// Manner is how a command writes it.
	Manner shell.Manner
	// Opens is the directory that becomes writable as a whole so that a command can write the path; empty: none has to.
	Opens string
	// Fresh: it does not exist, and only the file has to be opened, made empty before the command starts.
	Fresh bool
	// Leaves is the directory that would have to become writable and cannot, so that the call has to leave the sandbox; empty:
	// there is none.
	Leaves string
	// By and Part are the part of the call that names it, as in tools.Path.
	By   int
	Part string
	// Unnamed: no part of the call names it, it stands for what a command may read besides, or for a file in which a git
	// command changes settings.
	Unnamed bool
	// Runs is why a change there can make git run programs, as a clause, by what is on the disk; empty: it cannot.
	Runs string
	// Mentioned: a word of the command has the path in it, and what the command does with it is unknown.
	Mentioned bool
	// MayWrite: it is Mentioned, and the command may write it.
	MayWrite bool
	// Below is a sentence about the rule that something in a tree falls under; empty: nothing does.
	Below string
}

// OnDisk returns where the path lies on the disk.
func (a *Access) OnDisk() string { return cmp.Or(a.Disk, a.Real) }

// An Opinion is a hook's decision about a call.
type Opinion struct {
	Decision Decision
	Reason   string // empty: none
	Origin   Origin
}

// Steer records that commands, given by their index with the reason as a clause, do not count as read-only.
func (f *Facts) Steer(steered map[int]string) {
	if len(steered) == 0 {
		return
	}
	if f.Steered == nil {
		f.Steered = map[int]string{}
	}
	f.Opaque, f.Commands = true, slices.Clone(f.Commands) // the analysis keeps its own
	for i, why := range steered {
		f.Commands[i].ReadOnly, f.Steered[i] = false, why
	}
}

// readOnly reports whether the call declares no change.
func (f *Facts) readOnly() bool {
	writes := func(a Access) bool { return a.Write }
	return !f.Opaque && !f.Unconfined && !f.remembers() && f.External == "" && len(f.Hosts) == 0 && !slices.ContainsFunc(f.Accesses, writes)
}

// Command returns the command that names an access; an empty one for what names no command.
func (f *Facts) Command(a *Access) *shell.Command {
	if a.By == 0 {
		return &shell.Command{}
	}
	return &f.Commands[a.By-1]
}

// Leaves reports whether the call has to leave the sandbox to write what it names.
func (f *Facts) Leaves() bool {
	return slices.ContainsFunc(f.Accesses, func(a Access) bool { return a.Leaves != "" })
}

// writes reports whether the call writes the file too.
func (f *Facts) writes(real string) bool {
	return slices.ContainsFunc(f.Accesses, func(a Access) bool { return a.Write && a.Real == real })
}
