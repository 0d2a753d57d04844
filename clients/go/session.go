package toold

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// resumeTries is how often a lost stream is resumed without a record in between, before the daemon counts as
// unable to serve.
const resumeTries = 3

// breakPatience is how long a stream may live on after a call on its connection has failed, before the daemon counts as
// alive. Ours.
const breakPatience = 5 * time.Second

// An Event is what a stream brings: an event of the session, or the error with which the stream has ended.
type Event struct {
	*tooldv1.ExecuteResponse // nil if Err is set
	// Err is io.EOF after CloseSend when every call has ended. After any other error the Session can be used on:
	// the next Send attaches again. Calls without a result by then are not reported any more.
	Err error
}

// A Session is a session of the daemon that this program has attached to.
//
// While calls are under way or a turn is open, a lost stream is resumed at once: the Session attaches again, to a new
// daemon if dial returns one, and goes on after the last record that it has received; where Attached has another epoch, from the
// first record that is kept. Otherwise it attaches again when
// it is used next, so that an idle client does not restart a daemon that was stopped.
//
// What the daemon may not have when a stream is lost is sent again in its order: each ToolUse until it is accepted, EndTurn,
// DiscardTurn and events of a model's message until the turn has ended, Cancel and results of client tools until the call has
// ended, and in front of all the newest text of each buffer that is open, up to 64 MiB. The daemon runs no call twice. Answers are
// not sent again: the daemon repeats each open question when a stream attaches.
//
// All methods are safe for concurrent use. The receiver of Events must not wait for a call of Send on another goroutine.
type Session struct {
	dial      Dial
	ctx       context.Context // until Close
	cancel    context.CancelFunc
	events    chan Event
	receivers sync.WaitGroup
	sent      ledger

	mu        sync.Mutex                // held while a message is sent, but not while attaching
	attach    *tooldv1.Attach           // the first one
	id        string                    // empty: not attached yet
	epoch     string                    // of the newest stream; only open uses it
	conn      *Conn                     // nil: none
	stream    *stream                   // nil: lost
	attaching chan struct{}             // closed when it is over; nil: nothing is attaching
	waiting   []*tooldv1.ExecuteRequest // sent meanwhile, and not kept by the ledger
	closed    bool                      // CloseSend was called
}

// A stream is one Execute stream.
type stream struct {
	tooldv1.ToolService_ExecuteClient
	end  context.CancelFunc
	over chan struct{} // closed when nothing more is received, and the session was resumed if it is to be
}

// Open attaches to the session that attach names, or to a new one, and returns when the daemon has confirmed it. If the daemon
// becomes unavailable meanwhile, Open attaches once more; where attach names no session, the daemon may have made one before, which is
// left. The Session takes over attach. ctx bounds the Session's life; the caller also calls Close.
func Open(ctx context.Context, dial Dial, attach *tooldv1.Attach) (*Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Session{dial: dial, ctx: ctx, cancel: cancel, events: make(chan Event), attach: attach, attaching: make(chan struct{})}
	err := s.open()
	if status.Code(err) == codes.Unavailable { // once more: the daemon was about to end, or the connection was an old one
		s.hangUp()
		err = s.open()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the stream and the connection, and returns when nothing of the Session runs any more. What becomes of
// calls that are under way is the daemon's decision, by the session's on_disconnect option.
func (s *Session) Close() {
	s.cancel()
	s.hangUp()
	s.receivers.Wait()
}

// ID returns the session's id.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Conn returns the connection that the stream uses; nil: it was lost. It stays the Session's, which closes it.
func (s *Session) Conn() *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// BuffersForgotten reports whether texts of buffers were not sent again since it was asked last, because there were more than 64 MiB:
// the caller sends them again when the session was resumed.
func (s *Session) BuffersForgotten() bool { return s.sent.buffersForgotten() }

// Events returns the channel of events, in their order. The first event of each stream is Attached, so another one means
// that the session was resumed. The channel is never closed.
func (s *Session) Events() <-chan Event { return s.events }

// Send sends a message; not Attach, which is Open's. A ToolUse has an id of its own. While a lost stream is resumed, Send
// returns at once, and the message follows. A nil error does not mean that the daemon has received it. An error
// means that the Session could not attach again, and that the message is forgotten.
func (s *Session) Send(request *tooldv1.ExecuteRequest) error {
	s.mu.Lock()
	kept := s.sent.add(request)
	if s.stream != nil {
		defer s.mu.Unlock()
		if err := s.stream.Send(request); err != nil && !errors.Is(err, io.EOF) { // after io.EOF, receive has the reason
			s.sent.drop(request)
			return err
		}
		return nil
	}
	if !kept {
		s.waiting = append(s.waiting, request)
	}
	if s.attaching != nil { // it is sent when that is over
		s.mu.Unlock()
		return nil
	}
	return s.reopen()
}

// reopen attaches again. The caller holds mu, which reopen gives up.
func (s *Session) reopen() error {
	s.attaching = make(chan struct{})
	s.mu.Unlock()
	err := s.open()
	if err != nil {
		s.fail()
	}
	return err
}

// fail ends an attempt to attach: nothing that was sent is waited for any more.
func (s *Session) fail() {
	s.sent.forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = nil
	close(s.attaching)
	s.attaching = nil
}

// CloseSend notifies the daemon that nothing more is sent. The last event is io.EOF, once every call has ended.
func (s *Session) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.stream == nil {
		return nil
	}
	return s.stream.CloseSend()
}

// Call calls f with a connection on which the session is attached. If the daemon is gone, it calls f once more with a new
// connection. It returns f's error, or the one with which attaching failed.
func (s *Session) Call(ctx context.Context, f func(*Conn) error) error {
	for again := false; ; again = true {
		conn, over, err := s.attached(ctx)
		if err != nil {
			return err
		}
		err = f(conn)
		if again || status.Code(err) != codes.Unavailable {
			return err
		}
		select { // if the daemon is gone, the stream breaks off too
		case <-over:
		case <-time.After(breakPatience):
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// attached returns the connection of the stream, and a channel that is closed when the stream is over.
func (s *Session) attached(ctx context.Context) (*Conn, <-chan struct{}, error) {
	for {
		s.mu.Lock()
		conn, now, attaching := s.conn, s.stream, s.attaching
		switch {
		case now != nil:
			s.mu.Unlock()
			return conn, now.over, nil
		case attaching == nil:
			if err := s.reopen(); err != nil {
				return nil, nil, err
			}
			continue
		}
		s.mu.Unlock()
		select {
		case <-attaching:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// open attaches, for the first time or again, and sends again what the daemon may not have. attaching is set: by the
// only goroutine that is here. If open succeeds it is not set any more.
func (s *Session) open() error {
	conn, err := s.connect()
	if err != nil {
		return err
	}
	now, first, err := s.greet(conn)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil { // Close does not wait for another receiver
		now.end()
		return err
	}
	if s.id == "" {
		s.sent.begin(s.attach, first.GetAttached())
	}
	s.id, s.epoch = first.GetAttached().GetSessionId(), first.GetAttached().GetEpoch()
	s.receivers.Go(func() { s.receive(now, first) })
	for _, request := range slices.Concat(s.sent.unconfirmed(), s.waiting) {
		_ = now.Send(request) // if the stream has ended again, receive has the reason
	}
	if s.closed {
		_ = now.CloseSend()
	}
	close(s.attaching)
	s.stream, s.attaching, s.waiting = now, nil, nil
	return nil
}

// connect returns the connection, or a new one if there is none.
func (s *Session) connect() (*Conn, error) {
	if conn := s.Conn(); conn != nil {
		return conn, nil
	}
	conn, err := s.dial(s.ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		conn.Close()
		return nil, err
	}
	s.conn = conn
	return conn, nil
}

// nextAttach returns how to attach: as the caller wants it for the first time, after the last record received from then on.
func (s *Session) nextAttach() *tooldv1.Attach {
	id := s.ID()
	if id == "" {
		return s.attach
	}
	return &tooldv1.Attach{
		SessionId: id, AfterSeq: proto.Uint64(s.sent.lastSeq()), Env: s.attach.GetEnv(), Client: s.attach.GetClient(),
		Capabilities: s.attach.GetCapabilities(), ClientTools: s.attach.GetClientTools(), Role: s.attach.GetRole(),
	}
}

// greet opens a stream and attaches, from the first record on if records have other numbers than before. It returns the
// daemon's first event.
func (s *Session) greet(conn *Conn) (*stream, *tooldv1.ExecuteResponse, error) {
	ctx, end := context.WithCancel(s.ctx)
	now := &stream{end: end, over: make(chan struct{})}
	first, err := now.attach(ctx, conn, s.nextAttach())
	isOther := status.Code(err) == codes.OutOfRange || err == nil && s.epoch != "" && first.GetAttached().GetEpoch() != s.epoch
	if s.ID() != "" && isOther && s.sent.restart() {
		end()
		return s.greet(conn)
	}
	if err != nil {
		end()
	}
	return now, first, err
}

// attach opens the stream, and returns the daemon's first event.
func (st *stream) attach(ctx context.Context, conn *Conn, attach *tooldv1.Attach) (*tooldv1.ExecuteResponse, error) {
	var err error
	if st.ToolService_ExecuteClient, err = conn.Tools.Execute(ctx); err != nil {
		return nil, err
	}
	request := &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: attach}}
	if err := st.Send(request); err != nil && !errors.Is(err, io.EOF) { // after io.EOF, Recv has the reason
		return nil, err
	}
	return st.Recv()
}

// receive passes on the events of one stream until it ends.
func (s *Session) receive(st *stream, event *tooldv1.ExecuteResponse) {
	defer close(st.over)
	for {
		if s.sent.confirm(event) && !s.deliver(Event{ExecuteResponse: event}) {
			return
		}
		var err error
		if event, err = st.Recv(); err != nil {
			if err = s.resume(err); err != nil {
				s.deliver(Event{Err: err})
			}
			return
		}
	}
}

// deliver passes an event to the receiver of Events. It reports whether the Session is still open.
func (s *Session) deliver(e Event) bool {
	select {
	case s.events <- e:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// resume attaches again after a stream has ended with err, while calls are under way. It returns the error if that fails, or if no
// call is under way.
func (s *Session) resume(err error) error {
	s.mu.Lock()
	s.stream.end()
	s.stream, s.attaching = nil, make(chan struct{})
	s.mu.Unlock()
	for status.Code(err) == codes.Unavailable {
		s.hangUp()
		if !s.sent.resumable() {
			break
		}
		if err = s.open(); err == nil {
			return nil
		}
	}
	s.fail()
	return err
}

// hangUp closes the connection, if there is one, and with it the stream.
func (s *Session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
