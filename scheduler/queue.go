// A Queue is one session's handle on the scheduler.

package scheduler

import "context"

// A Queue orders and runs the calls of one session. Its methods are safe for concurrent use, except
// under the scheduler's lock. The requests of one goroutine are handled in order. See Scheduler for
// what applies to all of them.
type Queue struct {
	scheduler *Scheduler

	// The scheduler's lock guards the other fields.

	plan   *Plan
	runs   map[string]*run // by the task's ID, until Run has returned
	slots  int             // of plan, as counted in the scheduler's slots
	inLine bool            // it is in the scheduler's line
	idle   chan struct{}   // closed when no call is open; nil while nothing waits for that
}

// Add adds t at the end of the queue or, if parent is not empty, at the end of the calls nested in
// that running call. Exactly one of t's Run and Skip will be called. Skip is called before Add
// returns if t's turn, its siblings, its parent, the queue or the scheduler have been stopped.
func (q *Queue) Add(t Task, parent string) {
	if !q.change(func(p *Plan) { p.Add(t, parent) }) {
		t.Skip(ErrClosed)
	}
}

// EndTurn records that no further call of the turn will come, except nested ones. The turn ends
// once each of its calls and every earlier turn has ended. A turn without calls ends as well; a
// repeated EndTurn has no effect.
func (q *Queue) EndTurn(turn uint64) {
	q.change(func(p *Plan) { p.EndTurn(turn) })
}

// Stop skips the call if it waits, and stops it and its nested calls if it runs. It has no effect
// on a call that has ended or was never added.
func (q *Queue) Stop(id string, cause error) {
	q.change(func(p *Plan) { p.Stop(id, cause) })
}

// StopTurn skips the waiting calls of the turn, and those that are added until it has ended. It
// stops the running tasks of the turn that which selects, or all if which is nil, with their nested
// calls. It does not end the turn. It may precede the first call of a turn.
func (q *Queue) StopTurn(turn uint64, cause error, which func(Task) bool) {
	q.change(func(p *Plan) { p.StopTurn(turn, cause, which) })
}

// StopTurns does the same for every open turn that has calls.
func (q *Queue) StopTurns(cause error, which func(Task) bool) {
	q.change(func(p *Plan) { p.StopTurns(cause, which) })
}

// SetConcurrency sets how many calls of the session may run concurrently, limited to 1 to
// MaxConcurrency. Running calls continue.
func (q *Queue) SetConcurrency(n int) {
	q.change(func(p *Plan) { p.SetConcurrency(n) })
}

// SetFeed sets the Feed of turns that begin from now on.
func (q *Queue) SetFeed(feed Feed) {
	q.change(func(p *Plan) { p.SetFeed(feed) })
}

// SetOrdering sets the Ordering of turns that begin from now on.
func (q *Queue) SetOrdering(ordering Ordering) {
	q.change(func(p *Plan) { p.SetOrdering(ordering) })
}

// SetPaused does what Plan.SetPaused does.
func (q *Queue) SetPaused(paused bool) {
	q.change(func(p *Plan) { p.SetPaused(paused) })
}

// Stopped does what Plan.Stopped does.
func (q *Queue) Stopped(turn uint64) (cause error) {
	q.scheduler.do(func() { cause = q.plan.Stopped(turn) })
	return cause
}

// Ahead does what Plan.Ahead does. It returns nil once the scheduler is closed.
func (q *Queue) Ahead(t Task, parent string) (ids []string) {
	q.scheduler.do(func() { ids = q.plan.Ahead(t, parent) })
	return ids
}

// Wait waits until no call is waiting or running, and then returns nil, or the cause of ctx.
func (q *Queue) Wait(ctx context.Context) error {
	return wait(ctx, func(request func()) bool {
		return q.change(func(*Plan) { request() })
	}, &q.idle)
}

// Close stops all calls and skips those that are added from now on. It does not wait, and ends no
// turn. Once the running calls have ended, the scheduler has released the queue.
func (q *Queue) Close(cause error) {
	q.change(func(p *Plan) {
		p.Close(cause)
		delete(q.scheduler.queues, q)
	})
}

// change changes the plan and carries out its steps. It returns false, and does nothing, once the
// scheduler is closed and nothing runs any more.
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
	resume chan struct{} // of size 1, so that nothing waits under the lock: there is at most one value
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

// resumed waits until the task has its slot again.
func (r *run) resumed() error {
	select {
	case <-r.resume:
	case <-r.ctx.Done():
	}
	return context.Cause(r.ctx)
}
