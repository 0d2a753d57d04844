package daemon

// The Execute stream: who is attached to which session, and what the client says there. One goroutine receives, one
// sends, and the method waits for neither's blocking call: a Send to a client that does not read, and a Recv, are
// released only when the method returns.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/pipeline"
)

// disconnectGrace is how long the calls of a stream that went away go on under ON_DISCONNECT_CANCEL.
const disconnectGrace = 5 * time.Second

type toolServer struct {
	tooldv1.UnimplementedToolServiceServer
	daemon *Daemon
}

type executeStream = interface {
	Context() context.Context
	Recv() (*tooldv1.ExecuteRequest, error)
	Send(*tooldv1.ExecuteResponse) error
}

// Execute serves one stream.
func (t *toolServer) Execute(g tooldv1.ToolService_ExecuteServer) error {
	if err := t.daemon.takesNew(); err != nil {
		return err
	}
	t.daemon.countStream(1)
	defer t.daemon.countStream(-1)
	first, err := g.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	st, role, err := t.open(g, first)
	if err != nil {
		return err
	}
	s := st.session
	received := make(chan error, 1) // so that the receiver can leave when nobody waits for it any more
	go func() { received <- s.receive(g, st, role, first) }()
	sent := make(chan error, 1) // likewise
	go func() { sent <- st.run(g.Context()) }()
	var result error
	select {
	case result = <-sent:
	case <-st.over:
		result = st.why
	case result = <-received:
		if result == nil { // half-closed: the sender finishes what there is
			select {
			case result = <-sent:
			case <-st.over:
				result = st.why
			}
		}
	}
	s.detach(st)
	return result
}

func (d *Daemon) takesNew() error {
	select {
	case <-d.ending:
		return refuse(codes.Unavailable, "shutting_down", "The daemon is shutting down. Connect again: it starts anew.")
	default:
		return nil
	}
}

func (d *Daemon) countStream(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams += n
	d.busy = time.Now()
}

// open attaches the stream, as its first message says or to an anonymous session.
func (t *toolServer) open(g executeStream, first *tooldv1.ExecuteRequest) (*stream, tooldv1.Role, error) {
	request := first.GetAttach()
	if request == nil {
		s, err := t.daemon.newSession("", nil, true)
		if err != nil {
			return nil, 0, err
		}
		st := s.join(0, g.Send)
		return st, tooldv1.Role_ROLE_MAIN, s.attach(st, &tooldv1.Attach{})
	}
	if err := checkAttach(request); err != nil {
		return nil, 0, err
	}
	s, err := t.daemon.find(request.GetSessionId(), request.GetRoots())
	if err != nil {
		return nil, 0, err
	}
	if err := s.setOptions(request.GetOptions(), request.GetEnv()); err != nil {
		return nil, 0, err
	}
	after := s.log.Last()
	if request.AfterSeq != nil {
		if request.GetAfterSeq() > after {
			return nil, 0, refuse(codes.OutOfRange, "after_seq_beyond_end", "after_seq is %d, but the newest record of session %q has the number %d.",
				request.GetAfterSeq(), s.name, after).at("attach.after_seq")
		}
		after = request.GetAfterSeq()
	}
	st := s.join(after, g.Send)
	role := request.GetRole()
	if role == tooldv1.Role_ROLE_UNSPECIFIED {
		role = tooldv1.Role_ROLE_MAIN
	}
	return st, role, s.attach(st, request)
}

// checkAttach refuses what is not served.
func checkAttach(a *tooldv1.Attach) error {
	unserved := func(field string) error {
		return refuse(codes.FailedPrecondition, "not_served", "attach.%s is not served by this daemon yet. Leave it unset.", field).at("attach." + field)
	}
	switch {
	case len(a.GetClientTools()) > 0:
		return unserved("client_tools")
	case a.GetCapabilities().GetBuffers():
		return unserved("capabilities.buffers")
	case a.GetCapabilities().GetFileChanges():
		return unserved("capabilities.file_changes")
	case a.GetRole() < 0 || a.GetRole() > tooldv1.Role_ROLE_COMPANION:
		return refuse(codes.InvalidArgument, "invalid_role", "attach.role has the value %d, which this daemon does not know.", a.GetRole()).at("attach.role")
	}
	return nil
}

// find gives the session of that name, or a new one when there are roots for it or no name.
func (d *Daemon) find(name string, roots []string) (*session, error) {
	if s, ok := d.session(name); ok && name != "" {
		return s, nil
	}
	if name != "" && len(roots) == 0 {
		return nil, refuse(codes.NotFound, "unknown_session", "There is no open session %q. Send roots to make one of this name.", clean(name)).at("session_id")
	}
	return d.newSession(name, roots, false)
}

// attach makes st one of the session's streams and sends what a stream begins with.
func (s *session) attach(st *stream, a *tooldv1.Attach) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		st.cursor.Close()
		return refuse(codes.NotFound, "unknown_session", "The session %q is closed.", s.name)
	}
	st.answers = a.GetCapabilities().GetAnswers()
	st.bytes = s.options.GetOutputFormat() == tooldv1.OutputFormat_OUTPUT_FORMAT_BYTES
	s.streams[st] = struct{}{}
	s.used = time.Now()
	if a.GetClient() != nil {
		s.client = a.GetClient()
	}
	var displaced *stream
	if a.GetRole() != tooldv1.Role_ROLE_COMPANION {
		displaced, s.main, s.canAsk = s.main, st, st.answers
		if s.grace != nil {
			s.grace.Stop()
		}
	}
	hello := s.hello()
	s.mu.Unlock()
	if displaced != nil {
		displaced.end(refuse(codes.Aborted, "displaced", "Another main stream has attached to the session."))
	}
	if err := st.send(&tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_Attached{Attached: hello}}); err != nil {
		return err
	}
	return st.resume(s.openCalls())
}

// hello describes the session to a stream that attaches. mu is held.
func (s *session) hello() *tooldv1.Attached {
	hello := &tooldv1.Attached{
		SessionId: s.name, FirstKeptSeq: s.log.First(), LastSeq: s.log.Last(), Epoch: s.daemon.journal.Epoch(),
		Features: features, Warnings: s.daemon.warnings, Roots: cleanAll(s.meta.Roots),
	}
	for _, t := range s.turns {
		wire := &tooldv1.OpenTurn{Turn: t.number, TurnId: t.id}
		for _, c := range t.open {
			wire.OpenToolUseIds = append(wire.OpenToolUseIds, c.Use.ID)
		}
		hello.OpenTurns = append(hello.OpenTurns, wire)
	}
	return hello
}

// resume goes on with calls that are open: what was asked before the place where the stream begins is asked again, and
// what was started before it is followed.
func (st *stream) resume(calls []string) error {
	for _, key := range calls {
		records, err := st.session.log.Find(key)
		if err != nil {
			return journalRefusal(err)
		}
		for _, record := range records {
			if record.Seq > st.sent {
				break
			}
			switch record.Kind {
			case kindQuestion:
				err = st.sendRecord(record, func(*tooldv1.ExecuteResponse) {})
			case kindStarted:
				st.running[key] = st.followCall(key)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// detach takes st out of the session, and sees to what its going away means.
func (s *session) detach(st *stream) {
	s.mu.Lock()
	delete(s.streams, st)
	s.used = time.Now()
	main := s.main == st
	if main {
		s.main, s.detached = nil, time.Now()
	}
	main = main || s.meta.Anonymous && len(s.streams) == 0 // RunTool's stream is all that an anonymous session has
	s.reviewQuestions()
	idle := len(s.turns) == 0
	ends := main && !s.closed && !s.keeps()
	if main && !s.closed && s.keeps() && s.canAsk {
		s.grace = time.AfterFunc(s.daemon.limits.DetachedQuestion, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reviewQuestions()
		})
	}
	if ends && !idle {
		s.grace = time.AfterFunc(disconnectGrace, s.abandoned)
	}
	anonymous := s.meta.Anonymous
	s.mu.Unlock()
	if ends && idle && anonymous {
		s.close("its stream has ended")
	}
}

// keeps says whether calls go on when the main stream goes away. mu is held.
func (s *session) keeps() bool {
	switch s.options.GetOnDisconnect() {
	case tooldv1.OnDisconnect_ON_DISCONNECT_KEEP:
		return true
	case tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL:
		return false
	}
	return !s.meta.Anonymous
}

// abandoned cancels what a client left behind, unless it has come back.
func (s *session) abandoned() {
	s.mu.Lock()
	back := s.main != nil || s.closed
	anonymous := s.meta.Anonymous
	s.mu.Unlock()
	if back {
		return
	}
	const why = "its client went away"
	if anonymous {
		s.close(why)
		return
	}
	for _, number := range s.openTurns() {
		s.queue.StopTurn(number, &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: why}, nil)
	}
	s.endTurns()
}

// receive hands on what the client says, until a half-close (nil) or the stream breaks.
func (s *session) receive(g executeStream, st *stream, role tooldv1.Role, first *tooldv1.ExecuteRequest) error {
	if first.GetAttach() == nil {
		s.said(st, role, first)
	}
	for {
		message, err := g.Recv()
		if errors.Is(err, io.EOF) {
			s.halfClose(st, role)
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-st.over: // what a displaced stream still had on the wire
			return nil
		default:
		}
		if message.GetAttach() != nil {
			return refuse(codes.InvalidArgument, "attach_not_first", "Attach may only be the first message of a stream.").at("attach")
		}
		s.said(st, role, message)
	}
}

// halfClose ends the open turn, and the stream's power to answer.
func (s *session) halfClose(st *stream, role tooldv1.Role) {
	if role != tooldv1.Role_ROLE_COMPANION {
		s.intake.Lock()
		s.mu.Lock()
		open := s.open
		s.mu.Unlock()
		s.endTurn(open)
		s.intake.Unlock()
	}
	s.mu.Lock()
	st.halfClosed = true
	s.reviewQuestions()
	s.mu.Unlock()
	s.poke()
}

// said does what one message says. Nothing here waits for capacity.
func (s *session) said(st *stream, role tooldv1.Role, message *tooldv1.ExecuteRequest) {
	if role == tooldv1.Role_ROLE_COMPANION && (message.GetToolUse() != nil || message.GetEndTurn() != nil || message.GetDiscardTurn() != nil) {
		s.notice(pipeline.Noticed{Code: "not_main", Message: "A companion stream cannot send tool uses or end turns; this message changed nothing.", CallID: clean(message.GetToolUse().GetId())})
		return
	}
	switch m := message.GetMessage().(type) {
	case *tooldv1.ExecuteRequest_ToolUse:
		key, repeated := s.accept(parseUse(m.ToolUse), s.turnFor)
		if repeated {
			st.repeat(key)
		}
	case *tooldv1.ExecuteRequest_EndTurn:
		s.intake.Lock()
		s.mu.Lock()
		t := s.turnNamed(m.EndTurn.GetTurnId())
		s.mu.Unlock()
		s.endTurn(t)
		s.intake.Unlock()
	case *tooldv1.ExecuteRequest_Answer:
		if refused := s.settleQuestion(m.Answer); refused != nil {
			s.notice(pipeline.Noticed{Code: refused.reason, Message: refused.message})
		}
	case *tooldv1.ExecuteRequest_Cancel:
		s.cancelled(m.Cancel)
	case *tooldv1.ExecuteRequest_Interrupt:
		s.interrupt(m.Interrupt.GetReason())
	case *tooldv1.ExecuteRequest_DiscardTurn:
		s.discard(m.DiscardTurn.GetTurnId())
	case *tooldv1.ExecuteRequest_Ack: // everything is kept for now
	case nil:
		s.notice(pipeline.Noticed{Code: "unknown_message", Message: "A message with nothing in it, or with something that this daemon does not know, changed nothing."})
	default:
		s.notice(pipeline.Noticed{Code: "not_served", Message: fmt.Sprintf("%T is not served by this daemon yet; the message changed nothing.", m)})
	}
}

// turnFor gives the turn that a tool use with that turn_id belongs to; another one than the open turn's ends that
// turn. intake is held.
func (s *session) turnFor(id string) *turn {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if open != nil && (id == "" || open.id == id) {
		return open
	}
	s.endTurn(open)
	t := s.beginTurn(id)
	s.mu.Lock()
	s.open = t
	s.mu.Unlock()
	return t
}

func (s *session) cancelled(m *tooldv1.Cancel) {
	cause := &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "a client cancelled it" + because(m.GetReason())}
	s.mu.Lock()
	key := s.byID[m.GetToolUseId()]
	t := s.turnNamed(m.GetTurnId())
	s.mu.Unlock()
	switch {
	case m.GetToolUseId() != "":
		s.queue.Stop(key, cause)
	case t != nil:
		s.queue.StopTurn(t.number, cause, nil)
	}
}

func (s *session) interrupt(reason string) {
	cause := &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the user interrupted" + because(reason)}
	for _, number := range s.openTurns() {
		s.queue.StopTurn(number, cause, func(t scheduler.Task) bool { return t.(*pipeline.Call).Interruptible() })
	}
}

func (s *session) discard(turnID string) {
	s.intake.Lock()
	defer s.intake.Unlock()
	s.mu.Lock()
	t := s.turnNamed(turnID)
	s.mu.Unlock()
	if t == nil {
		return
	}
	s.queue.StopTurn(t.number, &pipeline.Stop{Outcome: pipeline.Discarded, Reason: "its turn was discarded"}, nil)
	s.endTurn(t)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + clean(reason)
}
