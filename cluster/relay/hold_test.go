package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestHold: what is held comes in order with the end behind it, large messages too, or the error of what refuses it.
func TestHold(t *testing.T) {
	var sent []string
	for n := range 3 * aheadMessages {
		sent = append(sent, strings.Repeat(fmt.Sprint(n), 1+n%5*aheadBytes/3))
	}
	behind := listen(t, func(_ any, stream grpc.ServerStream) error {
		err := Accept(stream, "x")
		for _, text := range sent {
			err = errors.Join(err, stream.SendMsg(wrapperspb.String(text)))
		}
		return errors.Join(err, status.Error(codes.DataLoss, "the end"))
	})
	for _, refuse := range []error{nil, status.Error(codes.Aborted, "refused")} {
		var reading sync.WaitGroup
		opened := make(chan struct{})
		conn := listen(t, func(_ any, client grpc.ServerStream) error {
			ctx, cancel := context.WithCancelCause(client.Context())
			server, err := behind.NewStream(ctx, Descriptor, method)
			if err == nil {
				err = Accepted(server)
			}
			if err != nil {
				cancel(nil)
				return err
			}
			if err := client.SendHeader(nil); err != nil {
				cancel(nil)
				return err
			}
			return Relay(client, Hold(server, &reading, func() (passes func() error) {
				return func() error {
					<-opened
					return refuse
				}
			}), cancel, &reading, nil)
		})
		stream := open(t, conn)
		if _, err := stream.Header(); err != nil {
			t.Fatal(err)
		}
		close(opened)
		var got []string
		var err error
		for text := (&wrapperspb.StringValue{}); err == nil; {
			if err = stream.RecvMsg(text); err == nil {
				got = append(got, text.GetValue())
			}
		}
		switch {
		case refuse != nil && (status.Code(err) != codes.Aborted || len(got) > 0):
			t.Errorf("%d messages and %v; want none and the refusal", len(got), err)
		case refuse == nil && (status.Code(err) != codes.DataLoss || strings.Join(got, " ") != strings.Join(sent, " ")):
			t.Errorf("%d messages and %v; want %d, the same, and the end", len(got), err, len(sent))
		}
		reading.Wait()
	}
}
