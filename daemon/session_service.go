// SessionService: reads and ends sessions from beside their stream.

package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

type sessionServer struct {
	tooldv1.UnimplementedSessionServiceServer
	daemon *Daemon
}

// GetSession returns one session.
func (x *sessionServer) GetSession(ctx context.Context, request *tooldv1.GetSessionRequest) (*tooldv1.GetSessionResponse, error) {
	who := principalOf(ctx)
	if x.daemon.sessions.atRest(request.GetSessionId()) != nil {
		if _, err := x.daemon.sessions.bringBackFor(who, request.GetSessionId()); err != nil {
			return nil, err
		}
	}
	if s := x.daemon.sessions.owned(who, request.GetSessionId()); s != nil {
		return s.describeOpen()
	}
	infos, err := x.daemon.journal.Logs()
	if err != nil {
		return nil, journalRefusal(err)
	}
	for _, info := range infos {
		if info.Name == request.GetSessionId() && x.daemon.sessions.keptMeta(info.Name).owner() == who {
			return &tooldv1.GetSessionResponse{Session: x.daemon.sessions.keptSession(info)}, nil
		}
	}
	return nil, unknownSession(request.GetSessionId())
}

// keptSession describes a session that is only in the journal: closed, or not brought back yet.
func (x *sessionSet) keptSession(info journal.Info) *tooldv1.Session {
	_, lost := x.missing(info.Name)
	about := x.keptMeta(info.Name)
	return &tooldv1.Session{
		SessionId: info.Name, Roots: convert.Each(about.Roots, convert.Clean), Anonymous: about.Anonymous, Created: timestamppb.New(info.Created),
		FirstKeptSeq: info.First, LastSeq: info.Last, Closed: !lost,
	}
}

// keptMeta reads what never changes about a session; nothing where that cannot be read.
func (x *sessionSet) keptMeta(name string) (about meta) {
	log, err := x.d.journal.Log(name)
	if err != nil {
		return about
	}
	if state, err := log.State(keyMeta); err == nil {
		_ = json.Unmarshal(state[keyMeta], &about) // what is damaged says nothing
	}
	return about
}

// describe puts the session's present state into a message.
func (s *session) describe() *tooldv1.Session {
	ports := s.ports.byTask()
	return view(s, func(its *state) *tooldv1.Session {
		wire := &tooldv1.Session{
			SessionId: s.name, Roots: convert.Each(s.meta.Roots, convert.Clean), WorkingDirectory: convert.Clean(its.shell.dir), Created: timestamppb.New(s.created),
			FirstKeptSeq: s.log.First(), LastSeq: s.log.Last(), Attached: its.clients.main != nil, Client: its.clients.info,
			Options: its.options, Closed: its.stopping, Anonymous: s.meta.Anonymous, Todos: convert.Each(its.shell.todos, convert.Todo),
		}
		for _, t := range its.ledger.turns {
			wire.OpenCalls += uint32(len(t.open))
		}
		for _, a := range its.questions.asked {
			if !a.done {
				wire.OpenQuestions++
			}
		}
		wire.BackgroundTasks = s.tasks.describeTasks(its, ports)
		return wire
	})
}

// Watch streams the records of a session beside its own stream.
func (x *sessionServer) Watch(request *tooldv1.WatchRequest, g tooldv1.SessionService_WatchServer) error {
	return x.follow(g.Context(), request, eventSender{g.SendMsg, func(event *tooldv1.ExecuteResponse) any { return &tooldv1.WatchResponse{Event: event} }}, func() {
		_ = g.SendHeader(nil) // by which a client knows that it is asked from now on; serve finds out if it is gone
	})
}

// follow sends the events of a session to out until ctx ends or all are sent. It calls begun when the session has the stream.
func (x *sessionServer) follow(ctx context.Context, request *tooldv1.WatchRequest, out eventSender, begun func()) error {
	var st *stream
	err := awake(func() (*session, error) {
		if request.GetNoFollow() {
			return nil, nil
		}
		return x.daemon.sessions.bringBackFor(principalOf(ctx), request.GetSessionId())
	}, func(*session) (err error) {
		st, err = x.watcher(ctx, request, out)
		return err
	})
	if err != nil {
		return err
	}
	if !st.follow {
		return st.run(ctx)
	}
	x.daemon.life.countStream(1)
	defer x.daemon.life.countStream(-1)
	begun()
	return st.serve(ctx, nil)
}

// watcher makes the stream of a Watch, one of the session's if that is open.
func (x *sessionServer) watcher(ctx context.Context, request *tooldv1.WatchRequest, out eventSender) (*stream, error) {
	look, err := x.daemon.sessions.view(ctx, request)
	if err != nil {
		return nil, err
	}
	last := look.log.Last()
	after := last
	if request.AfterSeq != nil {
		after = request.GetAfterSeq()
	}
	if err := beyondEnd(look.name, after, last); err != nil {
		return nil, err.At("after_seq")
	}
	s := look.session
	if s == nil {
		s = &session{name: look.name, daemon: x.daemon, log: look.log}
	}
	st := newStream(s, after, out)
	st.inputs = request.GetInputs()
	st.follow = look.session != nil && !request.GetNoFollow()
	if !st.follow {
		st.upTo = last
		return st, nil
	}
	st.answers = request.GetAnswers()
	if err := s.attachments.watch(st); err != nil {
		return nil, err
	}
	s.ports.clientCame()
	return st, nil
}

// Answer answers a question from outside of the stream.
func (x *sessionServer) Answer(ctx context.Context, request *tooldv1.AnswerRequest) (*tooldv1.AnswerResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	if refused := s.asker.mayAnswer(senderOf(ctx), request.GetAnswer()); refused != nil {
		return nil, refused
	}
	if refused := s.asker.resolve(request.GetAnswer()); refused != nil {
		return nil, refused
	}
	return &tooldv1.AnswerResponse{}, nil
}

// CancelCall stops one call, or the background task that it has left.
func (x *sessionServer) CancelCall(ctx context.Context, request *tooldv1.CancelCallRequest) (*tooldv1.CancelCallResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	var key string
	var open bool
	s.update(func(its *state) {
		if key, err = its.ledger.named(s.name, request.GetToolUseId(), request.Turn); err == nil {
			open = its.ledger.calls[key].Open || s.tasks.taskOf(key) != nil
		}
	})
	if err != nil {
		return nil, err
	}
	s.intake.cancelCall(key, cancelledBy(request.GetReason()))
	return &tooldv1.CancelCallResponse{Cancelled: open}, nil
}

// Interrupt interrupts the running calls on behalf of the user.
func (x *sessionServer) Interrupt(ctx context.Context, request *tooldv1.InterruptRequest) (*tooldv1.InterruptResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	s.intake.interrupt(request.GetReason())
	return &tooldv1.InterruptResponse{}, nil
}

// CancelTurn stops one turn, or all that are open.
func (x *sessionServer) CancelTurn(ctx context.Context, request *tooldv1.CancelTurnRequest) (*tooldv1.CancelTurnResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	if request.GetAll() && request.GetTurnId() != "" {
		return nil, apierror.Invalidf("invalid_turn", "turn_id", "Of turn_id and all only one may be set.")
	}
	var turns []*turn
	s.update(func(its *state) {
		if request.GetAll() {
			turns = its.ledger.openTurns()
		} else if t := its.ledger.turnNamed(request.GetTurnId()); t != nil {
			turns = []*turn{t}
		}
	})
	if len(turns) == 0 && request.GetTurnId() != "" {
		return nil, apierror.NotFoundf("unknown_turn", "turn_id", "No turn with the turn_id %q is open.", convert.Short(request.GetTurnId()))
	}
	for _, t := range turns {
		s.queue.StopTurn(t.number, cancelledBy(request.GetReason()), nil)
	}
	return &tooldv1.CancelTurnResponse{Turns: uint32(len(turns))}, nil
}

// KillTask ends a background task.
func (x *sessionServer) KillTask(ctx context.Context, request *tooldv1.KillTaskRequest) (*tooldv1.KillTaskResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	task := s.tasks.set.Get(request.GetTaskId())
	if task == nil {
		return nil, apierror.NotFoundf("unknown_task", "task_id", "Session %q has no background task %q.", convert.Short(request.GetSessionId()), convert.Short(request.GetTaskId()))
	}
	if _, ended := task.Exit(); ended {
		return nil, apierror.NotFoundf("task_ended", "task_id", "The background task %q has ended.", convert.Short(request.GetTaskId()))
	}
	task.Stop()
	return &tooldv1.KillTaskResponse{}, nil
}

// CloseSession stops everything of a session and ends it.
func (x *sessionServer) CloseSession(ctx context.Context, request *tooldv1.CloseSessionRequest) (*tooldv1.CloseSessionResponse, error) {
	err := awake(func() (*session, error) { return x.daemon.sessions.openSession(ctx, request) }, func(s *session) error { return s.close("a client closed it") })
	if err != nil {
		return nil, err
	}
	return &tooldv1.CloseSessionResponse{}, nil
}

// openSession returns the session that a request names, if the client owns it and it is not closed.
func (x *sessionSet) openSession(ctx context.Context, request sessionRequest) (*session, error) {
	for {
		s, err := x.bringBackFor(principalOf(ctx), request.GetSessionId())
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			return nil, apierror.NotFoundf("unknown_session", "session_id", "There is no open session %q.", convert.Short(request.GetSessionId()))
		case s.keepAwake():
			_ = s.written() // what a client is told of is recorded
			return s, nil
		}
		<-s.gone
	}
}

// openCalls returns the keys of the calls that run or are asked about.
func (s *session) openCalls() []string {
	return view(s, func(its *state) []string {
		keys := slices.Collect(maps.Keys(its.ledger.live))
		for _, a := range its.questions.asked {
			if !a.done && a.use != nil && !slices.Contains(keys, a.use.Key) {
				keys = append(keys, a.use.Key)
			}
		}
		return keys
	})
}

// watch makes st one of the session's streams, without a role in it.
func (at *attachments) watch(st *stream) error {
	return view(at.s, func(its *state) error {
		if its.resting {
			st.cursor.Close()
			return errResting
		}
		st.bytes = its.options.GetOutputFormat() == tooldv1.OutputFormat_OUTPUT_FORMAT_BYTES
		its.clients.streams[st] = struct{}{}
		its.used = time.Now()
		if st.answers {
			at.s.asker.askAgain(its)
		}
		if its.stopping {
			st.leave(st.closing, apierror.New(codes.Aborted, "session_closed", "The session was closed."))
		}
		return nil
	})
}
