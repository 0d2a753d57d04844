// What the calls of a Plan wait for, and how that changes while they wait.

package scheduler

import "slices"

// Ahead returns the IDs of the open calls that t would wait for if it were added now, the latest
// first. Those that one of them waits for are left out. It returns nil in the Batched ordering,
// where a call waits for all of the batch before it.
func (p *Plan) Ahead(t Task, parent string) (ids []string) {
	turn, l := p.turns.get(t.Turn(), p.how), p.root
	if parent != "" {
		l = nil
		if above := p.calls[parent]; above != nil {
			l = above.inner
		}
	}
	if turn == nil || turn.ordering == Batched || l == nil {
		return nil
	}
	c := newCall(t, turn, l, p.arrivals+1)
	var before []*call // what c waits for, also by way of others
	for _, d := range slices.Backward(l.calls) {
		implied := slices.ContainsFunc(before, func(e *call) bool { return e.state == waiting && d.blocks(e) })
		if !implied && !d.blocks(c) {
			continue
		}
		if before = append(before, d); !implied {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// Looked records what a waiting call touches, as Look of its task has found. The call starts by
// that, and those behind it wait by that.
func (p *Plan) Looked(id string, found Footprint) {
	c := p.calls[id]
	if c == nil || !c.looking {
		return // it was skipped meanwhile
	}
	c.touches, c.known, c.looking = found, true, false
	c.waitFor(c.lane.inFront(c, c))
	if c.stale { // since the look began
		p.lookAgain(c)
	}
	p.moved(c)
}

// release lets the calls of a turn that has been held enter the order.
func (p *Plan) release(t *turn) {
	for _, c := range p.root.calls {
		if c.turn == t && !c.known && !c.looking {
			if c.known = true; c.stale {
				p.lookAgain(c)
			}
		}
	}
}

// moved corrects what later calls wait for, after a change of what c touches.
func (p *Plan) moved(c *call) {
	for _, d := range c.lane.calls {
		switch {
		case d.arrival <= c.arrival || d.state != waiting:
		case c.blocks(d):
			if d.front == nil || d.front.arrival < c.arrival {
				d.waitFor(c)
			}
		case d.front == c:
			p.review(d)
		}
	}
}

// passed lets go on what waited for c, whose place is free. What may have changed anything may have
// changed where names lead, so that later calls must not even wait by what they touched before.
func (p *Plan) passed(c *call) {
	if c.waiters == 0 && !p.looks {
		return
	}
	for _, d := range c.lane.calls {
		if d.state != waiting {
			continue
		}
		if c.touches.Conflicts(&d.touches) {
			d.stale = true
		}
		if d.front == c {
			p.review(d)
		}
		if d.stale && c.touches.Everything {
			p.lookAgain(d)
		}
		if d.touches.Everything {
			return // all that follow wait for d, and are looked at when it has ended or is skipped
		}
	}
}

// review finds out what c waits for now that the call in front of it is out of its way.
func (p *Plan) review(c *call) {
	c.stale = true
	c.waitFor(c.lane.inFront(c, c.front))
	if c.front == nil {
		p.lookAgain(c)
	}
}

// lookAgain has the owner look at what c touches. Until Looked nothing starts from c on.
func (p *Plan) lookAgain(c *call) {
	if c.known && c.turn.ordering == Dependency {
		c.stale, c.known, c.looking = false, false, true
		p.steps = append(p.steps, Step{Kind: StepLook, Task: c.task})
	}
}
