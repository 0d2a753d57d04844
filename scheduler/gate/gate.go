// Package gate admits what takes the machine's processors and memory: calls that start processes and
// change something. All sessions of all principals share one Gate. It does not know what a call is,
// nor in which order the calls of a session come: that is the scheduler's.
//
// The sessions that wait form one line. The first of them is admitted when the machine has room for
// it, and goes to the end of the line if more of it waits. So those that wait are admitted first in,
// first out by session, and one session with a hundred of them does not delay another's one.
package gate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Config is what a Gate is made of.
type Config struct {
	Slots    int           // how many may be inside at once; at least 1
	Patience time.Duration // how long one waits at most
}

// A Gate is the one gate of a machine. Its methods are safe for concurrent use. They never wait.
type Gate struct {
	config Config

	mu     sync.Mutex // guards what follows, and what passes and rows say of their state
	inside int
	line   []*row          // sessions of which something waits, in the order in which they are admitted
	rows   map[string]*row // the same by session
	shut   error           // why none is admitted any more; nil: they are
}

// A row is what waits of one session, first in, first out. It is never empty.
type row struct {
	session string
	passes  []*Pass
}

// A Pass is one that was admitted, or waits to be. Its methods are safe for concurrent use, and those
// of a nil *Pass do nothing: it is inside without a place of its own.
type Pass struct {
	gate    *Gate
	session string
	came    time.Time
	in      chan struct{} // closed when it is admitted, or never will be; nil: it never waited

	state state
	err   error // why it never will be admitted
}

type state uint8

const (
	waiting state = iota
	inside
	gone // it has left, or never will be admitted
)

// New returns a gate with nothing inside.
func New(config Config) *Gate {
	config.Slots = max(config.Slots, 1)
	return &Gate{config: config, rows: map[string]*row{}}
}

// Enter adds one to what waits of a session, and admits it at once if none is in front and there is
// room. Leave must be called.
func (g *Gate) Enter(session string) *Pass {
	p := &Pass{gate: g, session: session}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut != nil:
		p.state, p.err = gone, g.shut
		return p
	case len(g.line) == 0 && g.hasRoom():
		g.inside++
		p.state = inside
		return p
	}
	p.came, p.in = time.Now(), make(chan struct{})
	r := g.rows[session]
	if r == nil {
		r = &row{session: session}
		g.rows[session] = r
		g.line = append(g.line, r)
	}
	r.passes = append(r.passes, p)
	return p
}

// hasRoom reports whether one more may be inside. mu is held.
func (g *Gate) hasRoom() bool { return g.inside < g.config.Slots }

// admit admits those in front as long as there is room. mu is held.
func (g *Gate) admit() {
	for len(g.line) > 0 && g.hasRoom() {
		r := g.line[0]
		p := r.passes[0]
		g.remove(p)
		if len(r.passes) > 0 { // others are in front of its next one
			g.line = append(g.line[1:len(g.line):len(g.line)], r)
		}
		g.inside++
		p.state = inside
		close(p.in)
	}
}

// remove takes a pass that waits out of the line. mu is held.
func (g *Gate) remove(p *Pass) {
	r := g.rows[p.session]
	r.passes = slices.DeleteFunc(r.passes, func(other *Pass) bool { return other == p })
	if len(r.passes) == 0 {
		delete(g.rows, p.session)
		g.line = slices.DeleteFunc(g.line, func(other *row) bool { return other == r })
	}
}

// refuse ends a pass that waits. mu of the gate is held.
func (p *Pass) refuse(cause error) {
	p.state, p.err = gone, cause
	close(p.in)
}

// Shut ends the waiting of all, and of those that come from now on, with the cause. Those inside stay.
func (g *Gate) Shut(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = cause
	for _, r := range g.line {
		for _, p := range r.passes {
			p.refuse(cause)
		}
	}
	g.line = nil
	clear(g.rows)
}

// A Load is how much is inside, and waits.
type Load struct {
	Slots, Inside, Waiting int
	Sessions               int // of which something waits
}

// Load returns the present load.
func (g *Gate) Load() Load {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.load()
}

func (g *Gate) load() Load {
	l := Load{Slots: g.config.Slots, Inside: g.inside, Sessions: len(g.line)}
	for _, r := range g.line {
		l.Waiting += len(r.passes)
	}
	return l
}

// Admitted reports whether the pass is inside.
func (p *Pass) Admitted() bool {
	if p == nil {
		return true
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.state == inside
}

// Busy is the error of a pass whose patience has ended: what the machine was like then.
type Busy struct {
	Load
	Waited time.Duration
}

// Error returns that the machine is busy.
func (b *Busy) Error() string { return "the machine is busy" }

// Wait waits until the pass is admitted. The error is a *Busy if it has waited for as long as the gate
// lets it, the cause of Shut, or that of ctx. late is called once if that takes longer than a moment.
func (p *Pass) Wait(ctx context.Context, late func(Load)) error {
	if p == nil || p.in == nil {
		return p.refusal()
	}
	notice, patience := time.NewTimer(moment), time.NewTimer(p.gate.config.Patience-time.Since(p.came))
	defer notice.Stop()
	defer patience.Stop()
	for {
		select {
		case <-p.in:
			return p.refusal()
		case <-notice.C:
			late(p.gate.Load())
		case <-ctx.Done():
			return p.giveUp(context.Cause(ctx))
		case <-patience.C:
			return p.giveUp(&Busy{p.gate.Load(), time.Since(p.came)})
		}
	}
}

// refusal returns why the pass never will be admitted.
func (p *Pass) refusal() error {
	if p == nil {
		return nil
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.err
}

// moment is how long one waits before its client is notified. Ours.
const moment = time.Second

// giveUp ends the waiting with the cause, unless the pass was admitted meanwhile.
func (p *Pass) giveUp(cause error) error {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.state == waiting {
		p.gate.remove(p)
		p.refuse(cause)
		p.gate.admit()
	}
	return p.err
}

// Leave frees the place of the pass, inside or in the line. Only the first call has an effect.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	switch p.state {
	case waiting:
		p.gate.remove(p)
	case inside:
		p.gate.inside--
	case gone:
		return
	}
	p.state = gone
	p.gate.admit()
}
