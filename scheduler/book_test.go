// The book judges the steps of a Plan. It keeps the whole history and derives
// from that what the rules allow, without counters: it shares neither code nor
// bookkeeping with the Plan.

package scheduler

import (
	"fmt"
	"slices"
	"testing"
)

// An entry is a task's history.
type entry struct {
	name
	serial  bool
	parent  *entry
	held    bool // until its turn's end is told
	started bool
	outside bool
	wants   bool // its slot back
	apart   bool // it has asked to go on alone
	alone   bool // and does
	ended   bool // or skipped
	stopped error
}

type book struct {
	*testing.T
	plan        *Plan
	concurrency int
	feed        Feed
	closed      error
	entries     []*entry // accepted ones, by arrival
	feeds       map[uint64]Feed
	told        map[uint64]bool
	banned      map[uint64]error    // turns that were stopped
	aborted     map[[2]string]error // by parent's and turn's name
	turnsEnded  []uint64
	script      []string // what was done, for a person
}

func (b *book) refusal(e *entry) error {
	switch {
	case b.closed != nil:
		return b.closed
	case slices.Contains(b.turnsEnded, e.turn):
		return ErrTurnEnded
	case e.parent != nil && !e.parent.running():
		return ErrParentNotRunning
	case e.parent != nil && e.parent.stopped != nil:
		return e.parent.stopped
	case b.aborted[e.siblings()] != nil:
		return b.aborted[e.siblings()]
	}
	return b.banned[e.turn]
}

func (e *entry) running() bool { return e.started && !e.ended }

func (e *entry) siblings() [2]string {
	key := [2]string{"", fmt.Sprint(e.turn)}
	if e.parent != nil {
		key[0] = e.parent.id
	}
	return key
}

func (e *entry) within(ancestor *entry) bool {
	for a := e.parent; a != nil; a = a.parent {
		if a == ancestor {
			return true
		}
	}
	return false
}

func (b *book) open() []*entry {
	return b.those(func(e *entry) bool { return !e.ended })
}

func (b *book) those(selected func(*entry) bool) (those []*entry) {
	for _, e := range b.entries {
		if selected(e) {
			those = append(those, e)
		}
	}
	return those
}

// hit notes that d and what is nested in it has to be stopped.
func (b *book) hit(hit map[*entry]error, d *entry, cause error) {
	if d.stopped != nil || hit[d] != nil {
		return
	}
	hit[d] = cause
	for _, inner := range b.open() {
		if inner.parent == d {
			b.hit(hit, inner, cause)
		}
	}
}

// start lets start what may, and then sees that nothing else might have.
func (b *book) start(room int) {
	for {
		before := b.slots()
		if !b.plan.Start(room) {
			break
		}
		steps := b.take()
		if len(steps) != 1 {
			b.fail("one start gave %v", steps)
		}
		e := b.find(steps[0].Task)
		b.mayStart(e, steps[0].Kind, room)
		if took := b.slots() - before; took > 0 {
			if b.slots() > b.concurrency {
				b.fail("%s: %d slots are taken, the cap is %d", e.id, b.slots(), b.concurrency)
			}
			if took > room && before > 0 {
				b.fail("%s took %d slots where the daemon had %d", e.id, took, room)
			}
			room -= min(took, room)
		}
	}
	if b.slots() != b.plan.Slots() {
		b.fail("%d slots are taken, the plan says %d", b.slots(), b.plan.Slots())
	}
	for _, e := range b.open() {
		if (b.inOrder(e) || b.resumes(e)) && b.affordable(e, room) {
			b.fail("%s might have gone on and did not", e.id)
		}
		if e.alone && slices.ContainsFunc(b.open(), func(d *entry) bool { return d != e && d.parent == e.parent && d.running() && !d.outside }) {
			b.fail("%s is not alone", e.id)
		}
	}
}

// resumes reports whether e, which is outside, may go on: nothing of its lane goes on
// alone, and if it is to be alone, whatever has begun there is too, and came later.
func (b *book) resumes(e *entry) bool {
	if !e.wants || e.alone {
		return e.wants
	}
	for _, other := range b.entries {
		if other == e || other.parent != e.parent || !other.started || b.gone(other) {
			continue
		}
		earlier := other.wants && slices.Index(b.entries, other) < slices.Index(b.entries, e)
		if other.alone || e.apart && (!other.apart || earlier) {
			return false
		}
	}
	return true
}

// mayStart fails unless the rules allow the step, and enters it.
func (b *book) mayStart(e *entry, kind StepKind, room int) {
	if kind == StepStart {
		b.isNext(e, room)
	}
	switch {
	case kind == StepResume && b.resumes(e) && e.stopped == nil:
		b.note("  resume %s", e.id)
		e.outside, e.wants, e.alone = false, false, e.apart
	case kind == StepStart && b.inOrder(e):
		if e.stopped != nil || b.banned[e.turn] != nil || b.aborted[e.siblings()] != nil {
			b.fail("%s started after its turn was stopped", e.id)
		}
		b.note("  start %s", e.id)
		e.started = true
	default:
		b.fail("step %d of %s must not be", kind, e.id)
	}
}

// isNext fails if e, which waits, has started before what goes first.
func (b *book) isNext(e *entry, room int) {
	earlier := true
	for _, other := range b.open() {
		earlier = earlier && other != e
		if (b.resumes(other) || earlier && b.inOrder(other)) && b.affordable(other, room) {
			b.fail("%s started before %s", e.id, other.id)
		}
	}
}

// inOrder reports whether e, which waits, may start: each earlier call of its lane
// is gone, or runs beside it because both are concurrent and neither is to be alone;
// and no later one has started.
func (b *book) inOrder(e *entry) bool {
	if e.started || e.ended || e.held && !b.told[e.turn] {
		return false
	}
	earlier := true
	for _, other := range b.entries {
		switch {
		case other == e:
			earlier = false
		case other.parent != e.parent:
		case earlier && b.gone(other):
		case earlier && !other.started:
			return false
		case earlier && (other.serial || e.serial || other.apart || b.concurrency == 1):
			return false
		case !earlier && other.started:
			b.fail("%s started before %s, which came earlier", other.id, e.id)
		}
	}
	return true
}

// gone reports whether e and all that is nested in it has ended.
func (b *book) gone(e *entry) bool {
	return e.ended && !slices.ContainsFunc(b.entries, func(d *entry) bool { return !d.ended && d.within(e) })
}

func (b *book) slots() (n int) {
	for _, e := range b.entries {
		if e.parent == nil {
			n += b.slotsOf(e)
		}
	}
	return n
}

func (b *book) slotsOf(e *entry) int {
	own, nested := 0, 0
	if e.running() && !e.outside {
		own = 1
	}
	for _, d := range b.entries {
		if d.parent == e {
			nested += b.slotsOf(d)
		}
	}
	return max(own, nested)
}

func (b *book) affordable(e *entry, room int) bool {
	before, was := b.slots(), *e
	e.started, e.outside = true, false
	cost := b.slots() - before
	*e = was
	return cost == 0 || before == 0 || cost <= room && before+cost <= b.concurrency
}

// expect enters the steps that a change has led to: those in hit are skipped or
// stopped, as they wait or run, with the cause, and no others; turns end.
func (b *book) expect(hit map[*entry]error) {
	for _, step := range b.take() {
		if step.Kind == StepTurnEnded {
			b.turnEnded(step.Turn)
			continue
		}
		e := b.find(step.Task)
		cause, ok := hit[e]
		switch {
		case !ok || cause != step.Cause || e.ended || e.stopped != nil:
			b.fail("step %d of %s with %v, expected %v", step.Kind, e.id, step.Cause, cause)
		case step.Kind == StepSkip && !e.started:
			e.ended = true
		case step.Kind == StepStop && e.started:
			e.stopped, e.wants = step.Cause, false
		default:
			b.fail("step %d of %s must not be", step.Kind, e.id)
		}
		delete(hit, e)
	}
	for e, cause := range hit {
		if e.stopped == nil {
			b.fail("%s was not stopped with %v", e.id, cause)
		}
	}
	for turn := range b.told {
		if !slices.Contains(b.turnsEnded, turn) && b.mustHaveEnded(turn) {
			b.fail("turn %d has not ended", turn)
		}
	}
}

func (b *book) turnEnded(turn uint64) {
	if slices.Contains(b.turnsEnded, turn) {
		b.fail("turn %d has ended twice", turn)
	}
	b.turnsEnded = append(b.turnsEnded, turn)
	if !slices.IsSorted(b.turnsEnded) || !b.mustHaveEnded(turn) {
		b.fail("turn %d has ended too early", turn)
	}
}

// mustHaveEnded reports whether the turn and all earlier ones are told and through.
func (b *book) mustHaveEnded(turn uint64) bool {
	for known := range b.feeds {
		if known > turn {
			continue
		}
		if !b.told[known] || slices.ContainsFunc(b.open(), func(e *entry) bool { return e.turn == known }) {
			return false
		}
	}
	return true
}

func (b *book) take() (steps []Step) {
	for step := range b.plan.Steps {
		steps = append(steps, step)
	}
	return steps
}

func (b *book) find(t Task) *entry {
	for _, e := range b.entries {
		if e.name == t {
			return e
		}
	}
	b.fail("nobody knows %s", t.ID())
	return nil
}

func (b *book) note(format string, args ...any) {
	b.script = append(b.script, fmt.Sprintf(format, args...))
}

func (b *book) fail(format string, args ...any) {
	b.Helper()
	for _, line := range b.script {
		b.Log(line)
	}
	b.Fatalf(format, args...)
}
