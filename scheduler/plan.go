// The order of one session's calls: pure bookkeeping.

package scheduler

import (
	"cmp"
	"slices"
)

// Bounds of a session's concurrency, part of the contract with clients.
const (
	DefaultConcurrency = 10
	MaxConcurrency     = 100
)

// A Plan is the order of one session's calls. Calls form one row, whatever their turn, and a call
// starts when it conflicts with none before it that has not ended. The ordering of its turn decides
// what it conflicts with. A nested call is ordered among the calls of its parent only and takes no
// place but inside its parent's.
//
// Its methods change the state and record what the owner must do, which Steps returns. A Plan is
// not safe for concurrent use.
type Plan struct {
	concurrency int
	how         manner // of turns that begin
	closed      error  // why every further call is skipped; nil while open

	calls     map[string]*call // waiting and running
	arrivals  uint64
	root      *lane
	lanes     []*lane // root, and of the calls that something was nested in
	returning []*call // that wait for a slot again, in the order of their requests
	turns     turns
	paused    bool // no call of root starts, but one that another waits for
	looks     bool // there was a call in the Dependency ordering, so some may have to be looked at again
	steps     []Step
}

// StepKind is what the owner must do for a Step.
type StepKind uint8

const (
	StepStart     StepKind = iota // run Task; it holds a slot from now on
	StepResume                    // Task, which is outside, has its slot again
	StepStop                      // cancel Task, which runs, with Cause; at most once for each task
	StepSkip                      // Task will never run, because of Cause
	StepLook                      // have Task look at what it touches, and call Looked; it waits
	StepTurnEnded                 // EndTurn has been called for Turn and each of its calls has ended; once, in turn order; a Scheduler ignores it
)

// A Step is one thing that the owner of a Plan must do.
type Step struct {
	Kind  StepKind
	Task  Task
	Cause error
	Turn  uint64
}

// NewPlan returns an empty plan; see SetFeed, SetOrdering and SetConcurrency.
func NewPlan(feed Feed, concurrency int) *Plan {
	root := &lane{}
	p := &Plan{how: manner{feed: feed}, calls: make(map[string]*call), root: root, lanes: []*lane{root}}
	p.SetConcurrency(concurrency)
	return p
}

// SetConcurrency sets how many slots the session may take up, limited to 1 to MaxConcurrency. With
// 1, calls run strictly one by one. Running calls continue.
func (p *Plan) SetConcurrency(n int) { p.concurrency = min(max(n, 1), MaxConcurrency) }

// SetFeed sets the Feed of turns that begin from now on.
func (p *Plan) SetFeed(feed Feed) { p.how.feed = feed }

// SetOrdering sets the Ordering of turns that begin from now on. At first it is Batched.
func (p *Plan) SetOrdering(ordering Ordering) { p.how.ordering = ordering }

// SetPaused sets whether waiting calls stay so. What runs goes on, with what is nested in it, and so does what must end before a
// running call can continue alone.
func (p *Plan) SetPaused(paused bool) { p.paused = paused }

// holdsBack reports whether a call stays waiting because the plan is paused.
func (p *Plan) holdsBack(c *call) bool {
	return p.paused && c.lane == p.root && !slices.ContainsFunc(p.returning, func(d *call) bool {
		return d.apart && d.lane == p.root && d.arrival > c.arrival
	})
}

// Stopped returns why each further call of the turn is skipped; nil: it is not.
func (p *Plan) Stopped(number uint64) error {
	for _, t := range p.turns.open {
		if t.number == number {
			return t.refusal(p.root)
		}
	}
	return nil
}

// Slots returns how many slots the session takes up.
func (p *Plan) Slots() int { return p.root.slots }

// Idle reports whether no call is waiting or running.
func (p *Plan) Idle() bool { return len(p.calls) == 0 }

// Steps yields the steps that must be done, in order, and forgets them.
func (p *Plan) Steps(yield func(Step) bool) {
	for i, step := range p.steps {
		if !yield(step) {
			p.steps = slices.Delete(p.steps, 0, i+1)
			return
		}
	}
	clear(p.steps)
	p.steps = p.steps[:0]
}

// Add adds t at the end of the order or, if parent is not empty, at the end of the calls of that
// running call. It is skipped at once if its turn, its siblings or its parent have been stopped,
// with the same cause.
func (p *Plan) Add(t Task, parent string) {
	turn := p.turns.get(t.Turn(), p.how)
	var above *call
	if parent != "" {
		above = p.calls[parent]
	}
	if cause := p.refusal(t, turn, parent, above); cause != nil {
		p.steps = append(p.steps, Step{Kind: StepSkip, Task: t, Cause: cause})
		return
	}
	p.arrivals++
	p.looks = p.looks || turn.ordering == Dependency
	c := newCall(t, turn, p.laneOf(above), p.arrivals)
	p.calls[c.id] = c
	turn.open++
	c.lane.calls = append(c.lane.calls, c)
	c.known = above != nil || !turn.held()
	c.waitFor(c.lane.inFront(c, c))
}

// newCall returns the call of a task. In the Batched ordering a concurrent call may read anything
// and a serial one may change anything.
func newCall(t Task, turn *turn, l *lane, arrival uint64) *call {
	c := &call{task: t, id: t.ID(), arrival: arrival, turn: turn, lane: l, touches: Footprint{Everything: true}}
	switch {
	case turn.ordering == Dependency:
		c.touches = t.Touches()
	case t.Concurrent():
		c.touches = readsAnything
	}
	return c
}

var readsAnything = Footprint{Reads: []Place{Anywhere}}

func (p *Plan) refusal(t Task, turn *turn, parent string, above *call) error {
	_, duplicate := p.calls[t.ID()]
	switch {
	case duplicate:
		return ErrDuplicate
	case p.closed != nil:
		return p.closed
	case turn == nil:
		return ErrTurnEnded
	case parent == "":
		return turn.refusal(p.root)
	case above == nil || above.state == waiting:
		return ErrParentNotRunning
	case above.stopped != nil:
		return above.stopped
	}
	return turn.refusal(above.inner)
}

// laneOf returns the lane of the calls nested in c, or the session's if c is nil.
func (p *Plan) laneOf(c *call) *lane {
	if c == nil {
		return p.root
	}
	if c.inner == nil {
		c.inner = &lane{parent: c}
		p.lanes = append(p.lanes, c.inner)
	}
	return c.inner
}

// Start starts the next call, or resumes the next one that is outside, and reports whether there
// was one. room is how many slots the owner has left; a session that takes up no slot gets one even
// if room is 0. Calls outside come first, in the order of their return, then waiting ones by
// arrival.
func (p *Plan) Start(room int) bool {
	c := p.next(room)
	switch {
	case c == nil:
		return false
	case c.state == running:
		p.leaveReturning(c)
		if c.apart {
			c.lane.sole = c
		}
		c.hold(1)
		p.steps = append(p.steps, Step{Kind: StepResume, Task: c.task})
	default:
		c.lane.enter(c)
		p.steps = append(p.steps, Step{Kind: StepStart, Task: c.task})
	}
	return true
}

// Ready reports whether Start would do something with one slot.
func (p *Plan) Ready() bool { return p.next(1) != nil }

func (p *Plan) next(room int) *call {
	if p.Slots() == 0 {
		room = max(room, 1)
	}
	room = max(0, min(room, p.concurrency-p.Slots()))
	for _, c := range p.returning {
		if p.cost(c) <= room && c.lane.resumes(c) && !p.behind(c) {
			return c
		}
	}
	var first *call
	for _, l := range p.lanes {
		if c := l.first(p.concurrency); c != nil && !p.holdsBack(c) && p.cost(c) <= room && (first == nil || c.arrival < first.arrival) {
			first = c
		}
	}
	return first
}

// behind reports whether another call that arrived before c has requested to continue alone, as c
// has.
func (p *Plan) behind(c *call) bool {
	return c.apart && slices.ContainsFunc(p.returning, func(d *call) bool {
		return d.apart && d.lane == c.lane && d.arrival < c.arrival
	})
}

// cost returns how many more slots the session would take up if c held one.
func (p *Plan) cost(c *call) int {
	before := p.Slots()
	c.hold(1)
	after := p.Slots()
	c.hold(0)
	return after - before
}

// Leave releases the slot of a running call, which keeps its place.
func (p *Plan) Leave(id string) { p.mustRun(id).hold(0) }

// Return requests a slot for a call that left. A stopped call gets none: it is about to end.
func (p *Plan) Return(id string) {
	if c := p.mustRun(id); c.stopped == nil {
		p.returning = append(p.returning, c)
	}
}

// Separate releases the slot of a running call, which keeps its place, and requests it again for
// the time when no other call of its lane runs, and none that arrived before it waits. Until the
// call has ended, no later one starts there.
// Several such calls continue one after the other, by arrival.
func (p *Plan) Separate(id string) {
	c := p.mustRun(id)
	c.hold(0)
	if !c.apart {
		c.apart, c.touches = true, Footprint{Everything: true}
		c.lane.apart++
		p.moved(c)
	}
	p.Return(id)
}

// Finish ends a running call. Its nested calls are skipped or stopped, and its place is free when
// all of those have ended. A non-nil abort skips its waiting siblings and stops the running ones
// (those of the same turn and the same parent), unless they were stopped before. In the Dependency
// ordering siblings that arrived before it continue: they may have changed something already, and
// would have come first.
func (p *Plan) Finish(id string, abort error) {
	c := p.mustRun(id)
	c.hold(0)
	p.leaveReturning(c)
	p.close(c, ended)
	p.stopNested(c, ErrParentNotRunning)
	if abort != nil {
		c.turn.abort(c.lane, abort)
		p.stop(abort, nil, func(d *call) bool {
			return d.lane == c.lane && d.turn == c.turn && (c.turn.ordering == Batched || d.arrival > c.arrival)
		})
	}
	p.sweep()
	p.free(c)
	p.endTurns()
}

// free frees the place of a call that has ended, unless something nested in it still runs; the last
// of those then does it.
func (p *Plan) free(c *call) {
	if c.inner != nil {
		if c.inner.places > 0 {
			return
		}
		p.lanes = slices.DeleteFunc(p.lanes, func(l *lane) bool { return l == c.inner })
	}
	c.lane.leave(c)
	p.passed(c)
	if parent := c.lane.parent; parent != nil && parent.state == ended {
		p.free(parent)
	}
}

func (p *Plan) mustRun(id string) *call {
	c := p.calls[id]
	if c == nil || c.state != running {
		panic("BUG: call " + id + " is not running")
	}
	return c
}

func (p *Plan) close(c *call, how state) {
	c.state = how
	c.turn.open--
	delete(p.calls, c.id)
}

func (p *Plan) leaveReturning(c *call) {
	p.returning = slices.DeleteFunc(p.returning, func(d *call) bool { return d == c })
}

// EndTurn records that no further call of the turn will come, except nested ones.
func (p *Plan) EndTurn(number uint64) {
	if turn := p.turns.get(number, p.how); turn != nil {
		turn.told = true
		p.release(turn)
		p.endTurns()
	}
}

func (p *Plan) endTurns() {
	for p.turns.end() {
		p.steps = append(p.steps, Step{Kind: StepTurnEnded, Turn: p.turns.last})
	}
}

// inOrder returns the selected open calls, by arrival.
func (p *Plan) inOrder(selected func(*call) bool) []*call {
	var calls []*call
	for _, c := range p.calls {
		if selected(c) {
			calls = append(calls, c)
		}
	}
	slices.SortFunc(calls, func(a, b *call) int { return cmp.Compare(a.arrival, b.arrival) })
	return calls
}
