package sandbox

// What this machine can confine with. It is found out once, by doing it.

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hostCapabilities is what a Runner confines with.
type hostCapabilities struct {
	landlock  int   // version of the interface; 0: there is none
	filters   error // why there are none; nil: there are
	full      error // why there are no namespaces; nil: there are
	first     *os.File
	instances instances
	threads   threads
}

// probe finds out what there is.
func (g *hostCapabilities) probe() {
	g.landlock = landlockABI()
	if g.filters = seccompThere(); g.filters != nil {
		g.full = g.filters
		return
	}
	if g.first, g.full = firstProgram(); g.full == nil {
		g.full = g.tryFull()
	}
}

// seccompThere asks whether the kernel knows the answer that refuses a call.
func seccompThere() error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	if errors.Is(errno, unix.EFAULT) { // it was about to read the program
		return nil
	}
	return fmt.Errorf("the kernel has no system call filters: %w", errno)
}

// tryFull starts a process in namespaces of its own.
func (g *hostCapabilities) tryFull() error {
	p := Policy{Tier: Full}
	var err error
	if g.instances.users, err = newUsers(); err != nil {
		return err
	}
	made, err := g.instances.make(p, Full)
	if err != nil {
		return err
	}
	defer g.instances.discard(made)
	l := launch{
		policy: p, tier: Full, instance: made, users: g.instances.users, first: g.first, environ: []string{"PROBE=1"},
		command: Command{Path: "/proc/self/fd/0", Args: []string{"probe"}, Dir: "/"}, files: []*os.File{g.first},
	}
	b, err := l.start()
	if err == nil {
		b.end()
	}
	return err
}

// tierFor is the tier in which a process under p runs here: the one that is wanted, or what it falls back to.
func (g *hostCapabilities) tierFor(p Policy) (Tier, error) {
	switch {
	case p.Tier == "" || p.Tier == None:
		return None, nil
	case g.filters == nil && p.Tier == Full && g.full == nil:
		return Full, nil
	case g.filters == nil && g.landlock > 0:
		return Fast, nil
	case g.filters == nil && g.full == nil:
		return Full, nil
	case p.Optional:
		return None, nil
	}
	return None, &UnavailableError{g.reasons()}
}

// reasons returns what is missing.
func (g *hostCapabilities) reasons() (all []string) {
	if g.filters != nil {
		all = append(all, g.filters.Error())
	}
	if g.landlock == 0 {
		all = append(all, "the kernel has no Landlock, or it is switched off")
	}
	if g.full != nil && g.filters == nil {
		all = append(all, "no namespaces: "+g.full.Error())
	}
	return all
}

// notCovered returns what a process in that tier is not kept from, though its policy would.
func (g *hostCapabilities) notCovered(p Policy, t Tier) (all []string) {
	switch {
	case p.Tier == "" || p.Tier == None:
		return nil
	case t == None:
		return append([]string{"It is not confined at all: a process can do what the daemon's user can."}, g.reasons()...)
	case t == Full:
		return nil
	}
	if p.Tier == Full {
		all = append(all,
			"What is denied is not noticed.",
			"/dev/shm cannot be written, which Python's multiprocessing needs.",
			"There are no Unix sockets and no listening, and no process can be traced, which LeakSanitizer, strace and gdb need.",
			"Modes, owners and times of files outside the writable places can be changed where the user may change them.",
			"Protected paths inside writable places can be changed.",
			"Names, states and command lines of the user's other processes can be read.",
			"Descriptors of a terminal that is passed on are shared.",
			"What a process leaves behind is found by its marks, and not surely when it sheds all of them.",
			"Where something is hidden in a writable place, the directory that holds it can be moved, after which it can be read; and new files beside it cannot be read.")
		if p.Network.proxied() {
			all = append(all, "At the port of the proxy every address can be reached, not only the proxy.")
		}
		if g.full != nil {
			all = append(all, "The cause: "+g.full.Error()+".")
		}
	}
	if g.landlock < 6 {
		all = append(all, "Signals can be sent to the user's other processes (Landlock 6 would keep them in).")
	}
	if g.landlock < 3 {
		all = append(all, "Files that can be read can be emptied (Landlock 3 would keep them).")
	}
	return all
}

func (g *hostCapabilities) close() {
	g.threads.close()
	g.instances.close()
}
