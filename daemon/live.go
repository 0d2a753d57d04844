package daemon

// Calls that run: what they print and how far they have come, for streams to look at. One bounded state per call, the
// newest wins; the bytes themselves are in the output file. It does not know who looks, nor how often.

import (
	"time"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// live is a call whose act has begun. Used in the session's update alone; the output looks after itself.
type live struct {
	use   *pipeline.Use
	since time.Time
	kept  *checkpoint.Row // nil: nothing was kept of what it may change
	out   *spool.Output   // nil: nothing printed yet
	step  tools.Step
	steps int // how many steps there were
}

// printed is how much the call has printed, in bytes.
func (l *live) printed() int64 {
	if l == nil || l.out == nil {
		return 0
	}
	return l.out.Total()
}

// published makes a call's output followable.
func (s *session) published(c *pipeline.Call, out *spool.Output) {
	s.update(func(its *state) {
		if l := its.ledger.live[c.Key]; l != nil {
			l.out = out
		}
		its.ledger.tell()
	})
	s.work.Go(func() {
		for !out.Ended() {
			changed := out.Changed()
			s.poke()
			if out.Ended() {
				return
			}
			<-changed
		}
	})
}

// reported takes a call's newest step.
func (s *session) reported(c *pipeline.Call, step tools.Step) { s.stepped(c.Key, step) }

// stepped does so for a call by its key.
func (s *session) stepped(key string, step tools.Step) {
	s.update(func(its *state) {
		if l := its.ledger.live[key]; l != nil {
			l.step = step
			l.steps++
		}
	})
	s.poke()
}

// poke tells every stream that there may be something new beside the journal.
func (s *session) poke() {
	for _, stream := range s.attached() {
		stream.wakeUp()
	}
}

// tell wakes those who wait for a call to print or to end.
func (l *ledger) tell() {
	close(l.news)
	l.news = make(chan struct{})
}
