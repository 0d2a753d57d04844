// The plans of a principal's sessions, and the slots that they share. One lock guards them all: what
// is done under it only keeps book, and never waits.

package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Scheduler runs the tasks of one principal's sessions. Its methods are safe for concurrent use.
// They never wait for a task; only Wait and Close do. After Close they have no effect.
//
// The functions that are called under its lock (Task.Skip, the predicates of stops) must not block
// and must not call the scheduler.
type Scheduler struct {
	tasks  sync.WaitGroup // what Close waits for: goroutines that run tasks, or wait for one
	limit  int
	next   chan func()  // to goroutines that wait for a task; closed with the scheduler
	spares atomic.Int32 // how many wait, or are about to

	mu      sync.Mutex          // guards what follows, and the queues with their plans
	queues  map[*Queue]struct{} // not closed
	ready   []*Queue            // want a slot, in the order in which they get one
	slots   int                 // taken by all sessions
	running int                 // tasks whose Run has not returned
	idle    chan struct{}       // closed when nothing runs; nil while nothing waits for that
	drained error               // why nothing starts any more; nil: things start
	closing bool                // Close was called
}

// New starts a scheduler that runs at most limit calls at once over all its sessions. Calls that
// are outside do not count, and a session that takes up no slot always gets one.
func New(limit int) *Scheduler {
	return &Scheduler{limit: limit, next: make(chan func()), queues: map[*Queue]struct{}{}}
}

// do carries out a request under the lock. It returns false, and does nothing, once the scheduler is
// closed and nothing runs any more.
func (s *Scheduler) do(request func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer dieOfBug()
	if s.closing && s.running == 0 {
		return false
	}
	request()
	if s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	if s.running == 0 && s.closing { // nothing starts from here on
		close(s.next)
	}
	return true
}

// dieOfBug ends the process if what was done under the lock has panicked: a plan that was left in the
// middle of a change would never run what waits in it, and the next process knows from the journal what
// was under way. The caller might recover.
func dieOfBug() {
	if broken := recover(); broken != nil {
		stack := debug.Stack()
		go panic(fmt.Sprintf("%v\n%s", broken, stack))
		select {}
	}
}

// NewQueue returns the queue of a new session.
func (s *Scheduler) NewQueue(feed Feed, concurrency int) *Queue {
	q := &Queue{scheduler: s, plan: NewPlan(feed, concurrency), runs: map[string]*run{}}
	s.do(func() {
		s.queues[q] = struct{}{}
		if s.drained != nil {
			q.plan.Drain(s.drained)
		}
	})
	return q
}

// Drain skips all waiting calls and those that are added from now on, in every queue. Running calls
// continue: call Wait to wait for them, and Stop to stop them.
func (s *Scheduler) Drain(cause error) { s.do(func() { s.end(cause, (*Plan).Drain) }) }

// Stop drains and stops all running calls.
func (s *Scheduler) Stop(cause error) { s.do(func() { s.end(cause, (*Plan).Close) }) }

// end drains or closes every plan before any steps are carried out.
func (s *Scheduler) end(cause error, end func(*Plan, error)) {
	if s.drained == nil {
		s.drained = cause
	}
	for q := range s.queues {
		end(q.plan, cause)
	}
	for q := range s.queues {
		s.advance(q)
	}
}

// Wait waits until no task of any queue runs, and then returns nil, or the cause of ctx.
func (s *Scheduler) Wait(ctx context.Context) error { return wait(ctx, s.do, &s.idle) }

// wait waits until the channel in *at is closed, which is made for the first waiter.
func wait(ctx context.Context, do func(func()) bool, at *chan struct{}) error {
	var idle chan struct{}
	taken := do(func() {
		if *at == nil {
			*at = make(chan struct{})
		}
		idle = *at
	})
	if !taken {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close stops everything with ErrClosed, and waits until every Run has returned.
func (s *Scheduler) Close() {
	s.do(func() {
		s.end(ErrClosed, (*Plan).Close)
		s.closing = true
	})
	s.tasks.Wait()
}

// advance starts what may start now that something about q has changed, and does
// what its plan asks for. What needs no slot starts at once; for
// the rest q stands in line.
func (s *Scheduler) advance(q *Queue) {
	for q.plan.Start(0) {
	}
	s.perform(q)
	s.standInLine(q)
	for s.slots < s.limit && len(s.ready) > 0 {
		next := s.ready[0]
		s.ready[0] = nil
		s.ready = s.ready[1:]
		next.inLine = false
		if next.plan.Start(1) {
			s.perform(next)
		}
		s.standInLine(next)
	}
}

func (s *Scheduler) standInLine(q *Queue) {
	if !q.inLine && q.plan.Ready() {
		q.inLine = true
		s.ready = append(s.ready, q)
	}
}

// perform does the steps of q's plan.
func (s *Scheduler) perform(q *Queue) {
	s.slots += q.plan.Slots() - q.slots
	q.slots = q.plan.Slots()
	for step := range q.plan.Steps {
		switch step.Kind {
		case StepStart:
			s.start(q, step.Task)
		case StepResume:
			q.runs[step.Task.ID()].resume <- struct{}{}
		case StepStop:
			q.runs[step.Task.ID()].cancel(step.Cause)
		case StepSkip:
			step.Task.Skip(step.Cause)
		case StepLook:
			s.look(q, step.Task)
		}
	}
	if q.idle != nil && q.plan.Idle() {
		close(q.idle)
		q.idle = nil
	}
}

func (s *Scheduler) start(q *Queue, t Task) {
	r := &run{queue: q, id: t.ID(), resume: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	q.runs[r.id] = r
	s.running++
	run := func() {
		abort := t.Run(r.ctx, r.outside, r.alone)
		s.do(func() { s.finish(r, abort) })
	}
	select {
	case s.next <- run:
	default:
		s.tasks.Go(func() { s.work(run) })
	}
}

// manySpares is how many goroutines wait for a task at most. Their stacks have grown to what a call needs, which costs a
// tenth of a small call each time.
const manySpares = 4

// work runs a task, and then those that come while no more than manySpares others wait too.
func (s *Scheduler) work(run func()) {
	for run != nil {
		run()
		if s.spares.Add(1) > manySpares {
			s.spares.Add(-1)
			return
		}
		run = <-s.next
		s.spares.Add(-1)
	}
}

// look has t look at what it touches.
func (s *Scheduler) look(q *Queue, t Task) {
	s.tasks.Go(func() {
		found := t.Look()
		q.change(func(p *Plan) { p.Looked(t.ID(), found) })
	})
}

func (s *Scheduler) finish(r *run, abort error) {
	q := r.queue
	delete(q.runs, r.id)
	s.running--
	q.plan.Finish(r.id, abort)
	s.advance(q)
	r.cancel(nil)
}
