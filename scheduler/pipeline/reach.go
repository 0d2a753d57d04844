// Which of the paths that a script names need a permission of their own, beside that to run its commands. What follows from
// that is the permission package's.

package pipeline

import (
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
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
