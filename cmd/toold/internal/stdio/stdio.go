// Package stdio serves the daemon's contract as lines of JSON-RPC on standard input and output, for editors and languages without
// gRPC. It is made of the contract's descriptors: it does not know what a method does, but for the Execute stream, which it resumes
// when it breaks.
package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/lines"
	"github.com/toold/toold/daemon/contract"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Methods of notifications, of both sides.
const (
	methodMessage = "$/message" // of the daemon: a message of a stream
	methodState   = "$/state"   // of the bridge: what has become of an Execute stream
	methodError   = "$/error"   // of the bridge: what was wrong with a notification
	methodSend    = "$/send"    // of the client: a message on an Execute stream
	methodEnd     = "$/end"     // of the client: no more is sent there
	methodCancel  = "$/cancel"  // of the client: a request is given up
)

// maxOpen is how many requests may be under way. Ours.
const maxOpen = 1024

// A server serves one client.
type server struct {
	dial toold.Dial
	here []string // the root of a session for which none is named: the directory of the bridge; none beside a daemon elsewhere
	out  *writer
	work sync.WaitGroup // requests that are under way

	connecting sync.Mutex
	conn       *toold.Conn // for all but Execute; nil: none

	mu   sync.Mutex
	open map[string]*exchange // by id
}

// An exchange is a request that is under way.
type exchange struct {
	id      json.RawMessage
	cancel  context.CancelFunc
	execute *execution // nil: another method
}

// Serve serves the client until it hangs up and everything has ended, or a signal comes, or nothing can be written any more.
func Serve(ctx context.Context, console *cli.Console, daemon *connect.Finder) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	pipes := make(chan os.Signal, 1)      // never received from: a client that went away is an error of the write
	signal.Notify(pipes, syscall.SIGPIPE) // to the end of the process: something may still be written then
	s := &server{dial: daemon.Redial(nil), out: &writer{out: console.Stdout, broken: cancel}, open: map[string]*exchange{}}
	if dir, err := os.Getwd(); err == nil && daemon.Remote.Address == "" {
		s.here = []string{dir}
	}
	go awaitHangUp(console.Stdout, cancel)
	read := make(chan error, 1)
	go func() { read <- s.read(ctx, console.Stdin) }() // a Read that waits goes on waiting: the process ends first
	select {
	case err := <-read:
		ended := make(chan struct{})
		go func() { s.work.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// awaitHangUp calls gone when what is written to file has no reader any more.
func awaitHangUp(file *os.File, gone func()) {
	for {
		fds := []unix.PollFd{{Fd: int32(file.Fd())}}
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			if err == nil {
				gone()
			}
			return
		}
	}
}

// read takes lines until there are no more. Then streams are half-closed.
func (s *server) read(ctx context.Context, in io.Reader) error {
	reader := lines.NewReader(in)
	for ctx.Err() == nil {
		line, err := reader.Next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			s.out.refuse(nil, &failure{Code: codeRequest, Message: err.Error()})
			continue
		case len(bytes.TrimSpace(line)) > 0:
			s.take(ctx, line)
		}
		if err != nil {
			s.each(func(x *exchange) { x.execute.end() })
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("standard input: %w", err)
		}
	}
	return nil
}

// each calls do with each Execute stream.
func (s *server) each(do func(*exchange)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.open {
		if x.execute != nil {
			do(x)
		}
	}
}

// take does what one line asks for.
func (s *server) take(ctx context.Context, line []byte) {
	r, failed := parse(line)
	switch {
	case failed != nil:
		s.out.refuse(r.ID, failed)
	case r.ID == nil:
		if failed := s.notified(r); failed != nil {
			s.out.notify(methodError, struct {
				Method string   `json:"method"`
				Error  *failure `json:"error"`
			}{r.Method, failed})
		}
	default:
		if failed := s.call(ctx, r); failed != nil {
			s.out.refuse(r.ID, failed)
		}
	}
}

// notified does what a notification asks for. One that is not known is ignored, as JSON-RPC wants.
func (s *server) notified(r request) *failure {
	if r.Method != methodSend && r.Method != methodEnd && r.Method != methodCancel {
		return nil
	}
	var about struct {
		ID      json.RawMessage `json:"id"`
		Message json.RawMessage `json:"message"`
	}
	if err := json.Unmarshal(r.Params, &about); err != nil {
		return &failure{Code: codeParams, Message: "the parameters are an object with the id of a request"}
	}
	s.mu.Lock()
	x := s.open[string(about.ID)]
	s.mu.Unlock()
	switch {
	case x == nil && r.Method == methodCancel: // it has ended meanwhile
	case x == nil:
		return &failure{Code: codeParams, Message: fmt.Sprintf("no request with the id %s is under way", about.ID)}
	case r.Method == methodCancel:
		x.cancel()
	case x.execute == nil:
		return &failure{Code: codeParams, Message: fmt.Sprintf("the request %s takes no more messages: only ToolService/Execute does", about.ID)}
	case r.Method == methodEnd:
		x.execute.end()
	default:
		return x.execute.say(about.Message)
	}
	return nil
}

// call begins a request. Its failure is the request's answer; if it is nil the answer follows.
func (s *server) call(ctx context.Context, r request) *failure {
	method := contract.Method(r.Method)
	if method == nil {
		return &failure{Code: codeMethod, Message: fmt.Sprintf("there is no method %q: it is a service and a method, such as \"ToolService/RunTool\"", r.Method)}
	}
	in := contract.New(method.Input())
	if failed := decode(r.Params, in); failed != nil {
		return failed
	}
	s.place(in)
	ctx, cancel := context.WithCancel(ctx)
	x := &exchange{id: r.ID, cancel: cancel}
	serve := s.unary
	switch {
	case method.IsStreamingClient():
		x.execute = newExecution(in.(*tooldv1.ExecuteRequest)) // the only one of the contract
		serve = s.execute
	case method.IsStreamingServer():
		serve = s.stream
	}
	if failed := s.enter(x); failed != nil {
		cancel()
		return failed
	}
	s.work.Go(func() {
		defer cancel()
		result, err := serve(ctx, x, method, in)
		s.leave(x)
		if err != nil {
			s.out.refuse(x.id, failureOf(err))
			return
		}
		s.out.result(x.id, result)
	})
	return nil
}

// place has a new session begin in the directory of the bridge if the client names no other. The daemon would let it begin in its own,
// which is the one in which it was started.
func (s *server) place(in protoreflect.ProtoMessage) {
	switch m := in.(type) {
	case *tooldv1.RunToolRequest:
		if m.GetSessionId() == "" && len(m.GetRoots()) == 0 {
			m.Roots = s.here
		}
	case *tooldv1.ExecuteRequest:
		if a := m.GetAttach(); a != nil && a.GetSessionId() == "" && len(a.GetRoots()) == 0 {
			a.Roots = s.here
		}
	}
}

func (s *server) enter(x *exchange) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[string(x.id)] != nil:
		return &failure{Code: codeRequest, Message: fmt.Sprintf("a request with the id %s is under way", x.id)}
	case len(s.open) >= maxOpen:
		return &failure{Code: int(codes.ResourceExhausted), Message: fmt.Sprintf("%d requests are under way, which is the limit", maxOpen)}
	}
	s.open[string(x.id)] = x
	return nil
}

func (s *server) leave(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, string(x.id))
}

// unary calls a method with one answer.
func (s *server) unary(ctx context.Context, _ *exchange, method protoreflect.MethodDescriptor, in protoreflect.ProtoMessage) (json.RawMessage, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	out := contract.New(method.Output())
	if err := conn.Invoke(ctx, contract.Path(method), in, out); err != nil {
		return nil, s.lost(conn, err)
	}
	return contract.Encode(out), nil
}

// stream calls a method that answers with a stream, which it passes on.
func (s *server) stream(ctx context.Context, x *exchange, method protoreflect.MethodDescriptor, in protoreflect.ProtoMessage) (json.RawMessage, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, contract.Path(method))
	if err == nil {
		err = stream.SendMsg(in)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for err == nil {
		out := contract.New(method.Output())
		if err = stream.RecvMsg(out); err == nil {
			s.pass(x, contract.Encode(out))
		}
	}
	if errors.Is(err, io.EOF) {
		return json.RawMessage("{}"), nil
	}
	return nil, s.lost(conn, err)
}

// pass passes a message of a stream on.
func (s *server) pass(x *exchange, message json.RawMessage) {
	s.out.notify(methodMessage, struct {
		ID      json.RawMessage `json:"id"`
		Message json.RawMessage `json:"message"`
	}{x.id, message})
}

// connection returns the connection for all but Execute streams; it starts the daemon if none answers.
func (s *server) connection(ctx context.Context) (*toold.Conn, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if s.conn == nil {
		conn, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		s.conn = conn
	}
	return s.conn, nil
}

// lost returns err; if the daemon has gone, the next request connects again.
func (s *server) lost(conn *toold.Conn, err error) error {
	if status.Code(err) == codes.Unavailable {
		s.connecting.Lock()
		defer s.connecting.Unlock()
		if s.conn == conn {
			conn.Close()
			s.conn = nil
		}
	}
	return err
}
