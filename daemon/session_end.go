// The end of a session: when it counts as idle, how everything of it is stopped, and what is removed then.

package daemon

import (
	"context"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// idleSince returns since when the session is unused; unused is false while something uses it: a stream, a call, an
// open question, a background task.
func (at *attachments) idleSince() (since time.Time, unused bool) {
	at.s.update(func(its *state) {
		since, unused = its.used, len(its.clients.streams) == 0 && len(its.ledger.turns) == 0 && len(its.questions.asked) == 0 && at.s.tasks.set.Alive() == 0
	})
	return since, unused
}

// close ends the session for good and seals its log. It returns when every call has its result.
func (s *session) close(why string) {
	if !s.finish(&pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the session was closed: " + why}) {
		return
	}
	s.notifier.runEndHooks(why)
	closed := entry(nil, pipeline.Changed{Closed: true})
	_, _ = view(s, func(its *state) *journal.Pending { return its.ledger.append(closed) }).Wait() // the seal says it too
	if err := s.log.Seal(); err != nil {
		s.daemon.Log.Error("a closed session could not be sealed", zap.String("session", s.name), zap.Error(err))
	}
	s.daemon.sessions.mu.Lock()
	delete(s.daemon.sessions.open, s.name)
	s.daemon.sessions.mu.Unlock()
	s.account.Close()
	options := view(s, func(its *state) *tooldv1.Options { return its.options })
	s.daemon.settings.Forget(scopeOf(s.meta.Roots, options))
	s.daemon.outputs.Release(s.name)
	_ = removeTree(s.daemon.tempOf(s.name)) // what cannot be removed goes with the session's records
	for _, stream := range s.attachments.attached() {
		stream.finish(apierror.New(codes.Aborted, "session_closed", "The session was closed: %s.", why))
	}
	close(s.gone)
}

// finish stops everything of the session and returns when every call has its result and every turn its end. False: it
// was told before, and that caller has done all that follows.
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
	s.queue.Close(cause)
	s.cancel(cause)
	_ = s.queue.Wait(context.Background())
	s.daemon.shares.release(s.meta.owner())
	s.tasks.set.Close()
	s.tools.closeServers()
	s.requests.reviewFileWatch()
	s.intake.endTurns()
	s.work.Wait()
	return true
}
