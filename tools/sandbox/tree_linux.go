// Who belongs to which tree.

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

// members returns the living processes of the tree. After the main process has ended it costs one look at the list of
// the daemon's children, unless something is left.
func (p *Process) members() []member {
	main := p.child.Pid
	for {
		roots := p.orphans()
		if p.isDead() && len(roots) == 0 && !p.confine.hasOrphans() {
			return nil
		}
		tree := closure(scan(), func(m member) bool {
			return m.pid == main || m.session == main || p.confine.first != 0 && m.parent == p.confine.first ||
				slices.ContainsFunc(roots, func(r member) bool { return r.pid == m.pid && r.start == m.start })
		})
		if len(tree) > 0 {
			return tree
		}
		<-p.exited // the main process is dead, or it would be in the tree; and what it leaves may be an orphan only now
	}
}

// catchUp tells those to end that had been started when the others were told and were not seen: no look at the tree shows what
// begins during it. What is started later, such as by one that cleans up behind itself, is left to it.
func (told telling) catchUp(tree []member) {
	for _, m := range tree {
		if told.missed(m) {
			told.pids[m.pid] = true
			m.signal(syscall.SIGTERM)
		}
	}
}

// missed reports whether the process had been started when others were told to end, and was not told.
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

// owns judges whose m is: by its marker, by its session, or, when it has shed both, because no other tree is left that
// is old enough to have started it. One that is just ending has no environment any more: it is everybody's until it has
// ended, and then its children are judged.
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

// unknownProcesses returns the children of the daemon that nobody here waits for: orphans. A child in the daemon's own session
// is somebody else's affair. When one of them is found to have ended, its own children have become the daemon's since
// the list was read: so the list counts when nothing in it has ended since it was read for the last time but one.
func (r *Runner) unknownProcesses() (found []member) {
	ended := map[int]bool{}
	for again := true; again; {
		found, again = nil, false
		for _, pid := range children() {
			if isMain(pid) {
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

// reap collects orphans that have ended. While it does, no child can come into being whose number is not known yet.
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
			_, _ = syscall.Wait4(m.pid, &status, syscall.WNOHANG, nil) // if it is gone, all is well
		}
	}
}

// closure returns those of all that are roots, descend from one, or are in a session in which a root is.
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

// children returns the numbers of the daemon's children; of those that other threads have started it may leave some out.
// The kernel may skip entries of the list when others vanish while it is read, so it counts when two readings agree.
func children() []int {
	list, err := childList()
	if err != nil {
		return childrenByScan(os.Getpid())
	}
	return childrenIn(list, os.Getpid())
}

// childrenIn reads the list of pid's children.
func childrenIn(list *os.File, pid int) []int {
	var last string
	for {
		now, err := readAll(list)
		if err != nil {
			return childrenByScan(pid)
		}
		if now == "" || now == last {
			return numbers(now)
		}
		last = now
	}
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

func numbers(list string) (pids []int) {
	for field := range strings.FieldsSeq(list) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childrenByScan serves kernels that keep no such list.
func childrenByScan(parent int) (pids []int) {
	for _, m := range scan() {
		if m.parent == parent {
			pids = append(pids, m.pid)
		}
	}
	return pids
}

// marked returns the processes whose marker begins with prefix, with what belongs to them.
func marked(prefix string) []member {
	return closure(scan(), func(m member) bool { return strings.HasPrefix(m.marker(), prefix) })
}
