// Methods of the contract over HTTP. The code that grpc-go generates for a method decodes through a function and sends through an
// interface, so the same implementations are called as by gRPC.

package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/toold/toold/daemon/contract"
)

// How long a request's body may take to come, a write to go, and a stream to be silent. Ours.
const (
	bodyTime  = 30 * time.Second
	writeTime = 30 * time.Second
	beatEvery = 25 * time.Second
)

// call serves one request of a method.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("service") + "/" + r.PathValue("method")
	s.calls.Add(1)
	defer s.calls.Done()
	grant, err := s.identify(r)
	if err == nil {
		err = s.checkCall(name, r)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a connection has one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.MessageBytes)))
	if err != nil {
		fail(w, status.Errorf(codes.ResourceExhausted, "The request cannot be read, or has more than %d bytes.", s.MessageBytes))
		return
	}
	_ = control.SetReadDeadline(time.Time{}) // or it would end the stream
	decode := func(into any) error {
		if err := contract.Decode(body, into.(proto.Message)); err != nil {
			return status.Errorf(codes.InvalidArgument, "The body is not a request of %s: %v.", name, err)
		}
		return nil
	}
	ctx, method := s.Admit(r.Context(), grant), contract.Method(name)
	if method.IsStreamingServer() {
		s.stream(ctx, w, method, decode)
		return
	}
	response, err := s.unary(ctx, method, decode)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, json.RawMessage(contract.Encode(response.(proto.Message))))
}

// checkCall refuses a method that a page cannot call.
func (s *Server) checkCall(name string, r *http.Request) error {
	method := contract.Method(name)
	select {
	case <-s.closing:
		return status.Error(codes.Unavailable, "The daemon is shutting down.")
	default:
	}
	switch {
	case method == nil:
		return status.Errorf(codes.NotFound, "There is no method %q.", name)
	case method.IsStreamingClient() || slices.Contains(s.Refused, name):
		return status.Errorf(codes.PermissionDenied, "%s is not for the dashboard: it watches, answers, stops and undoes.", name)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return status.Error(codes.InvalidArgument, "The body is not declared as application/json.")
	}
	return nil
}

// unary calls a method with one answer.
func (s *Server) unary(ctx context.Context, method protoreflect.MethodDescriptor, decode func(any) error) (response any, err error) {
	defer s.rescue(&err)
	service := s.service(method)
	at := slices.IndexFunc(service.Desc.Methods, func(m grpc.MethodDesc) bool { return m.MethodName == string(method.Name()) })
	return service.Desc.Methods[at].Handler(service.Impl, ctx, decode, nil)
}

// stream calls a method that answers with a stream. Each message is a line {"message":{...}}, and the last line is {"end":{}} or
// {"error":{...}}.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, method protoreflect.MethodDescriptor, decode func(any) error) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := &stream{server: s, ctx: ctx, method: method, decode: decode, out: w, control: http.NewResponseController(w)}
	alive := make(chan struct{})
	s.calls.Go(func() { out.beat(alive) })
	err := func() (err error) {
		defer s.rescue(&err)
		service := s.service(method)
		at := slices.IndexFunc(service.Desc.Streams, func(m grpc.StreamDesc) bool { return m.StreamName == string(method.Name()) })
		return service.Desc.Streams[at].Handler(service.Impl, out)
	}()
	close(alive)
	last := any(map[string]any{"end": struct{}{}})
	if err != nil {
		last = map[string]any{"error": contract.FailureOf(err)}
	}
	_ = out.line(last) // the client has gone
	out.end()
}

func (s *Server) rescue(err *error) {
	if broken := recover(); broken != nil {
		*err = s.Rescue(broken)
	}
}

// service returns what serves a method of the contract.
func (s *Server) service(method protoreflect.MethodDescriptor) Service {
	at := slices.IndexFunc(s.Services, func(x Service) bool { return x.Desc.ServiceName == string(method.Parent().FullName()) })
	return s.Services[at]
}

// A stream is the grpc.ServerStream of one request.
type stream struct {
	server  *Server
	ctx     context.Context
	method  protoreflect.MethodDescriptor
	decode  func(any) error
	read    bool // the request; the method's goroutine alone
	control *http.ResponseController

	mu    sync.Mutex // held for one line
	out   io.Writer
	ended bool // the request is answered, and out is not ours any more
}

// Context returns the request's context.
func (s *stream) Context() context.Context { return s.ctx }

// SetHeader does nothing: metadata of gRPC has no place here.
func (s *stream) SetHeader(metadata.MD) error { return nil }

// SendHeader sends the status and the headers of HTTP.
func (s *stream) SendHeader(metadata.MD) error { return s.control.Flush() }

// SetTrailer does nothing, as SetHeader.
func (s *stream) SetTrailer(metadata.MD) {}

// RecvMsg decodes the request once, and then returns io.EOF.
func (s *stream) RecvMsg(into any) error {
	if s.read {
		return io.EOF
	}
	s.read = true
	return s.decode(into)
}

// SendMsg sends a message as a line. It is safe for concurrent use.
func (s *stream) SendMsg(m any) error {
	message, is := m.(proto.Message)
	if !is { // one that is on the wire already
		data, err := s.server.Codec.Marshal(m)
		if err != nil {
			return err
		}
		message = contract.New(s.method.Output())
		if err := proto.Unmarshal(data.Materialize(), message); err != nil {
			return err
		}
	}
	return s.line(map[string]json.RawMessage{"message": contract.Encode(message)})
}

// line writes a value as a line, and sees that it is sent.
func (s *stream) line(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.write(append(text, '\n'))
}

// write fails for a client that takes nothing for writeTime, and once the method has returned: what it has started may still send then.
func (s *stream) write(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return net.ErrClosed
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // a connection has one
	_, err := s.out.Write(text)
	return errors.Join(err, s.control.Flush())
}

// beat sends an empty line now and then until alive is closed, so that a client that is gone without a word is noticed.
func (s *stream) beat(alive <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-alive:
			return
		case <-tick.C:
			_ = s.write([]byte("\n")) // the method finds out by itself
		}
	}
}

// end has out left alone from now on: it is the server's again.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	_ = s.control.SetWriteDeadline(time.Time{})
}
