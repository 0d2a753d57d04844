// WatchSessions: all sessions of a principal as they change, and the events of one of them, on one stream. Sessions are compared with
// what was sent of them each half second, so a session that no page shows costs nothing when it changes.

package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// overviewTick is how often the sessions are compared with what was sent of them. Ours: a person does not notice less.
const overviewTick = 500 * time.Millisecond

// WatchSessions streams what becomes of the caller's open sessions, and the events of one of them.
func (x *sessionServer) WatchSessions(request *tooldv1.WatchSessionsRequest, g tooldv1.SessionService_WatchSessionsServer) error {
	x.daemon.life.countStream(1)
	defer x.daemon.life.countStream(-1)
	ctx, cancel := context.WithCancelCause(g.Context())
	defer cancel(nil)
	if who := principalOf(ctx); request.GetAnswers() {
		x.daemon.sessions.watchers.came(who)
		defer x.daemon.sessions.watchers.left(who)
	}
	o := &overview{daemon: x.daemon, who: principalOf(ctx), sent: map[string]*tooldv1.SessionState{}, out: func(m any) error { return g.SendMsg(m) }}
	var following sync.WaitGroup
	if request.GetSessionId() != "" {
		following.Go(func() {
			if err := x.sendEvents(ctx, request, o.send); err != nil {
				cancel(err)
			}
		})
	}
	err := o.run(ctx)
	cancel(err)
	following.Wait()
	return err
}

// sendEvents sends the events of the session that the request names, and why no more follow. Its error is that of send.
func (x *sessionServer) sendEvents(ctx context.Context, request *tooldv1.WatchSessionsRequest, send func(any) error) error {
	one := &tooldv1.WatchRequest{SessionId: request.GetSessionId(), AfterSeq: request.AfterSeq, Answers: request.GetAnswers(), Inputs: request.GetInputs()}
	err := x.follow(ctx, one, eventSender{send, func(event *tooldv1.ExecuteResponse) any {
		return &tooldv1.WatchSessionsResponse{Update: &tooldv1.WatchSessionsResponse_Event{Event: event}}
	}}, func() {})
	if ctx.Err() != nil {
		return nil
	}
	ended := &tooldv1.EventsEnded{}
	if refused, is := errors.AsType[*apierror.Error](err); is {
		ended.Code, ended.Message = refused.Reason, refused.Message
	} else if err != nil {
		ended.Code, ended.Message = "internal", status.Convert(err).Message()
	}
	return send(&tooldv1.WatchSessionsResponse{Update: &tooldv1.WatchSessionsResponse_EventsEnded{EventsEnded: ended}})
}

// An overview is what one stream has sent of a principal's sessions.
type overview struct {
	daemon *Daemon
	who    access.Principal
	sent   map[string]*tooldv1.SessionState // by name; run's alone

	sending sync.Mutex // held for one message
	out     func(any) error
}

func (o *overview) send(message any) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	return o.out(message)
}

// run sends what changes until ctx or the daemon ends.
func (o *overview) run(ctx context.Context) error {
	if err := o.sendChanges(); err != nil {
		return err
	}
	if err := o.send(&tooldv1.WatchSessionsResponse{Update: &tooldv1.WatchSessionsResponse_AllSent{AllSent: true}}); err != nil {
		return err
	}
	tick := time.NewTicker(overviewTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.daemon.life.ending:
			return o.daemon.life.endError()
		case <-tick.C:
			if err := o.sendChanges(); err != nil {
				return err
			}
		}
	}
}

// sendChanges sends the sessions that are not as they were sent, and the names of those that are closed.
func (o *overview) sendChanges() error {
	now := o.states()
	for name, state := range now {
		if proto.Equal(state, o.sent[name]) {
			continue
		}
		if err := o.send(&tooldv1.WatchSessionsResponse{Update: &tooldv1.WatchSessionsResponse_Session{Session: state}}); err != nil {
			return err
		}
	}
	for name := range o.sent {
		if now[name] != nil {
			continue
		}
		if err := o.send(&tooldv1.WatchSessionsResponse{Update: &tooldv1.WatchSessionsResponse_ClosedSessionId{ClosedSessionId: name}}); err != nil {
			return err
		}
	}
	o.sent = now
	return nil
}

// states describes the principal's open sessions, by name, without asking the journal.
func (o *overview) states() map[string]*tooldv1.SessionState {
	x, states := &o.daemon.sessions, map[string]*tooldv1.SessionState{}
	add := func(owner access.Principal, describe func() *tooldv1.Session) {
		if owner == o.who {
			session := describe()
			states[session.GetSessionId()] = &tooldv1.SessionState{Session: session}
		}
	}
	for _, lost := range x.allMissing() {
		add(x.keptMeta(lost.info.Name).owner(), func() *tooldv1.Session { return inList(x.keptSession(lost.info)) })
	}
	for _, r := range x.allAtRest() {
		add(r.meta.owner(), func() *tooldv1.Session { return r.listed })
	}
	for _, s := range x.all() {
		add(s.meta.owner(), func() *tooldv1.Session { return inList(s.describe()) })
		state := states[s.name]
		for _, task := range state.GetSession().GetBackgroundTasks() {
			task.Age = nil // or each comparison would find another
		}
		if state.GetSession().GetOpenQuestions() > 0 {
			if described, err := s.describeOpen(); err == nil { // or it is just closing
				state.OpenQuestions = described.GetOpenQuestions()
			}
		}
	}
	return states
}

// watcherGrace is how long after its stream a watcher counts as one who answers: a page that is hidden has no stream. It is part of the
// contract with clients.
const watcherGrace = 2 * time.Minute

// watchers are those who answer questions of all sessions of their principal. Its methods are safe for concurrent use.
type watchers struct {
	d *Daemon

	mu   sync.Mutex // guards the rest; a leaf
	here map[access.Principal]*watching
}

// watching is how many streams a principal's watchers have, and when the last has ended.
type watching struct {
	streams int
	left    time.Time
	gone    *time.Timer // runs while there is no stream; nil: none has ended yet
}

// answer reports whether someone answers questions of who's sessions.
func (w *watchers) answer(who access.Principal) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	here := w.here[who]
	return here != nil && (here.streams > 0 || time.Since(here.left) < watcherGrace)
}

func (w *watchers) came(who access.Principal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.here == nil {
		w.here = map[access.Principal]*watching{}
	}
	if w.here[who] == nil {
		w.here[who] = &watching{}
	}
	w.here[who].streams++
	if gone := w.here[who].gone; gone != nil {
		gone.Stop()
	}
}

// left notes the end of a stream. When the watchers are gone for good, questions that no client can answer are withdrawn.
func (w *watchers) left(who access.Principal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	here := w.here[who]
	here.streams, here.left = here.streams-1, time.Now()
	select {
	case <-w.d.life.ending:
	default:
		if here.streams == 0 {
			here.gone = time.AfterFunc(watcherGrace, func() { w.review(who) })
		}
	}
}

// review withdraws questions that no client can answer any more.
func (w *watchers) review(who access.Principal) {
	for _, s := range w.d.sessions.all() {
		if s.meta.owner() == who {
			s.goUnlessStopping(func(context.Context) { s.update(s.asker.reviewQuestions) })
		}
	}
}

// stop ends the timers.
func (w *watchers) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, here := range w.here {
		if here.gone != nil {
			here.gone.Stop()
		}
	}
}
