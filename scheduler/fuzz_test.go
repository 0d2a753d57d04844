// FuzzPlan plays any bytes on a Plan. What comes out is judged by the book in
// book_test.go; this file only decides what is done, and what has to follow.

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzPlan(f *testing.F) {
	// Long random plays, so that a plain go test sees deep states already.
	random := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		play := make([]byte, 600)
		for i := range play {
			play[i] = byte(random.Uint32())
		}
		f.Add(play)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		b := &book{
			T: t, plan: NewPlan(Streaming, DefaultConcurrency), concurrency: DefaultConcurrency,
			feeds: map[uint64]Feed{}, told: map[uint64]bool{},
			banned: map[uint64]error{}, aborted: map[[2]string]error{},
		}
		// The book looks at all of history each time, so it is kept short.
		for pair := range slices.Chunk(input[:min(len(input), 600)/2*2], 2) {
			if len(b.entries) < 40 {
				b.play(pair[0], int(pair[1]))
			}
		}
		b.finish()
	})
}

// play does what two bytes say, and lets start what then may.
func (b *book) play(what byte, arg int) {
	switch what % 15 {
	case 0, 1, 2:
		b.add(arg)
	case 3, 4:
		b.end(arg, nil)
	case 5:
		b.end(arg, fmt.Errorf("aborted by no. %d", len(b.script)))
	case 6:
		b.endTurn(b.turn() - uint64(arg%3/2))
	case 7:
		b.leave(arg)
	case 8:
		b.comeBack(arg)
	case 9:
		b.stopOne(arg)
	case 10:
		b.stopTurns(arg)
	case 11:
		b.feed = Feed(arg % 2)
		b.plan.SetFeed(b.feed)
	case 12:
		b.concurrency = 1 + arg%4
		b.plan.SetConcurrency(b.concurrency)
	case 13:
		if arg == 255 {
			b.stopAll()
		}
	case 14:
		b.separate(arg)
	}
	b.start(arg % 5)
}

// turn is the turn that the client is sending.
func (b *book) turn() uint64 {
	n := uint64(1)
	for b.told[n] {
		n++
	}
	return n
}

func (b *book) begin(turn uint64) bool {
	if slices.Contains(b.turnsEnded, turn) {
		return false
	}
	if _, known := b.feeds[turn]; !known {
		b.feeds[turn] = b.feed
	}
	return true
}

func (b *book) add(arg int) {
	e := &entry{serial: arg&5 == 5}
	e.id, e.turn = fmt.Sprintf("Read%d", len(b.script)), b.turn()
	if e.serial {
		e.id = fmt.Sprintf("Edit%d", len(b.script))
	}
	if open := b.open(); arg&8 != 0 && len(open) > 0 {
		e.parent = open[arg>>4%len(open)]
	}
	if arg&0x62 == 0x62 && e.turn > 1 {
		e.turn--
	}
	e.held = e.parent == nil && b.begin(e.turn) && b.feeds[e.turn] == AtEndOfTurn
	b.begin(e.turn)
	refused := b.refusal(e)
	parent := ""
	if e.parent != nil {
		parent = e.parent.id
	}
	b.note("add %d %s under %q", e.turn, e.id, parent)
	b.plan.Add(e.name, parent)
	if refused != nil {
		steps := b.take()
		if len(steps) != 1 || steps[0].Kind != StepSkip || steps[0].Task.ID() != e.id || steps[0].Cause != refused {
			b.fail("%s was not skipped with %v, but %v", e.id, refused, steps)
		}
		return
	}
	b.entries = append(b.entries, e)
	b.expect(nil)
}

// pick chooses one of those that are selected.
func (b *book) pick(arg int, selected func(*entry) bool) *entry {
	those := b.those(selected)
	if len(those) == 0 {
		return nil
	}
	return those[arg%len(those)]
}

// end lets a call end that runs and does not wait for its slot.
func (b *book) end(arg int, abort error) {
	e := b.pick(arg, func(e *entry) bool { return e.running() && !e.wants })
	if e == nil {
		return
	}
	b.note("end %s, %v", e.id, abort)
	e.ended = true
	b.plan.Finish(e.id, abort)
	hit := map[*entry]error{}
	for _, d := range b.open() {
		if d.within(e) {
			hit[d] = ErrParentNotRunning
		}
	}
	if abort != nil {
		for _, d := range b.open() {
			if d.siblings() == e.siblings() {
				b.hit(hit, d, abort)
			}
		}
		if b.aborted[e.siblings()] == nil && b.banned[e.turn] == nil {
			b.aborted[e.siblings()] = abort
		}
	}
	b.expect(hit)
}

func (b *book) endTurn(turn uint64) {
	if turn == 0 {
		return
	}
	b.note("endturn %d", turn)
	b.begin(turn)
	b.told[turn] = true
	b.plan.EndTurn(turn)
	b.expect(nil)
}

func (b *book) leave(arg int) {
	if e := b.pick(arg, func(e *entry) bool { return e.running() && !e.outside }); e != nil {
		b.note("leave %s", e.id)
		e.outside = true
		b.plan.Leave(e.id)
		b.expect(nil)
	}
}

func (b *book) separate(arg int) {
	if e := b.pick(arg, func(e *entry) bool { return e.running() && !e.outside && !e.serial }); e != nil {
		b.note("separate %s", e.id)
		e.outside, e.wants, e.apart = true, e.stopped == nil, true
		b.plan.Separate(e.id)
		b.expect(nil)
	}
}

func (b *book) comeBack(arg int) {
	e := b.pick(arg, func(e *entry) bool { return e.running() && e.outside && !e.wants })
	if e != nil {
		b.note("return %s", e.id)
		e.wants = e.stopped == nil
		b.plan.Return(e.id)
		b.expect(nil)
	}
}

func (b *book) stopOne(arg int) {
	e := b.pick(arg, func(e *entry) bool { return !e.ended })
	if e == nil {
		return
	}
	cause := fmt.Errorf("stopped by no. %d", len(b.script))
	b.note("stop %s", e.id)
	b.plan.Stop(e.id, cause)
	hit := map[*entry]error{}
	b.hit(hit, e, cause)
	b.expect(hit)
}

// stopTurns stops one turn or all, or only what is serial of it.
func (b *book) stopTurns(arg int) {
	cause := fmt.Errorf("turn stopped by no. %d", len(b.script))
	var which func(Task) bool
	if arg&1 == 1 {
		which = func(t Task) bool { return !t.Concurrent() }
	}
	turn := b.turn()
	affected := []uint64{turn}
	if arg&2 == 2 {
		b.note("stop every turn, %d", arg&1)
		affected = nil
		for known := range b.feeds {
			if !slices.Contains(b.turnsEnded, known) {
				affected = append(affected, known)
			}
		}
		b.plan.StopTurns(cause, which)
	} else {
		b.note("stop turn %d, %d", turn, arg&1)
		b.begin(turn)
		b.plan.StopTurn(turn, cause, which)
	}
	hit := map[*entry]error{}
	for _, n := range affected {
		if b.banned[n] == nil {
			b.banned[n] = cause
		}
		for _, e := range b.open() {
			if e.turn == n && (!e.started || which == nil || e.serial) {
				b.hit(hit, e, cause)
			}
		}
	}
	b.expect(hit)
}

func (b *book) stopAll() {
	cause := fmt.Errorf("closed by no. %d", len(b.script))
	b.note("close")
	if b.closed == nil {
		b.closed = cause
	}
	b.plan.Close(cause)
	hit := map[*entry]error{}
	for _, e := range b.open() {
		b.hit(hit, e, cause)
	}
	b.expect(hit)
}

// finish ends whatever is left and sees that everything has ended.
func (b *book) finish() {
	for last := b.turn(); b.turn() == last; {
		b.endTurn(last)
	}
	for len(b.open()) > 0 {
		b.start(1)
		before := len(b.open())
		for range b.entries {
			b.comeBack(0)
		}
		b.start(1)
		b.end(0, nil)
		if len(b.open()) >= before {
			b.fail("%d calls are left and none can end", before)
		}
	}
	b.start(1)
	if !b.plan.Idle() || b.plan.Slots() != 0 || b.plan.Ready() || len(b.plan.lanes) != 1 {
		b.fail("the plan is not idle when all has ended")
	}
	if len(b.turnsEnded) != len(b.feeds) {
		b.fail("turns ended: %v, begun: %v", b.turnsEnded, b.feeds)
	}
}
