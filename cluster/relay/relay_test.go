package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const method = "/test.Echo/Echo"

// listen serves with one handler for all methods.
func listen(t *testing.T, handler grpc.StreamHandler, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(options, grpc.ForceServerCodecV2(NewCodec()), grpc.UnknownServiceHandler(handler))...)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(NewCodec())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Stop(); served.Wait() })
	return conn
}

// through returns a connection to a server that relays to the handler.
func through(t *testing.T, handler grpc.StreamHandler, seen func(*Frame) (*Frame, error)) *grpc.ClientConn {
	t.Helper()
	behind := listen(t, handler)
	var reading sync.WaitGroup
	t.Cleanup(reading.Wait)
	return listen(t, func(_ any, client grpc.ServerStream) error {
		ctx, cancel := context.WithCancelCause(client.Context())
		server, err := behind.NewStream(ctx, Descriptor, method)
		if err == nil {
			err = Accepted(server)
		}
		if err != nil {
			cancel(nil)
			return err
		}
		return Relay(client, server, cancel, &reading, seen)
	}, grpc.MaxRecvMsgSize(1<<20))
}

// echo sends back what it gets, and ends with an error after "fail".
func echo(_ any, stream grpc.ServerStream) error {
	if err := Accept(stream, "echo"); err != nil {
		return err
	}
	for {
		text := &wrapperspb.StringValue{}
		if err := stream.RecvMsg(text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if text.GetValue() == "fail" {
			full, err := status.New(codes.DataLoss, "as asked").WithDetails(wrapperspb.Int32(7))
			return errors.Join(err, full.Err())
		}
		if err := stream.SendMsg(text); err != nil {
			return err
		}
	}
}

func open(t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(t.Context(), Descriptor, method)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func send(t *testing.T, stream grpc.ClientStream, text string) {
	t.Helper()
	if err := stream.SendMsg(wrapperspb.String(text)); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestRelay(t *testing.T) {
	conn := through(t, echo, nil)
	stream := open(t, conn)
	for n := range 200 {
		text := strings.Repeat(fmt.Sprint(n, " "), 1+n*20)
		send(t, stream, text)
		got := &wrapperspb.StringValue{}
		if err := stream.RecvMsg(got); err != nil || got.GetValue() != text {
			t.Fatalf("%d: %d bytes, %v", n, len(got.GetValue()), err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&wrapperspb.StringValue{}); !errors.Is(err, io.EOF) {
		t.Errorf("%v; want the end", err)
	}
}

func TestRelayErrors(t *testing.T) {
	for name, c := range map[string]struct {
		server  grpc.StreamHandler
		send    string
		want    codes.Code
		details int
	}{
		"the server's own":    {echo, "fail", codes.DataLoss, 1},
		"a message too large": {echo, strings.Repeat("x", 1<<20+1), codes.ResourceExhausted, 0},
		"not accepted":        {func(any, grpc.ServerStream) error { return status.Error(codes.Unavailable, "draining") }, "x", codes.Unavailable, 0},
		"not a relay":         {func(any, grpc.ServerStream) error { return nil }, "x", codes.Unknown, 0},
		"a message it cannot do": {func(_ any, s grpc.ServerStream) error {
			return errors.Join(Accept(s, "x"), status.Error(codes.Aborted, ""))
		}, "x", codes.Aborted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stream := open(t, through(t, c.server, nil))
			send(t, stream, c.send)
			err := stream.RecvMsg(&wrapperspb.StringValue{})
			if got := status.Convert(err); got.Code() != c.want || len(got.Details()) != c.details {
				t.Errorf("%v with %d details, want %v with %d", err, len(got.Details()), c.want, c.details)
			}
		})
	}
}

// TestNothingIsSentBeforeAccept: a request that was not accepted may go elsewhere.
func TestNothingIsSentBeforeAccept(t *testing.T) {
	got, entered := make(chan error, 1), make(chan struct{})
	conn := through(t, func(_ any, stream grpc.ServerStream) error {
		go func() { got <- stream.RecvMsg(&Frame{}) }()
		close(entered)
		<-stream.Context().Done()
		return nil
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := conn.NewStream(ctx, Descriptor, method)
	if err != nil {
		t.Fatal(err)
	}
	send(t, stream, "x")
	<-entered
	cancel()
	if err := <-got; err == nil {
		t.Error("the request has come without having been accepted")
	}
}

func TestSeen(t *testing.T) {
	conn := through(t, echo, func(f *Frame) (*Frame, error) {
		text := string(f.Bytes())
		f.Free()
		if strings.Contains(text, "stop") {
			return nil, status.Error(codes.Aborted, "stopped")
		}
		return Encoded([]byte(strings.ToUpper(text))), nil
	})
	stream := open(t, conn)
	send(t, stream, "abc")
	got := &wrapperspb.StringValue{}
	if err := stream.RecvMsg(got); err != nil || got.GetValue() != "ABC" {
		t.Errorf("%q, %v", got.GetValue(), err)
	}
	send(t, stream, "stop")
	if err := stream.RecvMsg(got); status.Code(err) != codes.Aborted {
		t.Error(err)
	}
}
