// What is known of a call while it acts, for those who follow it: its output, its newest step.

package daemon

import (
	"time"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/spool"
)

// live is a call whose act has begun. Used in the session's update alone; the output looks after
// itself.
type live struct {
	use       *pipeline.Use
	since     time.Time
	kept      *checkpoint.Row // nil: nothing was kept of what it may change
	recording *recording      // nil: nothing is kept while it runs
	out       *spool.Output   // nil: nothing printed yet
	step      tools.Step
	steps     int  // how many steps there were
	loads     bool // it has passed the machine's gate, or is a part of one that has
}

// printed is how much the call has printed, in bytes.
func (l *live) printed() int64 {
	if l == nil || l.out == nil {
		return 0
	}
	return l.out.Total()
}

// outputCreated makes a call's output followable.
func (rec *recorder) outputCreated(c *pipeline.Call, out *spool.Output) {
	rec.s.update(func(its *state) {
		if l := its.ledger.live[c.Key]; l != nil {
			l.out = out
		}
		its.ledger.wakeWaiters()
	})
	rec.s.work.Go(func() {
		for !out.Ended() {
			changed := out.Changed()
			rec.wakeStreams()
			if out.Ended() {
				return
			}
			<-changed
		}
	})
}

// stepped takes the newest step of a call.
func (rec *recorder) stepped(key string, step tools.Step) {
	rec.s.update(func(its *state) {
		if l := its.ledger.live[key]; l != nil {
			l.step = step
			l.steps++
		}
	})
	rec.wakeStreams()
}

// wakeStreams wakes every stream: there may be something new beside the journal.
func (rec *recorder) wakeStreams() {
	for _, stream := range rec.s.attachments.attached() {
		stream.wakeUp()
	}
}

// wakeWaiters wakes those who wait for a call to print or to end.
func (l *ledger) wakeWaiters() {
	close(l.news)
	l.news = make(chan struct{})
}
