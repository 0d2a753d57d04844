// Package gate admits what takes the machine's processors and memory: calls that start processes and
// change something. All sessions of all principals share one Gate. It does not know what a call is,
// nor in which order the calls of a session come: that is the scheduler's.
//
// The sessions that wait form one line. The first of them is admitted when the machine has room for
// it, and goes to the end of the line if more of it waits. So those that wait are admitted first in,
// first out by session, and one session with a hundred of them does not delay another's one.
//
// Calls that are expected to be quick have places of their own, so that a touch does not wait behind
// builds. What is expected of a call is what calls of the same key took before (like.go); what the machine
// has left is in machine.go.
package gate

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Config is what a Gate is made of.
type Config struct {
	Slots    int           // places for ordinary calls, and as many for quick ones; at least 1
	Patience time.Duration // how long one waits at most
	// Quick is how long a quick call runs at most. One that runs for longer becomes an ordinary one, and its
	// place is free for another quick one. 0: all are ordinary.
	Quick time.Duration
	// Reserve is how many bytes of memory stay available. 0: a tenth of the memory, at least 256 MiB.
	Reserve int64
	// Machine reads what the machine has left; nil: that is not known, and only places count. It must not
	// block for long, and is called under the gate's lock, at most every 100 ms.
	Machine func() Machine
}

// crowding is how many calls for each slot may be inside at once: the ordinary, the quick, and as many
// that have turned out not to be quick. Ours.
const crowding = 3

// settling is how long after it was admitted a call counts with the memory that it is expected to take.
// From then on what it takes is missing from what is available. Ours.
const settling = 10 * time.Second

// breath is how long pressure delays a call that has room. Ours.
const breath = time.Second

// A Reason is what a call waits for.
type Reason uint8

const (
	None     Reason = iota // it does not wait
	Slots                  // all places that it may have are taken
	Memory                 // too little would stay available
	Pressure               // programs wait for memory or processors; this only delays a call
	reasons
)

// String returns the name of the reason in details and metrics.
func (r Reason) String() string { return [...]string{"none", "slots", "memory", "pressure"}[r] }

// kind is which places are for a call.
type kind uint8

const (
	ordinary kind = iota
	quick
	kinds
)

// A Gate is the one gate of a machine. Its methods are safe for concurrent use. They never wait.
type Gate struct {
	config Config

	mu      sync.Mutex      // guards what follows, and the state of passes and rows
	inside  []*Pass         // that have a place, apart from those that are away
	line    []*row          // sessions of which something waits, in the order in which they are admitted
	rows    map[string]*row // the same by session
	held    [kinds]Reason   // why the first of the kind in the line is not admitted
	refused [reasons]uint64 // by what they waited for
	likes   likes
	machine Machine
	read    time.Time   // when the machine was
	again   *time.Timer // calls retry while something waits that only time can help; nil: it was never needed
	shut    error       // why none is admitted any more; nil: they are
}

// A row is what waits of one session, first in, first out. It is never empty.
type row struct {
	session string
	passes  []*Pass
}

// New returns a gate with nothing inside.
func New(config Config) *Gate {
	config.Slots = max(config.Slots, 1)
	return &Gate{config: config, rows: map[string]*row{}, likes: likes{}}
}

// Enter adds one to what waits of a session, and admits it at once if none is in front and there is
// room. The key is equal for calls that are expected to take the same. Leave must be called.
func (g *Gate) Enter(session, key string) *Pass {
	p := &Pass{gate: g, session: session}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		p.state, p.err = gone, g.shut
		return p
	}
	now := time.Now()
	p.like = g.likes.of(key)
	g.reclassify(now)
	if len(g.line) == 0 && g.obstacle(p, now) == None {
		g.letIn(p, now)
		return p
	}
	p.came, p.in = now, make(chan struct{})
	r := g.rows[session]
	if r == nil {
		r = &row{session: session}
		g.rows[session] = r
		g.line = append(g.line, r)
	}
	r.passes = append(r.passes, p)
	g.admit(now)
	return p
}

// kindOf returns which places are for a call that waits.
func (g *Gate) kindOf(p *Pass, now time.Time) kind {
	if g.config.Quick > 0 && p.like.isQuick(now) {
		return quick
	}
	return ordinary
}

// obstacle returns why the call, which is the first of its kind, cannot be admitted now. If nothing is inside it
// always can, so that the gate never stays shut; an ordinary one waits for memory only beside others. mu is held.
func (g *Gate) obstacle(p *Pass, now time.Time) Reason {
	if len(g.inside) == 0 {
		return None
	}
	k, taken, expected := g.kindOf(p, now), 0, p.like.expected()
	for _, other := range g.inside {
		if other.kind == k {
			taken++
		}
		if now.Sub(other.began) < settling {
			expected += other.like.expected()
		}
	}
	if taken >= g.config.Slots || len(g.inside) >= crowding*g.config.Slots {
		return Slots
	}
	m := g.look(now)
	alone := k == ordinary && taken == 0 // quick ones may come without an end
	switch {
	case m.Total > 0 && m.Available-expected < g.reserve() && !alone:
		return Memory
	case k == quick || !m.isPressed():
		return None
	case p.ready.IsZero():
		p.ready = now
	}
	if now.Sub(p.ready) < breath {
		return Pressure
	}
	return None
}

// look returns what the machine had left at most 100 ms ago. mu is held.
func (g *Gate) look(now time.Time) Machine {
	if g.config.Machine != nil && (g.read.IsZero() || now.Sub(g.read) >= readEvery) {
		g.machine, g.read = g.config.Machine(), now
	}
	return g.machine
}

// readEvery is how often the machine is looked at, at most, and recheck how often for a call that waits for
// memory. Ours.
const (
	readEvery = 100 * time.Millisecond
	recheck   = 250 * time.Millisecond
)

// reserve returns how many bytes stay available. mu is held.
func (g *Gate) reserve() int64 {
	return cmp.Or(g.config.Reserve, max(g.machine.Total/10, 256<<20))
}

// admit admits those in front as long as there is room. One that has none keeps those of its kind behind it
// waiting too, so that none starves. mu is held.
func (g *Gate) admit(now time.Time) {
	g.reclassify(now)
	var first [kinds]*Pass
	g.held = [kinds]Reason{}
	for i := 0; i < len(g.line) && (first[ordinary] == nil || first[quick] == nil); {
		p := g.line[i].passes[0]
		k := g.kindOf(p, now)
		if first[k] != nil {
			i++
			continue
		}
		if why := g.obstacle(p, now); why != None {
			first[k], g.held[k] = p, why
			i++
			continue
		}
		g.remove(p)
		if r := g.rows[p.session]; r != nil { // others are in front of its next one
			g.line = append(slices.Delete(g.line, i, i+1), r)
		}
		g.letIn(p, now)
	}
	g.wake(first, now)
}

// reclassify makes those inside ordinary that have run for too long to be quick. mu is held.
func (g *Gate) reclassify(now time.Time) {
	for _, p := range g.inside {
		if p.kind == quick && p.ran(now) >= g.config.Quick {
			p.kind, p.judged = ordinary, true
			p.like.wasLong()
		}
	}
}

// wake has the gate try again when time may have made room for one of the first that wait. mu is held.
func (g *Gate) wake(first [kinds]*Pass, now time.Time) {
	next := time.Duration(0)
	soon := func(in time.Duration) {
		if next == 0 || in < next {
			next = max(in, time.Millisecond)
		}
	}
	for k, p := range first {
		switch why := g.held[k]; {
		case why == Memory:
			soon(recheck)
		case why == Pressure:
			soon(breath - now.Sub(p.ready))
		case why == Slots && kind(k) == quick:
			for _, other := range g.inside {
				if other.kind == quick {
					soon(g.config.Quick - other.ran(now))
				}
			}
		case why == Slots:
			soon(fading) // when it may be expected to be quick after all
		}
	}
	switch {
	case next == 0 && g.again != nil:
		g.again.Stop()
	case next > 0 && g.again == nil:
		g.again = time.AfterFunc(next, g.retry)
	case next > 0:
		g.again.Reset(next)
	}
}

func (g *Gate) retry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit(time.Now())
}

// letIn lets a pass in that is not in the line any more. mu is held.
func (g *Gate) letIn(p *Pass, now time.Time) {
	p.state, p.kind, p.began, p.since = inside, g.kindOf(p, now), now, now
	p.like.inside++
	g.inside = append(g.inside, p)
	if p.in != nil {
		close(p.in)
	}
}

// takeOut frees the place of a pass. mu is held.
func (g *Gate) takeOut(p *Pass) {
	if at := slices.Index(g.inside, p); at >= 0 {
		g.inside = slices.Delete(g.inside, at, at+1)
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
	if g.again != nil {
		g.again.Stop()
	}
}

// A Load is how much is inside, and waits.
type Load struct {
	Slots     int             // as in Config
	Inside    int             // calls with a place, of all kinds
	Sessions  int             // of which something waits
	Waiting   [reasons]int    // calls, by Reason
	Refused   [reasons]uint64 // calls that have waited for too long, by Reason
	Available int64           // bytes of memory, when that was last looked at; 0: it is not known
	Reserve   int64           // bytes of it that stay available
}

// Queued returns how many calls wait.
func (l *Load) Queued() (n int) {
	for _, waiting := range l.Waiting {
		n += waiting
	}
	return n
}

// Load returns the present load.
func (g *Gate) Load() Load {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.load()
}

func (g *Gate) load() Load {
	l := Load{Slots: g.config.Slots, Inside: len(g.inside), Sessions: len(g.line), Refused: g.refused}
	if g.machine.Total > 0 {
		l.Available, l.Reserve = g.machine.Available, g.reserve()
	}
	for _, r := range g.line {
		for _, p := range r.passes {
			l.Waiting[g.why(p)]++
		}
	}
	return l
}

// why returns what a pass in the line waits for. mu is held.
func (g *Gate) why(p *Pass) Reason { return cmp.Or(g.held[g.kindOf(p, time.Now())], Slots) }
