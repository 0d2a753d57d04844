// The end of a tree: SIGTERM, a wait, SIGKILL. members finds the processes of a tree.

package sandbox

import (
	"syscall"
	"time"
)

// again is how often a killed tree is checked, beside whenever a child of the daemon ends: a
// process whose parent collects it slowly sends no signal.
const again = 50 * time.Millisecond

// terminate sends SIGTERM to the whole tree, and SIGHUP if it has a terminal, and returns which processes it was sent to. SIGCONT
// lets stopped ones handle it.
func (p *Process) terminate() (told telling) {
	tree := p.members()
	told = telling{pids: map[int]bool{}, last: lastPID(), at: ticks()}
	for _, m := range tree {
		told.pids[m.pid] = true
		m.signal(syscall.SIGTERM)
		if p.terminal != nil {
			m.signal(syscall.SIGHUP) // interactive shells ignore SIGTERM
		}
		m.signal(syscall.SIGCONT)
	}
	return told
}

// A telling records which processes of a tree were sent SIGTERM, and when.
type telling struct {
	pids map[int]bool
	last int    // the newest process of the machine, just before
	at   uint64 // ticks since boot
}

// finish waits until nothing of the tree is left. What is left after quiet is killed and recorded:
// as stuck if it survives even that, and as left behind if the main process had ended by itself
// before. told records the SIGTERM.
func (p *Process) finish(quiet time.Duration, told telling) {
	left := p.waitGone(quiet, func(left []member) {
		if !p.exit.Stopped {
			return
		}
		told.catchUp(left)
		for _, m := range left {
			m.signal(syscall.SIGCONT) // a process that has stopped itself since then can handle it
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

// waitGone examines the tree each time a process of it may have ended, and calls act with the rest.
// It returns when nothing is left or limit has passed.
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
