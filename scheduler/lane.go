// Lanes: a lane is a row of calls that are ordered among each other, the session's own or those
// nested in one call. It counts places and slots.

package scheduler

// A call is a task with its place in the order.
type call struct {
	task       Task
	id         string
	concurrent bool
	arrival    uint64 // position among all calls of the session
	turn       *turn
	lane       *lane // the lane that orders it
	inner      *lane // the lane of its nested calls; nil if it never had any
	state      state
	holds      int   // slots that it holds itself: 0 or 1
	apart      bool  // concurrent, but continues alone in its lane
	stopped    error // why it was stopped; nil if it was not
}

type state uint8

const (
	waiting state = iota
	running       // until Run has returned, also after it was stopped
	ended
)

type lane struct {
	parent  *call   // nil for the session's own lane
	waiting []*call // in order of arrival
	skipped bool    // some of waiting were skipped; see Plan.sweep
	// places counts the calls that have started and whose place is not free: they run, or something
	// nested in them does.
	places int
	serial bool  // the call in the only place is serial
	apart  int   // how many of the calls in its places have requested to continue alone
	sole   *call // the one of them that does; nil: none
	// slots is how many slots the calls of this lane and all calls nested in them take up.
	slots int
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

// admits reports whether the order lets the first waiting call start. With a concurrency of 1 every
// call is treated as serial: a call that asks a question holds no slot, but the next one must not
// overtake it.
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

// resumes reports whether the order lets a call continue that is outside. A call that continues
// alone waits for all that have not requested that, and nothing runs beside it.
func (l *lane) resumes(c *call) bool {
	if l.sole != nil {
		return l.sole == c
	}
	return !c.apart || l.places == l.apart
}

// free frees the place of a call that has ended, unless something nested in it still runs; the last
// of those then does it. It returns the lanes that are closed by that, innermost first.
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
