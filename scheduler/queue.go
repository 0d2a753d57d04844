package scheduler

// This file is one session's way to the scheduler: it hands each request to the
// loop. It does not decide anything.

import "context"

// A Queue orders and runs the calls of one session. Its methods may be called
// from anywhere but the loop; requests made by one goroutine are taken in order.
// See Scheduler for what holds for all of them.
type Queue struct {
	scheduler *Scheduler

	// The rest is the loop's own.

	plan   *Plan
	runs   map[string]*run // by the task's ID, until Run has returned
	slots  int             // of plan, as counted in the scheduler's
	inLine bool            // stands in the scheduler's line
	idle   chan struct{}   // closed when no call is open; nil when nobody waits
}

// Add puts t at the end of the queue, or of the calls nested in the running call
// named parent unless that is empty. Exactly one of t's Run and Skip will be
// called; Skip already now if its turn, its siblings, its parent, the queue or
// the scheduler have been stopped.
func (q *Queue) Add(t Task, parent string) {
	if !q.change(func(p *Plan) { p.Add(t, parent) }) {
		t.Skip(ErrClosed)
	}
}

// EndTurn says that no further call of the turn comes, except nested ones. The
// turn ends once each of its calls has ended and every earlier turn too. A turn without calls ends as well; a repeat does nothing.
func (q *Queue) EndTurn(turn uint64) {
	q.change(func(p *Plan) { p.EndTurn(turn) })
}

// Stop skips the call if it waits, and tells it and what is nested in it to stop
// if it runs. A call that has ended or was never added is left alone.
func (q *Queue) Stop(id string, cause error) {
	q.change(func(p *Plan) { p.Stop(id, cause) })
}

// StopTurn skips what waits of the turn and whatever is added to it until it has
// ended, and tells those running tasks of it to stop that which selects, all if
// it is nil. What is nested in a stopped task stops with it. It does not end the
// turn. A turn of which nothing has been added yet begins, stopped.
func (q *Queue) StopTurn(turn uint64, cause error, which func(Task) bool) {
	q.change(func(p *Plan) { p.StopTurn(turn, cause, which) })
}

// StopTurns does what StopTurn does, to every open turn that has been added to.
func (q *Queue) StopTurns(cause error, which func(Task) bool) {
	q.change(func(p *Plan) { p.StopTurns(cause, which) })
}

// SetConcurrency sets how many calls of the session may run beside each other,
// brought into 1 to MaxConcurrency. What runs goes on.
func (q *Queue) SetConcurrency(n int) {
	q.change(func(p *Plan) { p.SetConcurrency(n) })
}

// SetFeed sets how the turns are fed that begin from now on.
func (q *Queue) SetFeed(feed Feed) {
	q.change(func(p *Plan) { p.SetFeed(feed) })
}

// Wait returns nil when no call is waiting or running, or the context's cause.
func (q *Queue) Wait(ctx context.Context) error {
	return wait(ctx, func(request func()) bool {
		return q.change(func(*Plan) { request() })
	}, &q.idle)
}

// Close stops all calls and skips whatever is added from now on. It does not
// wait, and ends no turn. The scheduler keeps nothing of the queue once what ran
// has ended.
func (q *Queue) Close(cause error) {
	q.change(func(p *Plan) {
		p.Close(cause)
		delete(q.scheduler.queues, q)
	})
}

// change has the loop change the plan and do what follows from it, and says
// whether the loop still runs.
func (q *Queue) change(change func(*Plan)) bool {
	return q.scheduler.do(func() {
		change(q.plan)
		q.scheduler.advance(q)
	})
}

// A run is a task that runs.
type run struct {
	queue  *Queue
	id     string
	ctx    context.Context
	cancel context.CancelCauseFunc
	resume chan struct{} // of size 1, so that the loop need not wait: at most one is owed
}

func (r *run) outside(wait func()) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.queue.change(func(p *Plan) { p.Leave(r.id) })
	wait()
	r.queue.change(func(p *Plan) { p.Return(r.id) })
	return r.resumed()
}

func (r *run) alone() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.queue.change(func(p *Plan) { p.Separate(r.id) })
	return r.resumed()
}

// resumed waits until the task has its slot back.
func (r *run) resumed() error {
	select {
	case <-r.resume:
	case <-r.ctx.Done():
	}
	return context.Cause(r.ctx)
}
