// Lanes: a lane is a row of calls that are ordered among each other, the session's own or those
// nested in one call. It counts places and slots.

package scheduler

import (
	"cmp"
	"slices"
)

// A call is a task with its place in the order.
type call struct {
	task    Task
	id      string
	arrival uint64 // position among all calls of the session
	turn    *turn
	lane    *lane // the lane that orders it
	inner   *lane // the lane of its nested calls; nil if it never had any
	state   state
	holds   int   // slots that it holds itself: 0 or 1
	apart   bool  // did not conflict with others, but continues alone in its lane
	stopped error // why it was stopped; nil if it was not

	touches Footprint
	// known is set if touches is true and the call has entered the order. Until then it conflicts
	// with every later call.
	known   bool
	looking bool // the owner finds out what it touches
	// stale is set if a call that it conflicts with has run and ended since it was looked at.
	stale   bool
	front   *call // the latest earlier call that it waits for; nil: none
	waiters int   // how many calls have it as their front
}

// waitFor sets the call's front.
func (c *call) waitFor(front *call) {
	if c.front != nil {
		c.front.waiters--
	}
	if c.front = front; front != nil {
		front.waiters++
	}
}

type state uint8

const (
	waiting state = iota
	running       // until Run has returned, also after it was stopped
	ended
	skipped
)

type lane struct {
	parent  *call   // nil for the session's own lane
	calls   []*call // that wait, or whose place is not free, in order of arrival
	skipped bool    // some of calls were skipped; see Plan.sweep
	// places counts the calls that have started and whose place is not free: they run, or something
	// nested in them does.
	places int
	apart  int   // how many of the calls in its places have requested to continue alone
	sole   *call // the one of them that does; nil: none
	// slots is how many slots the calls of this lane and all calls nested in them take up.
	slots int
}

// blocks reports whether d, a later call of the lane, has to wait for c.
func (c *call) blocks(d *call) bool {
	return c.touches.Conflicts(&d.touches) || c.aborts(d) && d.touches.Changes()
}

// aborts reports whether a failure of c would abort d, which waits for it therefore. In the Batched
// ordering whatever changes something waits anyway.
func (c *call) aborts(d *call) bool {
	return c.turn == d.turn && c.turn.ordering == Dependency && c.task.Aborts()
}

// takes returns how many slots the call's place takes up. A nested call uses its parent's slot if
// that is free, so that neither ever waits for the other.
func (c *call) takes() int {
	if c.inner == nil {
		return c.holds
	}
	return max(c.holds, c.inner.slots)
}

// hold sets how many slots the call itself holds.
func (c *call) hold(slots int) {
	before := c.takes()
	c.holds = slots
	c.lane.grow(c.takes() - before)
}

func (l *lane) grow(slots int) {
	if l.parent == nil {
		l.slots += slots
		return
	}
	before := l.parent.takes()
	l.slots += slots
	l.parent.lane.grow(l.parent.takes() - before)
}

// enter starts a waiting call.
func (l *lane) enter(c *call) {
	l.places++
	c.state = running
	c.hold(1)
}

// first returns the first waiting call that the order lets start; nil: there is none. With a
// concurrency of 1 calls run strictly one by one: a call that asks a question holds no slot, but
// the next one must not overtake it.
func (l *lane) first(concurrency int) *call {
	places := 0
	for _, c := range l.calls {
		switch {
		case c.state != waiting:
			places++
		case c.known && c.front == nil && (places == l.places || !l.overtakes(c)):
			if concurrency > 1 || l.places == l.apart {
				return c
			}
			return nil
		}
		if concurrency == 1 || !c.known || c.touches.Everything {
			return nil // whatever follows waits for c
		}
	}
	return nil
}

// overtakes reports whether a later call that conflicts with c runs already. So it is if c was
// looked at again and touches something else than before.
func (l *lane) overtakes(c *call) bool {
	return slices.ContainsFunc(l.calls, func(d *call) bool {
		return d.arrival > c.arrival && d.state != waiting && !d.apart && d.touches.Conflicts(&c.touches)
	})
}

// inFront returns the latest call that c waits for, of those up to last that came before c; nil:
// there is none.
func (l *lane) inFront(c, last *call) *call {
	at, found := slices.BinarySearchFunc(l.calls, last.arrival, func(d *call, arrival uint64) int {
		return cmp.Compare(d.arrival, arrival)
	})
	if found && last != c {
		at++
	}
	for _, d := range slices.Backward(l.calls[:at]) {
		switch {
		case d.blocks(c):
			return d
		case d.state == waiting && c.isBatchedRead() && d.isBatchedRead():
			return d.front // whatever blocks the one blocks the other
		}
	}
	return nil
}

// isBatchedRead reports whether the call is a concurrent one in the Batched ordering.
func (c *call) isBatchedRead() bool { return c.turn.ordering == Batched && !c.touches.Everything }

// resumes reports whether the order lets a call continue that is outside. A call that continues
// alone waits for all that have not requested that, and nothing runs beside it.
func (l *lane) resumes(c *call) bool {
	if l.sole != nil {
		return l.sole == c
	}
	return !c.apart || l.places == l.apart && !slices.ContainsFunc(l.calls, func(d *call) bool {
		return d.state == waiting && d.arrival < c.arrival
	})
}

// leave takes c out of its place.
func (l *lane) leave(c *call) {
	l.places--
	if c.apart {
		l.apart--
	}
	if l.sole == c {
		l.sole = nil
	}
	if l.calls[0] == c { // as mostly, and then the rest need not move
		l.calls[0] = nil
		l.calls = l.calls[1:]
		return
	}
	at := slices.Index(l.calls, c)
	l.calls = slices.Delete(l.calls, at, at+1)
}
