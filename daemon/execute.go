// The Execute stream: who attaches to which session, and how a stream ends. What the client says
// there is in receive.go, what is sent to it in stream.go; of neither anything is known here.

package daemon

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// Execute serves one stream.
func (t *toolServer) Execute(g tooldv1.ToolService_ExecuteServer) error {
	if err := t.daemon.life.takesNew(); err != nil {
		return err
	}
	t.daemon.life.countStream(1)
	defer t.daemon.life.countStream(-1)
	first, err := g.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := t.open(g, first)
	if err != nil {
		return err
	}
	if first.GetAttach().GetCapabilities().GetFileChanges() {
		st.session.requests.reviewFileWatch()
	}
	return st.serve(g.Context(), func() error { return st.receive(g, first) })
}

func (l *lifecycle) takesNew() error {
	select {
	case <-l.ending:
		return l.endError()
	default:
		return nil
	}
}

func (l *lifecycle) countStream(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams += n
	l.busy = time.Now()
}

// serve runs the stream until it is over, and takes it out of its session. It waits neither for a
// Send to a client that does not read nor for a Recv: both end when the method has returned.
// receive may be nil.
func (st *stream) serve(ctx context.Context, receive func() error) error {
	defer st.session.attachments.detach(st)
	sent, received := make(chan error, 1), make(chan error, 1) // so that neither goroutine waits at its end
	streaming := &st.session.daemon.life.streaming
	streaming.Go(func() { sent <- st.run(ctx) })
	if receive != nil {
		streaming.Go(func() { received <- receive() })
	}
	for {
		select {
		case err := <-sent:
			return err
		case <-st.over:
			return st.why
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-received:
			if err != nil {
				return err
			}
			received = nil // half-closed: the sender finishes what there is
		}
	}
}

// open attaches the stream, as its first message says or to an anonymous session.
func (t *toolServer) open(g tooldv1.ToolService_ExecuteServer, first *tooldv1.ExecuteRequest) (*stream, error) {
	request, who := first.GetAttach(), principalOf(g.Context())
	if request == nil {
		if err := t.daemon.life.upgrade.pass(g.Context()); err != nil {
			return nil, err
		}
		s, err := t.daemon.sessions.newSession(who, "", nil, nil, anonymous)
		if err != nil {
			return nil, err
		}
		st := newStream(s, 0, eventSender{send: g.SendMsg})
		return st, s.attachments.attach(g.Context(), st, &tooldv1.Attach{})
	}
	if err := t.daemon.checkAttach(request); err != nil {
		return nil, err
	}
	offers, err := clientToolsOf(request.GetClientTools())
	if err != nil {
		return nil, err
	}
	if err := t.daemon.fitsNew(who, request); err != nil {
		return nil, err
	}
	var st *stream
	var after uint64
	err = awake(func() (s *session, err error) {
		s, after, err = t.daemon.find(who, request.GetSessionId(), request.GetRoots(), request.GetOptions())
		return s, err
	}, func(s *session) (err error) {
		st, err = s.attachments.join(g, request, offers, after)
		return err
	})
	return st, err
}

// join attaches the stream of a client that asks for the session by its name, behind the record
// after unless the client names another.
func (at *attachments) join(g tooldv1.ToolService_ExecuteServer, request *tooldv1.Attach, offers []*clientTool, after uint64) (*stream, error) {
	s := at.s
	if request.AfterSeq != nil {
		if err := beyondEnd(s.name, request.GetAfterSeq(), s.log.Last()); err != nil {
			return nil, err.At("attach.after_seq")
		}
		after = request.GetAfterSeq()
	}
	at.joining.Lock()
	defer at.joining.Unlock()
	if err := at.yieldsLocked(request); err != nil {
		return nil, err
	}
	if err := s.requests.fits(offers, request); err != nil { // before its options are taken; others may be quicker
		return nil, err
	}
	if err := s.setOptions(request.GetOptions()); err != nil {
		return nil, err
	}
	st := newStream(s, after, eventSender{send: g.SendMsg})
	st.tools = offers
	return st, at.attach(g.Context(), st, request)
}

// yieldsLocked returns why an Attach that yields to others is refused; nil: no client uses the
// session, or it does not give way. The caller has locked joining.
func (at *attachments) yieldsLocked(a *tooldv1.Attach) error {
	return view(at.s, func(its *state) error {
		if !a.GetYield() || its.clients.main == nil && len(its.ledger.turns) == 0 {
			return nil
		}
		return apierror.New(codes.Aborted, "attached", "Another main stream is attached to the session %q, or a turn of one is open.", at.s.name).At("attach.yield")
	})
}

func beyondEnd(session string, after, last uint64) *apierror.Error {
	if after <= last {
		return nil
	}
	return apierror.New(codes.OutOfRange, "after_seq_beyond_end",
		"after_seq is %d, but the newest record of session %q has the number %d.", after, session, last)
}

// Bounds of what a client says about itself, ours: far above what clients need.
const (
	maxEnv    = 1 << 20 // bytes of the environment; the kernel takes no more than 2 MiB with a command's arguments
	maxRoots  = 64
	maxClient = 256 // bytes of a client's name and version, each
)

// checkAttach refuses what is not served or makes no sense, before anything is made or changed.
func (d *Daemon) checkAttach(a *tooldv1.Attach) error {
	known := d.sessions.has(a.GetSessionId())
	switch {
	case a.GetRole() < 0 || a.GetRole() > tooldv1.Role_ROLE_COMPANION:
		return apierror.Invalidf("invalid_role", "attach.role", "attach.role has the value %d, which this daemon does not know.", a.GetRole())
	case max(len(a.GetClient().GetName()), len(a.GetClient().GetVersion())) > maxClient:
		return apierror.Invalidf("invalid_client", "attach.client", "attach.client has a name or version of more than %d bytes.", maxClient)
	case !known && a.GetAfterSeq() > 0 && (a.GetSessionId() == "" || len(a.GetRoots()) > 0):
		return beyondEnd(convert.Short(a.GetSessionId()), a.GetAfterSeq(), 0).At("attach.after_seq")
	}
	if err := checkEnv(a.GetEnv()); err != nil {
		return err
	}
	if err := d.checkOptions(a.GetOptions(), convert.Each(a.GetClientTools(), (*tooldv1.ClientTool).GetName)); err != nil {
		return err
	}
	if text := a.GetOptions().GetSettingsJson(); text != "" {
		return checkSettings(d.settings.Read(settings.Scope{Session: text}), a.GetOptions())
	}
	return nil
}

func checkEnv(env map[string]string) error {
	size := 0
	for name, value := range env {
		size += len(name) + len(value) + 2
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return apierror.Invalidf("invalid_env", "attach.env", "attach.env holds %q, which cannot be a variable: a name is not empty and has no \"=\", and neither it nor the value has a NUL.", convert.Short(name))
		}
	}
	if size > maxEnv {
		return apierror.Invalidf("invalid_env", "attach.env", "attach.env has %d bytes, and at most %d are taken.", size, maxEnv)
	}
	return nil
}

// find returns the session of who's of that name, or a new one with those options when there are
// roots for it or no name. What is recorded behind the number after is news to the caller, also
// what its options changed.
func (d *Daemon) find(who access.Principal, name string, roots []string, options *tooldv1.Options) (s *session, after uint64, err error) {
	if s, err := d.sessions.bringBackFor(who, name); err != nil {
		return nil, 0, err
	} else if s != nil {
		return s, s.log.Last(), nil
	}
	if name != "" && len(roots) == 0 {
		return nil, 0, apierror.NotFoundf("unknown_session", "session_id", "There is no open session %q. Send roots to make one of this name.", convert.Short(name))
	}
	if s, err = d.sessions.newSession(who, name, roots, options, named); err != nil {
		return nil, 0, err
	}
	return s, s.born, nil
}

// attachments are the streams of a session, from the first look at it to their going away.
type attachments struct {
	s       *session
	joining sync.Mutex // held while a stream is let in, until its place in the session is known; locked before intake's
}

// attach makes st one of the session's streams.
func (at *attachments) attach(ctx context.Context, st *stream, a *tooldv1.Attach) (err error) {
	standing := at.s.judge.policy()
	if !at.s.meta.Anonymous {
		at.s.tools.startServers()
		defer at.s.asker.askApproval()
	}
	defer at.s.ports.clientCame()
	defer func() {
		at.s.update(func(its *state) { its.toolset.offered = its.toolset.offered || err == nil })
		at.s.tools.announceTools()
	}()
	at.s.intake.alone(func(in inlet) {
		_ = at.s.written() // what the stream is told of is recorded
		err = view(at.s, func(its *state) error { return at.take(ctx, in, its, st, a, standing) })
	})
	if err == nil && !st.companion {
		at.s.intake.pause.clientBack()
	}
	at.s.daemon.reclaimer.attached()
	return err
}

// take makes st one of the streams, unless the session refuses it.
func (at *attachments) take(ctx context.Context, in inlet, its *state, st *stream, a *tooldv1.Attach, standing *policySnapshot) error {
	can := a.GetCapabilities()
	st.answers, st.fileChanges, st.buffers = can.GetAnswers(), can.GetFileChanges(), can.GetBuffers()
	st.native, st.plain = can.GetNativeResults(), can.GetNoStructured()
	st.bytes = its.options.GetOutputFormat() == tooldv1.OutputFormat_OUTPUT_FORMAT_BYTES
	st.companion = a.GetRole() == tooldv1.Role_ROLE_COMPANION
	st.arrival, st.pid, st.trace = admissionOf(ctx).arrival, access.PIDOf(ctx), traceOf(ctx)
	if err := at.refuse(its, st, a); err != nil {
		st.cursor.Close()
		return err
	}
	its.clients.streams[st] = struct{}{}
	its.used = time.Now()
	at.recordClient(ctx, its, a.GetClient())
	if !st.companion {
		its.lead(in, st, a)
		its.clients.owner = access.OwnerOf(ctx)
	}
	at.s.requests.register(its, st) // when the stream that it displaces can be reached no more
	if st.answers {
		at.s.asker.askAgain(its)
	}
	missed := at.missed(st.sent)
	if !st.companion && a.AfterSeq == nil {
		missed = append(missed, its.unseen()...)
	}
	st.hello = at.hello(its, append(slices.Clip(standing.warnings), missed...))
	return nil
}

// refuse returns why the session does not take a stream; nil: it does, and what the stream brings
// is reserved.
func (at *attachments) refuse(its *state, st *stream, a *tooldv1.Attach) error {
	switch {
	case its.stopping:
		return at.closed(its)
	case !st.companion && its.clients.main != nil && its.clients.main.arrival > st.arrival:
		return errDisplaced
	}
	return at.s.requests.reserve(its, st, a)
}

var errDisplaced = apierror.New(codes.Aborted, "displaced", "Another main stream has attached to the session.")

// closed is why a session that is stopping takes nothing more.
func (at *attachments) closed(its *state) error {
	if err := at.s.daemon.life.takesNew(); err != nil {
		return err
	}
	if its.resting {
		return errResting
	}
	return apierror.NotFoundf("unknown_session", "", "The session %q is closed.", at.s.name)
}

// lead makes st the main stream, and ends the one that was.
func (its *state) lead(_ inlet, st *stream, a *tooldv1.Attach) {
	if its.clients.main != nil {
		its.clients.main.end(errDisplaced)
	}
	its.clients.main, its.questions.canAsk, its.clients.deadline = st, st.answers, time.Time{}
	its.shell.vars = its.shell.vars.withClient(its.shell.envWith(a))
	if a.GetClient() != nil {
		its.clients.info = a.GetClient()
	}
}

// hello describes the session to a stream that attaches.
func (at *attachments) hello(its *state, warnings []settings.Warning) *tooldv1.Attached {
	hello := &tooldv1.Attached{
		SessionId: at.s.name, FirstKeptSeq: at.s.log.First(), LastSeq: at.s.log.Last(), Epoch: at.s.daemon.journal.Epoch(),
		Features: at.s.daemon.features(), Roots: convert.Each(at.s.meta.Roots, convert.Clean),
	}
	hello.Warnings, hello.WarningDetails = convert.Warnings(warnings)
	for _, t := range its.ledger.openTurns() {
		hello.OpenTurns = append(hello.OpenTurns, &tooldv1.OpenTurn{Turn: t.number, TurnId: t.id, OpenToolUseIds: t.openIDs(), ModelEvents: t.modelEvents})
	}
	return hello
}

// detach takes st out of the session, and sees to what its going away means.
func (at *attachments) detach(st *stream) {
	var leading, watched, idle bool
	at.s.update(func(its *state) {
		delete(its.clients.streams, st)
		its.used = time.Now()
		leading = its.clients.main == st
		if leading {
			its.clients.main, its.clients.detached = nil, time.Now()
		}
		at.s.asker.reviewQuestions(its)
		watched = its.clients.watching != nil
		idle = len(its.ledger.turns) == 0
		switch {
		case !leading || its.stopping || idle:
		case !at.keeps(its):
			at.checkAt(its, time.Now().Add(at.s.daemon.grace))
		case its.questions.canAsk:
			at.checkAt(its, time.Now().Add(at.s.daemon.limits.DetachedQuestion))
		}
	})
	if watched {
		at.s.requests.reviewFileWatch()
	}
	at.s.requests.awaitReconnect(st)
	signal(at.s.daemon.life.wake) // from now on it may be time for the session to rest
	if leading && idle && at.s.meta.Anonymous {
		_ = at.s.close("its stream has ended") // it never rests
	}
}

// keeps reports whether calls go on when the main stream goes away.
func (at *attachments) keeps(its *state) bool {
	switch its.options.GetOnDisconnect() {
	case tooldv1.OnDisconnect_ON_DISCONNECT_KEEP:
		return true
	case tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL:
		return false
	}
	return !at.s.meta.Anonymous
}

// recordClient records who uses the session from now on, unless that is who used it before. client
// is what the client says of itself; nil: nothing.
func (at *attachments) recordClient(ctx context.Context, its *state, client *tooldv1.ClientInfo) {
	now := pipeline.Peer{Principal: string(principalOf(ctx)), UID: access.User(ctx), Client: client.GetName(), Version: client.GetVersion()}
	if at.s.daemon.Node { // it knows the node only
		now.Principal, now.UID = "", 0
	}
	if before := its.clients.peer; before == nil || *before != now {
		its.clients.peer = &now
		its.ledger.append(entry(nil, pipeline.Changed{Peer: &now}))
	}
}
