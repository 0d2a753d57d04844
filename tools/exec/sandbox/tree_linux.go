// Membership: which process belongs to which tree.

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// members returns the living processes of the tree. After the main process has ended it reads only
// the list of the daemon's children, unless something is left.
func (p *Process) members() []member {
	main := p.child.Pid
	for {
		roots := p.orphans()
		if isClosed(p.exited) && len(roots) == 0 && !p.confine.hasOrphans() {
			return nil
		}
		tree := closure(scan(), func(m member) bool {
			return m.pid == main || m.session == main || p.confine.first != 0 && m.parent == p.confine.first ||
				slices.ContainsFunc(roots, func(r member) bool { return r.pid == m.pid && r.start == m.start })
		})
		if len(tree) > 0 {
			return tree
		}
		<-p.exited // the main process is dead, or it would be in the tree; its children may have become orphans only now
	}
}

// catchUp sends SIGTERM to those that had been started before the others got theirs and were not
// found: a scan misses what begins during it. Processes that are started later, such as for
// cleaning up, are left alone.
func (told telling) catchUp(tree []member) {
	for _, m := range tree {
		if told.missed(m) {
			told.pids[m.pid] = true
			m.signal(syscall.SIGTERM)
		}
	}
}

// missed reports whether the process had been started when the others were sent SIGTERM, and was
// not sent one.
func (told telling) missed(m member) bool {
	return !told.pids[m.pid] && m.pid <= told.last && m.start <= told.at
}

// orphans returns the children of the daemon that have lost their parents and belong to the tree.
func (p *Process) orphans() (mine []member) {
	for _, m := range p.runner.unknownProcesses() {
		if !m.dead && p.runner.owns(p, m) {
			mine = append(mine, m)
		}
	}
	return mine
}

// owns reports whether m belongs to p: by its marker, by its session or, if it has shed both,
// because no other tree is old enough to have started it. A process that is just ending has no
// environment. It counts as a member of every tree until it has ended, and then its children are
// judged.
func (r *Runner) owns(p *Process, m member) bool {
	if m.start < p.since {
		return false
	}
	marker := m.marker()
	if marker == p.marker || m.session == p.child.Pid || marker == "" && m.isEnding() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	marked := strings.HasPrefix(marker, r.generation)
	for other := range r.trees {
		if other == p {
			continue
		}
		if marked && other.marker == marker || !marked && other.since <= m.start {
			return false
		}
	}
	return true
}

// unknownProcesses returns the orphans: children of the daemon that no goroutine waits for.
// Children in the daemon's own session are not included. When one of the orphans turns out to have
// ended, its own children have become the daemon's since the list was read. So the list is read
// until none of its entries has ended meanwhile.
func (r *Runner) unknownProcesses() (found []member) {
	ended := map[int]bool{}
	for again := true; again; {
		found, again = nil, false
		for _, pid := range children() {
			if _, isMain := waited.mains.Load(pid); isMain {
				continue
			}
			m, err := look(pid)
			if (err != nil || m.dead) && !ended[pid] {
				ended[pid], again = true, true
			}
			if err == nil && m.session != r.own {
				found = append(found, m)
			}
		}
	}
	return found
}

// reap collects orphans that have ended. Meanwhile no child can be created whose number is not
// recorded yet.
func (r *Runner) reap() {
	dead := func(m member) bool { return m.dead }
	if !slices.ContainsFunc(r.unknownProcesses(), dead) {
		return
	}
	waited.starting.Lock()
	defer waited.starting.Unlock()
	for _, m := range r.unknownProcesses() {
		if m.dead {
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(m.pid, &status, syscall.WNOHANG, nil) // an error means that it is gone
		}
	}
}

// closure returns the members of all that are roots, descend from one, or share a session with one.
func closure(all []member, root func(member) bool) (tree []member) {
	own, _ := unix.Getsid(0)
	in := map[int]bool{}
	sessions := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, m := range all {
			if in[m.pid] || m.pid == os.Getpid() || !(in[m.parent] || sessions[m.session] || root(m)) {
				continue
			}
			in[m.pid], grown = true, true
			sessions[m.session] = m.session != own
			tree = append(tree, m)
		}
	}
	return tree
}

// childList is the kernel's list of the children of the daemon's first thread, which is where orphans go.
var childList = sync.OnceValues(func() (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/%d/task/%[1]d/children", os.Getpid()))
})

// children returns the numbers of the daemon's children; it may miss some that other threads have
// started.
func children() []int {
	list, _ := childList()
	return childrenIn(list, os.Getpid())
}

// childrenIn reads the list of pid's children; nil: the kernel has none. The kernel may skip entries if
// others vanish meanwhile, so the list is read until two readings agree.
func childrenIn(list *os.File, pid int) (pids []int) {
	now, err := readAll(list)
	for last := ""; err == nil && now != last; {
		last = now
		now, err = readAll(list)
	}
	if err != nil {
		return childrenByScan(pid)
	}
	for field := range strings.FieldsSeq(now) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func readAll(f *os.File) (string, error) {
	var buf [4096]byte
	n, err := f.ReadAt(buf[:], 0)
	if n < len(buf) {
		if n == 0 && err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return string(buf[:n]), nil
	}
	whole, err := os.ReadFile(f.Name())
	return string(whole), err
}

// childrenByScan is for kernels without such a list.
func childrenByScan(parent int) (pids []int) {
	for _, m := range scan() {
		if m.parent == parent {
			pids = append(pids, m.pid)
		}
	}
	return pids
}

// marked returns the processes whose marker begins with prefix, and their descendants.
func marked(prefix string) []member {
	return closure(scan(), func(m member) bool { return strings.HasPrefix(m.marker(), prefix) })
}
