// Processes that continue after the main process has ended. Command.Keep decides which.

package sandbox

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// finishMain ends the tree after the main process has ended by itself, or lets part of it continue.
// The caller has the claim.
func (p *Process) finishMain() {
	left := p.waitGone(patience, func([]member) {})
	if len(left) > 0 && p.command.Keep != nil && !p.stopping.Load() && p.goOn(left) {
		return
	}
	if len(left) > 0 {
		p.finish(0, telling{})
	}
	p.conclude()
}

// goOn lets those processes continue that may. It returns false if none may; otherwise it releases
// the claim, and another goroutine waits for their end.
func (p *Process) goOn(left []member) bool {
	main, ok := awaitExit(p.child.Pid)
	if !ok {
		return false
	}
	main.MaxRSS = p.ownRSS(main.MaxRSS)
	for _, o := range p.outputs {
		o.catchUp()
	}
	most := p.command.Keep(main.Code, len(jobs(left)), p.done)
	if most <= 0 {
		return false
	}
	main.LeftBehind = p.cut(most)
	main.Kept = p.programs(p.members())
	if len(main.Kept) == 0 {
		return false
	}
	var denials []Denial
	denials, main.Created = p.confine.supervisor.soFar()
	p.notify(&main, append(p.made(), denials...))
	p.main = main
	close(p.outlived)
	p.claimed.Store(false)
	if p.stopping.Load() { // Stop was called while this goroutine had the claim
		p.Stop()
	}
	go p.follow()
	return true
}

// follow waits for the end of the continuing processes.
func (p *Process) follow() {
	for {
		left := jobs(p.members())
		if len(left) == 0 {
			break
		}
		awaitAny(left[:1], forever)
	}
	if p.claimed.CompareAndSwap(false, true) {
		p.conclude()
	}
}

// cut kills all but the oldest most jobs, each with everything below it, and returns what it has
// killed.
func (p *Process) cut(most int) (cut []Left) {
	for end := time.Now().Add(giveUp); time.Now().Before(end); {
		all := p.members()
		extra := jobs(all)
		if len(extra) <= most {
			break
		}
		extra = extra[most:]
		doomed := below(all, extra)
		for _, l := range p.programs(doomed) {
			// A process that is about to end is found again, without its arguments.
			if !slices.ContainsFunc(cut, func(seen Left) bool { return seen.PID == l.PID }) {
				cut = append(cut, l)
			}
		}
		for _, m := range doomed {
			m.signal(syscall.SIGKILL)
		}
		awaitAny(extra, again)
	}
	return cut
}

// jobs returns the processes whose parent is not one of them, the oldest first.
func jobs(all []member) []member {
	tops := slices.DeleteFunc(slices.Clone(all), func(m member) bool {
		return slices.ContainsFunc(all, func(o member) bool { return o.pid == m.parent })
	})
	slices.SortFunc(tops, func(a, b member) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid)) })
	return tops
}

// below returns the roots and their descendants among all.
func below(all, roots []member) []member {
	found := slices.Clone(roots)
	for i := 0; i < len(found); i++ {
		for _, m := range all {
			if m.parent == found[i].pid {
				found = append(found, m)
			}
		}
	}
	return found
}

// programs returns the jobs among the processes. A copy of the main process that waits for its own
// children is replaced by those.
func (p *Process) programs(all []member) (named []Left) {
	main := shownLine(strings.Join(p.command.Args, " "))
	for todo := jobs(all); len(todo) > 0; todo = todo[1:] {
		m := todo[0]
		children := slices.DeleteFunc(slices.Clone(all), func(o member) bool { return o.parent != m.pid })
		if name := m.name(); name != main || len(children) == 0 {
			named = append(named, Left{PID: m.pid, Name: name})
		} else {
			todo = append(todo, children...)
		}
	}
	return named
}
