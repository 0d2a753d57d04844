// Which of the paths that a script names need a permission of their own, beside that to run its commands, and what has to be
// writable so that it can write them: the path itself, or the directory in which something is made, renamed or removed. The
// question names that directory, and the sandbox opens it. What follows from that is the permission package's.

package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
)

// reach notes of the paths that a script names whether the sandbox hides them, and whether they are open to every command
// that may run.
func (c *Call) reach(f *permission.Facts) error {
	conf := c.rights.Confining
	f.Reachable = conf.Network.Allowed
	confined := !c.rights.outside(f) && conf.fully()
	found, err := c.rights.mentioned(f)
	if err != nil {
		return err
	}
	f.Accesses = append(f.Accesses, found...)
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Part == "" || a.Unnamed {
			continue
		}
		if a.Hidden = conf.hides(a.OnDisk()); a.Hidden != "" && !a.Write && c.rights.Places.Lent(a.OnDisk()) {
			a.Hidden = ""
		}
		a.Open = conf.opens(a) || confined && f.Opaque && !a.Write && pathname.Within("/proc", a.Real)
	}
	return nil
}

// maxMentions is how many words of a script are looked up. The number is our own: it takes some
// milliseconds.
const maxMentions = 200

// mentioned returns the accesses for paths that words of commands name of which it is not known what they do with them: what
// is there outside the places of the session, and what the sandbox hides. The error is a fault.
func (r *Rights) mentioned(f *permission.Facts) (found []permission.Access, err error) {
	mentions, unmounted := permission.Mentions(f), r.unmounted(f)
	for _, a := range mentions[:min(len(mentions), maxMentions)] {
		real, err := r.Places.Resolve("/", a.Named)
		if err != nil {
			continue
		}
		if unmounted && real.Mapped {
			return nil, unmountedFault(real)
		}
		a.Real, a.Disk, a.Missing = real.Seen, real.Real, real.Missing
		info, err := os.Stat(real.Real)
		switch place := r.Places.Place(real.Real); {
		case place == workspace.Hidden: // no answer opens the daemon's own
		case err == nil && place == workspace.Outside, r.Confining.hides(real.Real) != "":
			a.Dir = err == nil && info.IsDir()
			found = append(found, a)
		case a.MayWrite && place == workspace.Outside && openable(real.Real) != "":
			a.Opens = openable(real.Real)
			found = append(found, a)
		}
	}
	return found, nil
}

// answered returns the hosts that a yes has opened to the call: those that the question named. Without a network of its own
// nothing is opened to the call, since that would open more.
func (c *Call) answered(f *permission.Facts) []string {
	if c.verdict.Decision != permission.Ask || !c.rights.Confining.fully() {
		return nil // settings decide what rules and modes open
	}
	return f.Contacts()
}

// tier returns by which means the machine can confine a process.
func (conf Confining) tier() sandbox.Tier {
	confinement, err := conf.Runner.Confinement(sandbox.Policy{Tier: sandbox.Full})
	if err != nil {
		return sandbox.None
	}
	return confinement.Tier
}

// fully reports whether the machine can confine a process by all means.
func (conf Confining) fully() bool { return conf.tier() == sandbox.Full }

// hides returns the hidden file or directory that a real path is or lies in; empty: it is not hidden.
func (conf Confining) hides(real string) string {
	hidden := deepest(conf.Hidden, real)
	if hidden != "" && len(deepest(slices.Concat(conf.Shown, conf.ownDirs()), real)) > len(hidden) {
		return ""
	}
	return hidden
}

// deepest returns the longest of the paths that hold a real path; empty: none does.
func deepest(paths []string, real string) (found string) {
	for _, path := range paths {
		if len(path) > len(found) && pathname.Within(path, real) {
			found = path
		}
	}
	return found
}

// opens reports whether settings, the session or the system open the path to every command.
func (conf Confining) opens(a *permission.Access) bool {
	disk := a.OnDisk()
	if pathname.WithinAny(slices.Concat(conf.Write, conf.ownDirs()), disk) && !(a.Write && pathname.WithinAny(conf.Keep, disk)) {
		return true
	}
	return !a.Write && (pathname.WithinAny(conf.Shown, disk) || pathname.WithinAny(machineFacts, a.Real))
}

// machineFacts are what every program may read of the machine.
var machineFacts = slices.DeleteFunc(slices.Clone(sandbox.SystemTrees), func(tree string) bool {
	return !strings.HasPrefix(tree, "/proc/") && !strings.HasPrefix(tree, "/sys/")
})

// open notes for each path that a script writes what has to be writable for that, beside what is writable anyway.
func (r *Rights) open(f *permission.Facts) {
	if r.outside(f) || r.Confining.tier() == sandbox.None {
		return
	}
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if !a.Write || a.Part == "" || a.Unnamed || a.Scratch {
			continue
		}
		dir := r.needs(f, a)
		if dir == "" || r.standsOpen(dir) {
			continue
		}
		a.Fresh = a.Manner == shell.Fills && a.Missing == 1
		switch {
		case a.Fresh && (!canOpen(dir) || r.Confining.hides(dir) != ""):
		case canOpen(dir):
			a.Opens = dir
		case unix.Access(dir, unix.W_OK) == nil: // else nothing would help
			a.Leaves = dir
		}
	}
}

// worksOutside notes the directories outside the roots in which programs run of which it is not known what they write: they may
// change what is there though no word names it. The facts have the paths that are named.
func (s scene) worksOutside(ctx context.Context) error {
	for i, command := range s.f.Commands {
		writes := func(a permission.Access) bool { return a.Write && a.By == i+1 }
		if !command.MayWriteMore() || slices.ContainsFunc(s.f.Accesses, writes) {
			continue
		}
		for _, dir := range command.Dirs {
			real, err := s.Places.Resolve("/", shell.From(s.dir, dir))
			if err != nil || s.Places.Place(real.Real) != workspace.Outside || standing(real.Real) != real.Real || !canOpen(real.Real) {
				continue
			}
			path := tools.Path{Name: real.Named, Tree: true, By: i + 1, Part: command.Text, Manner: shell.Fills}
			if _, err := s.add(ctx, path, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// needs returns the directory that has to be writable for a write; empty: the path itself is enough, or nothing will be written.
func (r *Rights) needs(f *permission.Facts, a *permission.Access) string {
	_, err := os.Lstat(a.OnDisk())
	there := err == nil
	switch {
	case a.Manner == shell.Nested, there && (a.Manner == shell.Fills || a.Manner == shell.Places && a.Dir):
		return ""
	case a.Manner != shell.Replaces:
		return standing(filepath.Dir(a.OnDisk()))
	}
	entry, err := r.Places.ResolveEntry("/", a.Named)
	made := func(o permission.Access) bool {
		return o.Write && o.OnDisk() == a.OnDisk() && o.Manner != shell.Replaces
	}
	if err != nil || !entry.Exists && !slices.ContainsFunc(f.Accesses, made) {
		return ""
	}
	return standing(filepath.Dir(entry.Real))
}

// standing returns the innermost directory of the path that exists; empty, if what exists there is not a directory.
func standing(path string) string {
	for {
		if info, err := os.Stat(path); err == nil {
			if !info.IsDir() {
				return ""
			}
			return path
		}
		path = filepath.Dir(path)
	}
}

// standsOpen reports whether every command of the session can write in the directory.
func (r *Rights) standsOpen(dir string) bool {
	conf := r.Confining
	own := slices.Concat(r.Places.Roots(), conf.Write, conf.ownDirs())
	for _, cache := range conf.Caches {
		own = append(own, cache.Path)
	}
	held := deepest(own, dir)
	kept := deepest(conf.Keep, dir)
	return held != "" && len(kept) < len(held) && !permission.KeptShut(dir)
}

// canOpen reports whether the directory can be made writable as a whole: the system, or a user's whole home, does not live by it.
func canOpen(dir string) bool {
	home, _ := os.UserHomeDir()
	return filepath.Dir(dir) != "/" && dir != "/" && !pathname.Within(dir, home) &&
		!isSystems(dir)
}

// openable is what has to be writable so that the path can be: itself, or the directory in which it would be made; empty if
// that cannot be opened.
func openable(path string) string {
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	if dir := standing(filepath.Dir(path)); dir != "" && canOpen(dir) {
		return dir
	}
	return ""
}

// An opening is what a permitted call can write beside what it could write anyway.
type opening struct {
	named []string // the paths that it names
	trees []string // those that it removes, replaces or changes with all that is in them
	dirs  []string // directories, the outer ones first
	fresh []string // files that do not exist and may be made, but nothing beside them
}

// opening returns what the answer, or the rules, have opened to the call.
func (c *Call) opening(f *permission.Facts) (o opening) {
	for _, a := range f.Accesses {
		if a.MayWrite {
			o.mentioned(&a, !c.rights.standsOpen(a.OnDisk()) && c.rights.OpensMention(&a, c.verdict.Decision == permission.Ask))
			continue
		}
		if !a.Write || a.Unnamed || a.Scratch {
			continue
		}
		o.named = append(o.named, a.OnDisk())
		switch {
		case a.Dir && (f.Command(&a).ChangesAll() || a.Manner == shell.Replaces):
			o.trees = append(o.trees, a.OnDisk())
		case a.Dir && a.Part != "" && !a.Inside && !a.Open:
			o.dirs = append(o.dirs, a.OnDisk())
		}
		switch whole := c.verdict.Decision == permission.Ask || c.rights.Opens(&a); {
		case a.Opens != "" && (whole || !a.Fresh):
			o.dirs = append(o.dirs, a.Opens)
		case a.Fresh:
			o.fresh = append(o.fresh, a.OnDisk())
		}
	}
	slices.SortFunc(o.dirs, func(a, b string) int { return len(a) - len(b) })
	o.dirs = slices.Compact(o.dirs)
	o.fresh = slices.DeleteFunc(o.fresh, func(path string) bool { return pathname.WithinAny(o.dirs, path) })
	return o
}

// mentioned takes in what a program of which it is not known what it writes may write.
func (o *opening) mentioned(a *permission.Access, permitted bool) {
	switch {
	case !permitted || a.Hidden != "" || a.Open:
	case a.Opens != "":
		o.dirs = append(o.dirs, a.Opens)
	case !a.Dir:
		if info, err := os.Stat(a.OnDisk()); err == nil && info.Mode().IsRegular() { // access to devices is not changed
			o.named = append(o.named, a.OnDisk())
		}
	case canOpen(a.OnDisk()):
		o.dirs = append(o.dirs, a.OnDisk())
	}
}

// opens makes the paths writable that are not: what is a place of its own can be neither replaced nor removed.
func (l layout) opens(paths []string) {
	for _, path := range paths {
		if l.at(path) != sandbox.Write {
			l.put(path, sandbox.Write)
		}
	}
}

// protected returns what is protected in a directory that is writable: by its own names, and of others what lies in it.
func protected(dir string, others []string) []string {
	paths := permission.ProtectedIn(dir)
	for _, path := range others {
		if path != dir && pathname.Within(dir, path) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
