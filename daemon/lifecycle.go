// What is due by time, and how sessions and the daemon end.

package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// streamGrace is how long the shutdown waits for clients to take their last records.
const streamGrace = 2 * time.Second

// A lifecycle is how long the daemon lives, and what keeps it alive.
type lifecycle struct {
	d         *Daemon
	streaming sync.WaitGroup // goroutines that receive and send
	wake      chan struct{}  // one slot: a session has set a deadline
	ending    chan struct{}  // closed when the drain begins, or the next program is to go on
	stopped   chan struct{}  // closed when the drain begins
	atOnce    chan struct{}  // closed when running calls are to be stopped now
	once      struct{ ending, stopped, atOnce sync.Once }
	upgrade   upgrade
	closers   []func() error // of what New has opened, in order
	restAfter time.Duration

	mu      sync.Mutex // guards the rest
	streams int
	busy    time.Time // when a stream or call was last seen
}

// shutdown lets running calls finish for the drain time, stops the rest, and delivers what they
// came to.
func (d *Daemon) shutdown() {
	d.status.health.Shutdown()
	cause := &pipeline.Stop{Outcome: pipeline.Interrupted, Reason: "the daemon is shutting down"}
	if passing := d.life.upgrade.handover; passing != nil {
		passing.Sessions = d.sessions.suspend()
	}
	d.shares.drain(cause)
	drained, cancel := context.WithTimeout(context.Background(), d.limits.Drain)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		d.shares.wait(drained) // what still runs then is stopped
		cancel()
	})
	select {
	case <-drained.Done():
	case <-d.life.atOnce:
		cancel()
	}
	waiting.Wait()
	if d.life.upgrade.handover == nil {
		d.Stop()
	}
	var sessions sync.WaitGroup
	d.sessions.making.Lock() // no other is made from now on
	open := d.sessions.all()
	d.sessions.making.Unlock()
	for _, s := range open {
		sessions.Go(func() { s.attachments.leave(cause) })
	}
	sessions.Wait()
	d.endpoints.dashboard.close()
	d.sessions.watchers.stop()
	patience := time.AfterFunc(streamGrace, d.server.Stop)
	defer patience.Stop()
	d.server.GracefulStop()
}

// endError is the error for a stream that comes or is there when this program ends.
func (l *lifecycle) endError() *apierror.Error {
	select {
	case <-l.stopped:
		return shuttingDown()
	default:
		return upgrading()
	}
}

// shuttingDown is the error for a stream that comes or is there when the daemon ends.
func shuttingDown() *apierror.Error {
	return apierror.New(codes.Unavailable, "shutting_down", "The daemon is shutting down. Connect again: it starts again.")
}

// leave ends the session for this daemon; the next one brings it back.
func (at *attachments) leave(cause error) {
	if !at.s.finish(cause) {
		return
	}
	for _, stream := range at.attached() {
		stream.finish(at.s.daemon.life.endError())
	}
	close(at.s.gone)
}

// maintenanceTick is how often idle sessions and an idle daemon are looked for.
const maintenanceTick = 10 * time.Second

// maintain closes unused sessions, does what is due in others, and ends an unused daemon.
func (d *Daemon) maintain(ctx context.Context) {
	var closing sync.WaitGroup
	defer closing.Wait()
	tick := time.NewTimer(maintenanceTick)
	defer tick.Stop()
	for {
		next := maintenanceTick
		if d.IdleExit > 0 {
			next = min(next, max(d.IdleExit/4, time.Millisecond))
		}
		if d.sessions.bringBackAll() {
			next = min(next, lostRetry)
		}
		idle := true
		for _, s := range d.sessions.all() {
			since, unused := s.attachments.idleSince()
			idle = idle && unused
			rests := s.attachments.restsIn()
			why, wait := s.attachments.nextCheck(time.Since(since), unused)
			switch {
			case why == "" && rests == 0:
				closing.Go(func() { d.sessions.rest(s) })
			case wait > 0:
				next = min(next, wait, rests)
			case why != "":
				closing.Go(func() { _ = s.close(why) }) // one that is about to rest is found again
			default:
				s.attachments.clientLeft()
			}
		}
		for _, r := range d.sessions.allAtRest() {
			if left := d.limits.Idle.Session - time.Since(r.used); left > 0 {
				next = min(next, left)
			} else {
				closing.Go(func() { d.closeUnused(r) })
			}
		}
		d.life.exitWhenIdle(idle)
		tick.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-d.life.wake:
		case <-tick.C:
		}
	}
}

// nextCheck returns what is to be done about a session: nothing for as long as wait, or, when that
// is 0, to close it for the reason why, or to see to what its client left behind.
func (at *attachments) nextCheck(idle time.Duration, unused bool) (why string, wait time.Duration) {
	limit := at.s.daemon.limits.Idle.Session
	if at.s.meta.Anonymous {
		limit = min(limit, maintenanceTick)
	}
	at.s.update(func(its *state) {
		left := time.Until(its.clients.deadline)
		switch {
		case its.stopping:
			wait = maintenanceTick
		case unused && idle >= limit:
			why = unusedFor(limit)
		case unused:
			wait = limit - idle
		case its.clients.deadline.IsZero():
			wait = maintenanceTick
		case left > 0:
			wait = left
		case at.s.meta.Anonymous && !at.keeps(its):
			why = clientGone
		}
	})
	return why, wait
}

// unusedFor is why an unused session is closed.
func unusedFor(limit time.Duration) string { return fmt.Sprintf("it was not used for %s", limit) }

// closeUnused closes a session at rest that was not used for long.
func (d *Daemon) closeUnused(r *resting) {
	if err := d.sessions.closeIdle(r.info.Name, unusedFor(d.limits.Idle.Session)); err != nil {
		d.Log.Warn("an unused session could not be closed", zap.String("session", r.info.Name), zap.Error(err))
	}
}

const clientGone = "its client went away"

// exitWhenIdle ends the daemon when neither its sessions nor any stream have had anything to do for
// long.
func (l *lifecycle) exitWhenIdle(idle bool) {
	l.mu.Lock()
	if !idle || l.streams > 0 {
		l.busy = time.Now()
	}
	alone := time.Since(l.busy)
	l.mu.Unlock()
	if l.d.IdleExit > 0 && alone > l.d.IdleExit {
		l.d.Log.Info("nothing to do: ending", zap.Duration("idle", alone))
		l.d.Drain()
	}
}

// drainIdle begins the shutdown unless something would be lost by it: an open turn or a background
// task. Attached clients lose nothing; a call that arrives meanwhile has the drain time.
func (l *lifecycle) drainIdle() error {
	for _, s := range l.d.sessions.all() {
		var turns, tasks int
		s.update(func(its *state) { turns, tasks = len(its.ledger.turns), s.tasks.set.Alive() })
		if turns+tasks > 0 {
			return apierror.Preconditionf("busy", "if_idle", "Session %q has %d open turns and %d background tasks. Leave if_idle unset to end them too.", s.name, turns, tasks)
		}
	}
	l.d.Drain()
	return nil
}

// checkAt has the session looked at again at that time.
func (at *attachments) checkAt(its *state, deadline time.Time) {
	its.clients.deadline = deadline
	signal(at.s.daemon.life.wake)
}

// clientLeft ends what a client left behind: questions that no client can answer any more, and,
// unless the session keeps them, its calls.
func (at *attachments) clientLeft() {
	var gone bool
	at.s.update(func(its *state) {
		its.clients.deadline = time.Time{}
		at.s.asker.reviewQuestions(its)
		gone = its.clients.main == nil && !its.stopping && !at.keeps(its)
	})
	if !gone {
		return
	}
	at.s.queue.StopTurns(&pipeline.Stop{Outcome: pipeline.Cancelled, Reason: clientGone}, nil)
	at.s.intake.endTurns()
}

// every runs do at once and then in each period, until ctx ends.
func every(ctx context.Context, period time.Duration, do func()) {
	for do(); sleep(ctx, period) == nil; {
		do()
	}
}

// sleep returns when the time is over, or the cause of ctx when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signal puts a value into a channel of one slot, unless there is one already.
func signal(slot chan<- struct{}) {
	select {
	case slot <- struct{}{}:
	default:
	}
}

// idleSince returns since when the session is unused; unused is false while something uses it: a
// stream, a call, an open question, a background task.
func (at *attachments) idleSince() (since time.Time, unused bool) {
	at.s.update(func(its *state) {
		since, unused = its.used, len(its.clients.streams) == 0 && len(its.ledger.turns) == 0 && len(its.questions.asked) == 0 && at.s.tasks.set.Alive() == 0
	})
	return since, unused
}

// close ends the session for good and seals its log. It returns when every call has its result.
// The error is errResting: it rests instead, and can be brought back to be closed.
func (s *session) close(why string) error {
	if !s.finish(&pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the session was closed: " + why}) {
		if view(s, func(its *state) bool { return its.resting }) {
			return errResting
		}
		return nil
	}
	s.runEndHooks(why)
	closed := entry(nil, pipeline.Changed{Closed: true})
	_, _ = view(s, func(its *state) *journal.Pending { return its.ledger.append(closed) }).Wait() // the seal says it too
	if err := s.log.Seal(); err != nil {
		s.daemon.Log.Error("a closed session could not be sealed", zap.String("session", s.name), zap.Error(err))
	}
	s.daemon.sessions.mu.Lock()
	delete(s.daemon.sessions.open, s.name)
	s.daemon.sessions.mu.Unlock()
	s.release()
	_ = removeTree(s.daemon.tempOf(s.name)) // what cannot be removed goes with the session's records
	for _, stream := range s.attachments.attached() {
		stream.finish(apierror.New(codes.Aborted, "session_closed", "The session was closed: %s.", why))
	}
	close(s.gone)
	return nil
}

// release frees what a session that has ended held in memory.
func (s *session) release() {
	s.account.Close()
	options := view(s, func(its *state) *tooldv1.Options { return its.options })
	s.daemon.settings.Forget(scopeOf(s.meta.Roots, options))
	s.daemon.outputs.Release(s.name)
}

// abandon ends a session that could not be made, before anything else knows of it.
func (s *session) abandon(cause error) {
	s.halt(cause)
	s.release()
}

// finish stops everything of the session and returns when every call has its result and every turn
// its end. False: it was told before, and that caller has done all that follows.
func (s *session) finish(cause error) bool {
	var before bool
	s.intake.alone(func(inlet) {
		s.update(func(its *state) {
			before = its.stopping
			its.stopping = true
		})
	})
	if before {
		<-s.gone
		return false
	}
	s.halt(cause)
	return true
}

// halt stops everything of a session that is marked as stopping.
func (s *session) halt(cause error) {
	s.intake.pause.clientBack() // no timer outlives the session; its queue is closed next
	s.queue.Close(cause)
	s.cancel(cause)
	_ = s.queue.Wait(context.Background())
	s.daemon.shares.release(s.meta.owner())
	s.tasks.set.Close()
	s.tools.closeServers()
	s.requests.reviewFileWatch()
	if !view(s, func(its *state) bool { return its.passing }) {
		s.intake.endTurns()
	}
	s.work.Wait()
}
