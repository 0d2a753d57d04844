// What this machine can confine with. It is determined once, by trying.

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hostCapabilities is what a Runner confines with.
type hostCapabilities struct {
	landlock  int   // version of the interface; 0: none
	filters   error // why there are none; nil: supported
	full      error // why there are no namespaces; nil: supported
	first     *os.File
	instances instances
	threads   threads
}

// probe determines the capabilities. outlet serves the ways out to the network, and denied records
// what it refuses in Fast.
func (g *hostCapabilities) probe(outlet Outlet, denied func(id string, d Denial)) {
	g.instances = instances{
		outlet: outlet, denied: denied, all: map[string]*instance{}, points: map[mountPoint]int{}, networks: registry[*network]{}, layers: registry[*os.File]{},
	}
	g.threads.all = map[filter]*thread{}
	g.landlock = landlockABI()
	if g.filters = seccompThere(0); g.filters != nil {
		g.full = g.filters
		return
	}
	if g.first, g.full = firstProgram(); g.full == nil {
		g.full = g.tryFull()
	}
}

// seccompThere reports whether the kernel supports filters with the flags.
func seccompThere(flags uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0)
	if errors.Is(errno, unix.EFAULT) { // the kernel was about to read the program, so it supports them
		return nil
	}
	return fmt.Errorf("the kernel has no system call filters: %w", errno)
}

// tryFull starts a process in its own namespaces.
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
	c := Command{Path: "/proc/self/fd/0", Args: []string{"probe"}, Dir: "/", Env: []string{"PROBE=1"}, Policy: p}
	l := launch{host: g, instance: made, command: c, files: []*os.File{g.first}}
	b, err := l.start()
	if err == nil {
		b.end()
	}
	return err
}

// tierFor returns the tier in which a process under p runs here: the requested one, or its
// fallback.
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

// reasons returns what the machine lacks.
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

// notCovered returns what the tier does not enforce although the policy requires it.
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
			"Denials are not reported.",
			"/dev/shm cannot be written, which Python's multiprocessing needs.",
			"There are no Unix sockets and no listening, and no process can be traced, which LeakSanitizer, strace and gdb need.",
			"Modes, owners and times of files outside the writable places can be changed where the user may change them.",
			"Protected paths inside writable places can be changed.",
			"Names, states and command lines of the user's other processes can be read.",
			"Descriptors of a terminal that is passed on are shared.",
			"Processes that outlive a call are found by their marks, and may be missed if they remove all of them.",
			"If a file or directory in a writable place is hidden, its parent directory can be moved, after which it can be read. New files beside it cannot be read.")
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
