package scheduler

// This file holds the places that calls take: a lane is a row of calls that are ordered among each other, the
// session's own or those nested in one call. It counts places and slots.

// A call is a task with its place in the order.
type call struct {
	task       Task
	id         string
	concurrent bool
	arrival    uint64 // position among all calls of the session
	turn       *turn
	lane       *lane // in which it is ordered
	inner      *lane // of the calls nested in it; nil until there was one
	state      state
	holds      int   // slots that it holds itself: 0 or 1
	apart      bool  // concurrent, but goes on alone in its lane
	stopped    error // why it was told to stop; nil when it was not
}

type state uint8

const (
	waiting state = iota
	running       // until Run has returned, also while it is told to stop
	ended
)

type lane struct {
	parent  *call   // nil for the session's own lane
	waiting []*call // in order of arrival
	skipped bool    // some of waiting have been skipped; see Plan.sweep
	// places counts the calls that have started and whose place is not free:
	// they run, or something nested in them does.
	places int
	serial bool  // the call in the only place is serial
	apart  int   // how many of the calls in its places have asked to go on alone
	sole   *call // the one of them that does; nil: none
	// slots is what the calls of this lane and all calls nested in them take up.
	slots int
}

// takes is the number of slots that the call's place takes up. What is nested
// in a call runs on the call's own slot as far as that goes, so that neither
// ever waits for the other.
func (c *call) takes() int {
	if c.inner == nil {
		return c.holds
	}
	return max(c.holds, c.inner.slots)
}

// hold sets the slots that the call holds itself.
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

// enter starts the first waiting call.
func (l *lane) enter() {
	c := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	l.places++
	l.serial = !c.concurrent
	c.state = running
	c.hold(1)
}

// admits reports whether the order lets the first waiting call start. With a
// concurrency of 1 every call is treated as a serial one: a call that asks
// holds no slot, yet the next one must not overtake it.
func (l *lane) admits(concurrency int) bool {
	if len(l.waiting) == 0 {
		return false
	}
	first := l.waiting[0]
	if l.parent == nil && first.turn.held() {
		return false
	}
	return l.places == 0 || first.concurrent && !l.serial && l.apart == 0 && concurrency > 1
}

// resumes reports whether the order lets a call go on that is outside. One that goes on
// alone waits for all that have not asked for that; nothing goes on beside it.
func (l *lane) resumes(c *call) bool {
	if l.sole != nil {
		return l.sole == c
	}
	return !c.apart || l.places == l.apart
}

// free frees the slot of a call that has ended, unless something nested in
// it still runs; then the last of those does it. It returns the lanes that are
// closed by that, innermost first.
func (c *call) free() (closed []*lane) {
	if c.inner != nil {
		if c.inner.places > 0 {
			return nil
		}
		closed = append(closed, c.inner)
	}
	c.lane.places--
	if c.apart {
		c.lane.apart--
	}
	if c.lane.sole == c {
		c.lane.sole = nil
	}
	if parent := c.lane.parent; parent != nil && parent.state == ended {
		closed = append(closed, parent.free()...)
	}
	return closed
}
