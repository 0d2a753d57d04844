// A pass: what one call has of the gate, from its coming to its leaving.

package gate

import (
	"context"
	"time"
)

// A Pass is one call that was admitted, or waits to be. Its methods are safe for concurrent use, and those
// of a nil *Pass do nothing: it is inside without a place of its own.
type Pass struct {
	gate    *Gate
	session string
	like    *like
	came    time.Time
	in      chan struct{} // closed when it is admitted, or never will be; nil: it never waited

	// mu of the gate guards the rest.

	state  state
	kind   kind          // of its place
	began  time.Time     // when it was admitted
	since  time.Time     // when it got its place, the last time
	spent  time.Duration // that it had one before
	ready  time.Time     // when only pressure began to keep it waiting; zero: it has not
	judged bool          // it was noted that it is not quick
	away   int           // for how many reasons it is away
	err    error         // why it never will be admitted
}

type state uint8

const (
	waiting state = iota
	inside
	gone // it has left, or never will be admitted
)

// moment is how long one waits before its client is notified, and before one that waits inside gives up its
// place. Ours.
const moment = time.Second

// Admitted reports whether the pass is inside.
func (p *Pass) Admitted() bool {
	if p == nil {
		return true
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.state == inside
}

// A Delay is what a pass waits for, and what the machine is like.
type Delay struct {
	Load
	For      Reason // what the pass waits for
	Expected int64  // bytes of memory that the call may take, by what calls of its key took
}

// Busy is the error of a pass whose patience has ended: what it waited for then.
type Busy struct {
	Delay
	Waited time.Duration
}

// Error returns that the machine is busy.
func (b *Busy) Error() string { return "the machine is busy" }

// Wait waits until the pass is admitted. The error is a *Busy if it has waited for as long as the gate
// lets it, the cause of Shut, or that of ctx. late is called once if that takes longer than a moment.
func (p *Pass) Wait(ctx context.Context, late func(Delay)) error {
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
			if d := p.delay(); d.For != None {
				late(d)
			}
		case <-ctx.Done():
			return p.giveUp(context.Cause(ctx))
		case <-patience.C:
			return p.runOut()
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

// delay returns what the pass waits for. None: it waits no longer.
func (p *Pass) delay() Delay {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.state != waiting {
		return Delay{}
	}
	return Delay{p.gate.load(), p.gate.why(p), p.like.expected()}
}

// runOut ends the waiting of a pass that has waited for long enough. Pressure only delays: if nothing else
// keeps the pass it is admitted.
func (p *Pass) runOut() error {
	g, now := p.gate, time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.state != waiting {
		return p.err
	}
	why := g.why(p)
	if why == Pressure {
		p.ready = now.Add(-breath)
		if why = g.obstacle(p, now); why == None {
			g.remove(p)
			g.letIn(p, now)
			return nil
		}
	}
	busy := &Busy{Delay{g.load(), why, p.like.expected()}, now.Sub(p.came)}
	g.refused[why]++
	p.leaveLine(busy, now)
	return p.err
}

// giveUp ends the waiting with the cause, unless the pass was admitted meanwhile.
func (p *Pass) giveUp(cause error) error {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.state == waiting {
		p.leaveLine(cause, time.Now())
	}
	return p.err
}

// leaveLine takes the pass out of the line for good. mu of the gate is held.
func (p *Pass) leaveLine(cause error, now time.Time) {
	p.gate.remove(p)
	p.refuse(cause)
	p.gate.admit(now)
}

// refuse ends a pass that waits. mu of the gate is held.
func (p *Pass) refuse(cause error) {
	p.state, p.err = gone, cause
	close(p.in)
}

// Away is called when the call begins to wait for something beside the machine, such as an answer of its user,
// and back when it goes on. After a moment its place is free for others. When it goes on it has a place again at
// once, even if all are taken: its processes exist already, and to wait would free nothing. Several may be called
// at once. What else the call runs goes on meanwhile.
func (p *Pass) Away() (back func()) {
	if p == nil {
		return func() {}
	}
	g, over, counts := p.gate, false, false // guarded by the gate's mu
	timer := time.AfterFunc(moment, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if counts = !over; counts {
			p.stepOut()
		}
	})
	return func() {
		timer.Stop()
		g.mu.Lock()
		defer g.mu.Unlock()
		if counts && !over {
			p.stepIn()
		}
		over = true
	}
}

// stepOut frees the place of the pass for a while. mu of the gate is held.
func (p *Pass) stepOut() {
	now := time.Now()
	ran := p.ran(now)
	if p.away++; p.away == 1 && p.state == inside {
		p.spent = ran
		p.gate.takeOut(p)
		p.gate.admit(now)
	}
}

// stepIn takes a place again. mu of the gate is held.
func (p *Pass) stepIn() {
	if p.away--; p.away == 0 && p.state == inside {
		p.since = time.Now()
		p.gate.inside = append(p.gate.inside, p)
	}
}

// ran returns how long the call has had a place. mu of the gate is held.
func (p *Pass) ran(now time.Time) time.Duration {
	if p.state != inside || p.away > 0 {
		return p.spent
	}
	return p.spent + now.Sub(p.since)
}

// Took notes what the call has taken, for those like it: its time inside, and the peak of its memory in bytes; 0:
// that is not known.
func (p *Pass) Took(peak int64) {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.reclassify(now)
	switch {
	case p.judged:
	case p.ran(now) < g.config.Quick:
		p.like.wasQuick()
	default:
		p.like.wasLong()
	}
	p.like.took(peak)
}

// Leave frees the place of the pass, inside or in the line. Only the first call has an effect.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	switch p.state {
	case waiting:
		g.remove(p)
	case inside:
		g.takeOut(p)
		p.like.inside--
		p.like.left = time.Now()
	case gone:
		return
	}
	p.state = gone
	g.admit(time.Now())
}
