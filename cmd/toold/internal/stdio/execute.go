package stdio

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/daemon/contract"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// States of an Execute stream.
const (
	stateAttached = "attached"
	stateResumed  = "resumed"        // the stream has broken, and goes on behind the last record that was written
	stateBuffers  = "resend_buffers" // it was resumed, and the client is to send the text of unsaved buffers again
)

// queued is how many messages of a client, and bytes of them, may wait for a daemon that is being started. Ours.
const (
	queued      = 1024
	queuedBytes = 64 << 20
)

// An execution is an Execute stream.
type execution struct {
	first    *tooldv1.ExecuteRequest
	messages chan waiting
	bytes    atomic.Int64 // of messages
	ended    sync.Once
	over     chan struct{} // closed when the client sends no more
}

// A waiting is a message of a client, with its size.
type waiting struct {
	*tooldv1.ExecuteRequest
	bytes int64
}

func newExecution(first *tooldv1.ExecuteRequest) *execution {
	return &execution{first: first, messages: make(chan waiting, queued), over: make(chan struct{})}
}

// say takes a message of the client.
func (e *execution) say(text json.RawMessage) *failure {
	message := &tooldv1.ExecuteRequest{}
	if failed := decode(text, message); failed != nil {
		return failed
	}
	if message.GetAttach() != nil {
		return &failure{Code: codeParams, Message: "attach may only be the first message, which is the request's parameters"}
	}
	select {
	case <-e.over:
		return &failure{Code: codeParams, Message: "the client has said that it sends no more"}
	default:
	}
	size := int64(proto.Size(message))
	if e.bytes.Add(size) <= queuedBytes {
		select {
		case e.messages <- waiting{message, size}:
			return nil
		default:
		}
	}
	e.bytes.Add(-size)
	return &failure{Code: int(codes.ResourceExhausted), Message: "too many messages wait for the daemon; this one is dropped"}
}

// end takes note that the client sends no more.
func (e *execution) end() { e.ended.Do(func() { close(e.over) }) }

// execute passes a client's messages to the daemon and events to the client, until the stream has ended.
func (s *server) execute(ctx context.Context, x *exchange, _ protoreflect.MethodDescriptor, _ protoreflect.ProtoMessage) (json.RawMessage, error) {
	e := x.execute
	attach := e.first.GetAttach()
	if attach == nil {
		attach = &tooldv1.Attach{Roots: s.here}
	}
	session, err := toold.Open(ctx, s.dial, attach)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	var saying sync.WaitGroup
	saying.Go(func() {
		if err := e.send(ctx, session); err != nil {
			failed <- err
		}
	})
	defer saying.Wait()
	defer cancel()
	for begun := false; ; {
		select {
		case event := <-session.Events():
			switch {
			case errors.Is(event.Err, io.EOF):
				return json.RawMessage("{}"), nil
			case event.Err != nil:
				return nil, event.Err
			}
			s.pass(x, contract.Encode(event.ExecuteResponse))
			if hello := event.GetAttached(); hello != nil {
				s.tell(x, hello, session, begun)
				begun = true
			}
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tell notifies the client that the stream is attached, for the first time or again.
func (s *server) tell(x *exchange, hello *tooldv1.Attached, session *toold.Session, again bool) {
	say := func(state string) {
		s.out.notify(methodState, struct {
			ID    json.RawMessage `json:"id"`
			State string          `json:"state"`
			Epoch string          `json:"epoch"`
		}{x.id, state, hello.GetEpoch()})
	}
	if !again {
		say(stateAttached)
		return
	}
	say(stateResumed)
	if session.BuffersForgotten() {
		say(stateBuffers)
	}
}

// send passes on what the client says, to the last message in front of the end.
func (e *execution) send(ctx context.Context, session *toold.Session) error {
	if err := pass(session, e.first); err != nil {
		return err
	}
	for over := e.over; ; {
		select {
		case message := <-e.messages:
			e.bytes.Add(-message.bytes)
			if err := pass(session, message.ExecuteRequest); err != nil {
				return err
			}
			continue
		default:
		}
		if over == nil {
			return session.CloseSend()
		}
		select {
		case message := <-e.messages:
			e.bytes.Add(-message.bytes)
			if err := pass(session, message.ExecuteRequest); err != nil {
				return err
			}
		case <-over:
			over = nil // what was said before it is still in messages
		case <-ctx.Done():
			return nil
		}
	}
}

// pass sends a message, but for the one with which the stream was opened.
func pass(session *toold.Session, message *tooldv1.ExecuteRequest) error {
	if message.GetAttach() != nil || message.GetMessage() == nil {
		return nil
	}
	if use := message.GetToolUse(); use != nil && use.GetId() == "" && use.GetNativeJson() == "" {
		use.Id = "stdio-" + rand.Text() // so that the call is the same one when it is sent again
	}
	return session.Send(message)
}
