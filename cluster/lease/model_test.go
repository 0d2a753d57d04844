// A model of a cluster: nodes that take one workspace over from each other, a
// network that delays, drops and doubles, and a log that may break its promise.
// Everything happens in the order that a seed decides; there is no clock.
//
// The nodes decide with the same chain, writer and reader as a Lease does.

package lease

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/toold/toold/cluster/log"
)

// episode is how many steps a world lives.
const episode = 4000

// modelSteps returns how many steps the model makes: a million with
// TOOLD_MODEL_STEPS=1000000.
func modelSteps(t *testing.T) int {
	text := os.Getenv("TOOLD_MODEL_STEPS")
	if text == "" {
		return 400_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// rules are what a world may do beside its ordinary course, each in one of so
// many steps; 0: never.
type rules struct {
	lose        int  // the log loses its last segments, although it has acknowledged them
	loseAtDeath bool // it does so only when the owner dies in the same moment
	steady      bool // there is one owner, who neither dies nor releases the workspace
	returns     int  // what was lost is there again, as another replica has it; positions are not given twice
	noPutBack   bool // an owner does not put back what the log has lost
}

// TestModel holds the promises on a log that keeps its own.
func TestModel(t *testing.T) {
	sum := counts{}
	steps := modelSteps(t)
	for seed := range uint64(steps / episode) {
		w := newWorld(seed, rules{})
		w.run()
		if len(w.broken) > 0 {
			t.Fatalf("seed %d, step %d: %v", seed, w.step, w.broken)
		}
		sum.add(w.counts)
	}
	t.Logf("%d steps: %v", steps, sum)
	for _, what := range []string{
		"takeovers", "fenced", "deaths", "pauses", "stored though unanswered", "outdated ends", "results shown", "interrupted", "bases", "effects",
		"effects of an owner that had been replaced", "doubled", "released", "groups of several parts",
	} {
		if sum[what] == 0 {
			t.Errorf("the model never had %s", what)
		}
	}
}

// counts are how often something has happened.
type counts map[string]int

func (c counts) add(more counts) {
	for what, n := range more {
		c[what] += n
	}
}

func (c counts) String() string {
	text := ""
	for _, what := range slices.Sorted(maps.Keys(c)) {
		text += fmt.Sprintf("\n%9d %s", c[what], what)
	}
	return text
}

// world is one workspace with its nodes and a client.
type world struct {
	rules  rules
	calm   int // how seldom nodes fail and others want the workspace
	rng    *rand.Rand
	step   int
	counts counts
	broken map[string]string // the promises that were broken, with the first case of each

	network []message
	log     simLog
	nodes   []*node
	client  client

	// What is true, as no part of the cluster knows it.
	acknowledged map[int]record // by their numbers
	effects      map[int]int    // of each call
	started      map[int]int    // how often each call was started for good
}

// message is delivered to a node, or to the log or client if to is nil.
type message struct {
	to      *node
	life    int // of the node it is for
	deliver func()
}

func newWorld(seed uint64, r rules) *world {
	w := &world{
		rules: r, rng: rand.New(rand.NewPCG(seed, 18)), counts: counts{}, broken: map[string]string{},
		acknowledged: map[int]record{}, effects: map[int]int{}, started: map[int]int{},
	}
	w.log.world = w
	w.calm = 1 + int(seed%20)
	w.client.seen = map[int]record{}
	w.client.results = map[int]int{}
	nodes := 3
	if r.steady {
		nodes = 1
	}
	for i := range nodes {
		w.nodes = append(w.nodes, &node{world: w, name: fmt.Sprint("node", i)})
	}
	return w
}

// one reports true in one of n cases.
func (w *world) one(n int) bool { return n > 0 && w.rng.IntN(n) == 0 }

func (w *world) count(what string) { w.counts[what]++ }

func (w *world) breaks(promise, format string, args ...any) {
	if w.count("broken: " + promise); w.broken[promise] == "" {
		w.broken[promise] = fmt.Sprintf(format, args...)
	}
}

// acknowledge notes that a record is in the log as an owner knows.
func (w *world) acknowledge(r record) {
	before, is := w.acknowledged[r.seq]
	if is && before != r {
		w.breaks("a record keeps its number", "number %d was acknowledged as %v and is %v", r.seq, before, r)
	}
	w.acknowledged[r.seq] = r
	if is && before == r || r.kind != startedRecord {
		return
	}
	if w.started[r.call]++; w.started[r.call] > 1 {
		w.breaks("what was started is not started again", "call %d", r.call)
	}
}

func (w *world) run() {
	for w.step = range episode {
		switch n := w.rng.IntN(100); {
		case n < 60:
			w.deliver()
		case n < 94:
			w.nodes[w.rng.IntN(len(w.nodes))].act()
		case n < 98:
			w.client.act(w)
		case !w.rules.steady && w.one(w.calm):
			w.fault()
		}
		if w.one(w.rules.lose) && !w.rules.loseAtDeath {
			w.log.lose()
		}
		if w.one(w.rules.returns) {
			w.log.recover()
		}
	}
}

// send puts a message on the network, which may lose or double it.
func (w *world) send(to *node, deliver func()) {
	m := message{to: to, deliver: deliver}
	if to != nil {
		m.life = to.life
	}
	if w.one(12) {
		return
	}
	w.network = append(w.network, m)
	if w.one(12) {
		w.count("doubled")
		w.network = append(w.network, m)
	}
}

// deliver delivers one of the messages, in any order.
func (w *world) deliver() {
	if len(w.network) == 0 {
		return
	}
	i := w.rng.IntN(len(w.network))
	m := w.network[i]
	if m.to != nil && m.to.paused && m.life == m.to.life {
		return // it waits in the node's socket
	}
	w.network[i] = w.network[len(w.network)-1]
	w.network = w.network[:len(w.network)-1]
	if m.to == nil || m.life == m.to.life {
		m.deliver()
	}
}

// fault stops, continues or kills a node.
func (w *world) fault() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch {
	case n.paused:
		n.paused = false
	case w.one(2):
		w.count("pauses")
		n.paused = true
	case w.one(2):
		w.count("deaths")
		if n.state == owning && w.rules.loseAtDeath && w.one(w.rules.lose) {
			w.log.lose()
		}
		*n = node{world: w, name: n.name, life: n.life + 1, asked: n.asked + 1}
	}
}

// simLog is the log. Its segments keep their positions, except that it may lose
// the last ones.
type simLog struct {
	world    *world
	segments []log.Segment
	last     log.Pos
	lost     []log.Segment // that may return
	ends     []log.Segment // all that there have been
	stored   map[[32]byte]bool
	epoch    uint64 // the highest so far
	holder   string // who has stored it
}

func (l *simLog) end() log.Segment {
	if len(l.segments) == 0 {
		return log.Segment{}
	}
	return l.segments[len(l.segments)-1]
}

// append stores a link of a node's chain, or reports false. The owners' epochs
// must rise, and each must be of one life of one node.
func (l *simLog) append(by string, prev log.Pos, k link) (log.Pos, bool) {
	if l.end().Pos != prev {
		return 0, false
	}
	w, h := l.world, k.header
	if h.epoch < l.epoch || h.epoch == l.epoch && by != l.holder {
		w.breaks("a replaced owner stores nothing", "%s stores a segment of epoch %d, and %s has epoch %d", by, h.epoch, l.holder, l.epoch)
	}
	if h.epoch >= l.epoch {
		l.epoch, l.holder = h.epoch, by
	}
	l.last++
	l.segments = append(l.segments, log.Segment{Pos: l.last, Data: k.data})
	l.ends = append(l.ends, l.end())
	if l.stored == nil {
		l.stored = map[[32]byte]bool{}
	}
	l.stored[k.hash] = true
	return l.last, true
}

// lastKnown returns the end, or what a leader that has been replaced takes for it.
func (l *simLog) lastKnown() log.Segment {
	if n := len(l.ends); n > 1 && l.world.one(15) {
		l.world.count("outdated ends")
		return l.ends[max(0, n-1-l.world.rng.IntN(3))]
	}
	return l.end()
}

// read returns the segments, or those that a replica has that is behind.
func (l *simLog) read() []log.Segment {
	n := len(l.segments)
	if l.world.one(15) {
		n = l.world.rng.IntN(n + 1)
	}
	return slices.Clone(l.segments[:n])
}

func (l *simLog) purge(before log.Pos) {
	for len(l.segments) > 1 && l.segments[0].Pos < before {
		l.segments = l.segments[1:]
	}
	l.lost = slices.DeleteFunc(l.lost, func(s log.Segment) bool { return s.Pos < before })
}

func (l *simLog) lose() {
	if len(l.segments) == 0 {
		return
	}
	l.world.count("losses")
	kept := max(0, len(l.segments)-1-l.world.rng.IntN(3))
	if l.world.rules.returns > 0 {
		l.lost = append(l.lost, l.segments[kept:]...)
	}
	l.segments = slices.Clip(l.segments[:kept])
	if l.world.rules.returns == 0 {
		l.last = l.end().Pos
	}
}

// recover makes a replica the leader that has lost nothing.
func (l *simLog) recover() {
	if len(l.lost) == 0 {
		return
	}
	l.world.count("returns of what was lost")
	l.segments, l.lost = l.all(), nil
}

// all returns the segments as a replica has them that has lost nothing.
func (l *simLog) all() []log.Segment {
	return slices.SortedFunc(slices.Values(slices.Concat(l.segments, l.lost)), func(a, b log.Segment) int { return cmp.Compare(a.Pos, b.Pos) })
}

// client asks for calls until it has their results, and remembers all that it
// was shown.
type client struct {
	calls   int
	seen    map[int]record
	results map[int]int // which record was the result of a call
}

func (c *client) act(w *world) {
	if c.calls < 40 && w.one(3) {
		c.calls++
	}
	if c.calls == 0 {
		return
	}
	call := w.rng.IntN(c.calls)
	if _, has := c.results[call]; !has {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		w.send(n, func() { n.accept(call) })
	}
}

// show is what arrives from a node.
func (c *client) show(w *world, r record) {
	if before, shown := c.seen[r.seq]; shown && before != r {
		w.breaks("a record keeps its number", "number %d was %v and is %v", r.seq, before, r)
	}
	c.seen[r.seq] = r
	if r.kind != resultRecord {
		return
	}
	if before, has := c.results[r.call]; has && before != r.seq {
		w.breaks("one result a call", "call %d has the results %d and %d", r.call, before, r.seq)
	} else if !has {
		w.count("results shown")
	}
	c.results[r.call] = r.seq
}
