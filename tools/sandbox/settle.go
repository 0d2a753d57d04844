// How a tree comes to its end: told, waited for, killed. This file knows when; who belongs to a tree is members'.

package sandbox

import (
	"syscall"
	"time"
)

// again is how often a killed tree is looked at besides whenever a child of the daemon ends: a process whose parent is
// slow to collect it tells us nothing.
const again = 50 * time.Millisecond

// terminate tells the whole tree to end, and returns who was told. SIGCONT lets those hear it that are stopped.
func (p *Process) terminate() (told telling) {
	tree := p.members()
	told = telling{pids: map[int]bool{}, last: lastPID(), at: ticks()}
	for _, m := range tree {
		told.pids[m.pid] = true
		m.signal(syscall.SIGTERM)
		m.signal(syscall.SIGCONT)
	}
	return told
}

// A telling is who of a tree was told to end, and when.
type telling struct {
	pids map[int]bool
	last int    // the newest process of the machine, just before
	at   uint64 // ticks since boot
}

// finish waits until nothing of the tree is left. What still is after the given time is killed and noted: as stuck when
// it survives even that, and as left behind when the main process was not told to end but had ended before it. told is who was
// told to end.
func (p *Process) finish(quiet time.Duration, told telling) {
	left := p.waitGone(quiet, func(left []member) {
		if !p.exit.Stopped {
			return
		}
		told.catchUp(left)
		for _, m := range left {
			m.signal(syscall.SIGCONT) // one that has stopped itself since it was told to end learns of it
		}
	})
	if len(left) == 0 {
		return
	}
	if !p.exit.Stopped {
		p.exit.LeftBehind = names(left)
	}
	p.exit.Stuck = names(p.waitGone(giveUp, func(left []member) {
		for _, m := range left {
			m.signal(syscall.SIGKILL)
		}
	}))
}

// waitGone looks at the tree each time something of it may have ended, shows what is left to act, and returns when
// that is nothing or when limit has passed.
func (p *Process) waitGone(limit time.Duration, act func([]member)) []member {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		changed := p.runner.reaper.changed()
		left := p.members()
		if len(left) == 0 {
			return nil
		}
		act(left)
		select {
		case <-changed:
		case <-tick.C:
		case <-end.C:
			return p.members()
		}
	}
}

func names(members []member) (left []Left) {
	for _, m := range members {
		left = append(left, Left{PID: m.pid, Name: m.name()})
	}
	return left
}
