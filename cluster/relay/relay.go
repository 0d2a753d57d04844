// Package relay passes the messages of an RPC on as they are, between a client
// and the server that is to answer it, without decoding them.
//
// A gateway relays to a node, and a node to the daemon of a workspace. Nothing of
// a request leaves before the other side has accepted it ([Accept]), so a request
// that was not accepted may be sent elsewhere without being run twice.
//
// It buffers nothing but a few messages of a stream that [Hold] holds back: a side that does not read stops the other one by gRPC's
// flow control. It does not know what is in a message.
package relay

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// A Frame is a message as it is on the wire. It is received into an empty Frame,
// and given away by sending it: neither SendMsg nor Free may follow.
type Frame struct{ data mem.BufferSlice }

// Encoded returns a frame of bytes that nothing changes any more.
func Encoded(data []byte) *Frame { return &Frame{mem.BufferSlice{mem.SliceBuffer(data)}} }

// Bytes returns a copy of the message.
func (f *Frame) Bytes() []byte { return f.data.Materialize() }

// Free releases a frame that is not sent.
func (f *Frame) Free() {
	f.data.Free()
	f.data = nil
}

// Codec is that of protocol buffers, which also takes a *Frame.
type Codec struct{ proto encoding.CodecV2 }

// NewCodec returns the codec for the servers and connections that relay.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(grpcproto.Name)} }

// Name returns that of protocol buffers.
func (Codec) Name() string { return grpcproto.Name }

// Marshal encodes a message. A frame's buffers become gRPC's.
func (c Codec) Marshal(message any) (mem.BufferSlice, error) {
	if frame, is := message.(*Frame); is {
		data := frame.data
		frame.data = nil
		return data, nil
	}
	return c.proto.Marshal(message)
}

// Unmarshal decodes a message. A frame keeps the buffers, without copying them.
func (c Codec) Unmarshal(data mem.BufferSlice, message any) error {
	if frame, is := message.(*Frame); is {
		data.Ref()
		frame.data = data
		return nil
	}
	return c.proto.Unmarshal(data, message)
}

// Descriptor is that of a stream that is relayed. It serves for unary methods too.
var Descriptor = &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// acceptedKey is the header by which a server accepts an RPC before it gets
// anything of the request. Its value is the server's name.
const acceptedKey = "toold-accepted"

// Accept promises the client that the server named will serve the RPC. A server
// that relays calls it once, before it passes anything on.
func Accept(stream grpc.ServerStream, name string) error {
	return stream.SendHeader(metadata.Pairs(acceptedKey, name))
}

// Accepted waits until the server has accepted the RPC. Otherwise it returns the
// server's status or why it cannot be reached; then nothing of the request has
// been sent, and the stream has ended.
func Accepted(stream grpc.ClientStream) error {
	header, err := stream.Header()
	if err != nil {
		return err
	}
	if len(header.Get(acceptedKey)) > 0 {
		return nil
	}
	err = stream.RecvMsg(&Frame{})
	if err == nil || errors.Is(err, io.EOF) {
		return ErrNotAccepted
	}
	return err
}

// ErrNotAccepted is returned by Accepted for a server that answers without having
// accepted, so one that does not relay.
var ErrNotAccepted = errors.New("the server answers without having accepted the RPC")

// Relay passes messages both ways until the server's side has ended, and returns
// its status as an error, nil if it is OK. first are messages of the client that
// were received already; they are the server's first. seen, if not nil, gets each
// message of the server before it is passed on, and may return another.
//
// cancel ends the server's stream, which was opened with a context of it; Relay
// calls it. The goroutine that reads from
// the client is added to reading; gRPC ends it only after the handler of the
// client's stream has returned.
func Relay(client grpc.ServerStream, server grpc.ClientStream, cancel context.CancelCauseFunc, reading *sync.WaitGroup, seen func(*Frame) (*Frame, error), first ...*Frame) error {
	defer cancel(nil)
	reading.Go(func() { forward(client, server, cancel, first) })
	for {
		frame := &Frame{}
		if err := server.RecvMsg(frame); err != nil {
			client.SetTrailer(server.Trailer())
			return outcome(err, context.Cause(server.Context()))
		}
		if seen != nil {
			var err error
			if frame, err = seen(frame); err != nil {
				return err
			}
		}
		if err := client.SendMsg(frame); err != nil {
			return err
		}
	}
}

// A clientError is why nothing more can be received from the client.
type clientError struct{ error }

func (e *clientError) Unwrap() error { return e.error }

// outcome returns how a relayed RPC has ended. err is from the server's side.
func outcome(err, cause error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	if client, is := errors.AsType[*clientError](cause); is {
		return client.error // for instance that a message was too large
	}
	return err
}

// forward passes on what the client sends until it half-closes or is gone.
func forward(client grpc.ServerStream, server grpc.ClientStream, cancel context.CancelCauseFunc, first []*Frame) {
	for _, frame := range first {
		if server.SendMsg(frame) != nil {
			return // Relay gets the reason from RecvMsg
		}
	}
	for {
		frame := &Frame{}
		switch err := client.RecvMsg(frame); {
		case errors.Is(err, io.EOF):
			_ = server.CloseSend()
			return
		case err != nil: // the client is gone, or has sent too much
			cancel(&clientError{err})
			return
		}
		if server.SendMsg(frame) != nil {
			return
		}
	}
}
