// This file ends calls of a Plan early: those that wait never start, those that run are told to stop, once, and keep
// their place until they have ended.

package scheduler

import "slices"

// Stop stops one call, and what is nested in it. One that is not open is left
// alone: it has ended, and that was decided first.
func (p *Plan) Stop(id string, cause error) {
	c := p.calls[id]
	if c == nil {
		return
	}
	p.stop(cause, nil, func(d *call) bool { return d == c })
	p.advance()
}

// StopTurn stops the calls of one turn and skips each further one, until the
// turn has ended. Of the running ones those are told to stop that which selects,
// all if it is nil; whatever is nested in those stops with them. A turn that is
// not known begins.
func (p *Plan) StopTurn(number uint64, cause error, which func(Task) bool) {
	turn := p.turns.get(number, p.how)
	if turn == nil {
		return
	}
	turn.stop(cause)
	p.stop(cause, which, func(c *call) bool { return c.turn == turn })
	p.advance()
}

// StopTurns does to each open turn what StopTurn does to one.
func (p *Plan) StopTurns(cause error, which func(Task) bool) {
	for _, turn := range p.turns.open {
		turn.stop(cause)
	}
	p.stop(cause, which, func(*call) bool { return true })
	p.advance()
}

// Drain skips the waiting calls and every further one. What runs goes on.
func (p *Plan) Drain(cause error) {
	if p.closed == nil {
		p.closed = cause
	}
	p.stop(cause, nil, func(c *call) bool { return c.state == waiting })
	p.advance()
}

// Close drains the plan and stops what runs.
func (p *Plan) Close(cause error) {
	p.Drain(cause)
	p.stop(cause, nil, func(*call) bool { return true })
	p.advance()
}

func (p *Plan) advance() {
	p.sweep()
	p.endTurns()
}

func (p *Plan) stop(cause error, which func(Task) bool, selected func(*call) bool) {
	for _, c := range p.inOrder(selected) {
		switch {
		case c.state == waiting:
			p.close(c, skipped)
			c.lane.skipped = true
			p.steps = append(p.steps, Step{Kind: StepSkip, Task: c.task, Cause: cause})
		case c.state == running && c.stopped == nil && (which == nil || which(c.task)):
			c.stopped = cause
			p.leaveReturning(c)
			p.steps = append(p.steps, Step{Kind: StepStop, Task: c.task, Cause: cause})
			p.stopNested(c, cause)
		}
	}
}

func (p *Plan) stopNested(c *call, cause error) {
	if c.inner != nil {
		p.stop(cause, nil, func(d *call) bool { return d.lane == c.inner })
	}
}

// sweep takes the skipped calls out of the lanes, once for all that were skipped together, and lets
// go on what waited for them.
func (p *Plan) sweep() {
	for _, l := range p.lanes {
		if !l.skipped {
			continue
		}
		l.skipped = false
		var gone []*call
		l.calls = slices.DeleteFunc(l.calls, func(c *call) bool {
			if c.state == skipped {
				c.waitFor(nil)
				gone = append(gone, c)
			}
			return c.state == skipped
		})
		for _, c := range l.calls {
			if c.front != nil && c.front.state == skipped {
				p.review(c)
			}
			if c.state == waiting && slices.ContainsFunc(gone, func(d *call) bool { return d.touches.Everything && d.arrival < c.arrival }) {
				c.stale = true // what has run before them may have changed where its names lead
				p.lookAgain(c)
			}
		}
	}
}
