// Package mirror passes what a journal commits to a copy in another place, over
// gRPC, and reads such changes again.
//
// It does not know what the copy does with them.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// requestBytes is how large a request may become before the rest of a group goes into the next one.
// A change is never divided, so that a request may be larger by one of them.
const requestBytes = 4 << 20

// MaxMessage is what a server must be prepared to receive, in bytes: changes of the largest size.
const MaxMessage = math.MaxInt32

// window is how much a mirror may send before it is read, in bytes; its answers are empty. It is fixed: windows
// that grow with the traffic are measured by a ping beside nearly each message.
const window = 64 << 10

// Between two tries to reach the mirror the daemon waits so long: at first, and at most.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = 2 * time.Second
)

// A Client is the connection to a mirror.
type Client struct {
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	conn  *grpc.ClientConn
	calls tooldv1.JournalMirrorServiceClient
	group uint64 // of the last request
}

// ErrClosed is returned by Append after Close: whether the mirror has the changes is not known.
var ErrClosed = errors.New("the daemon no longer waits for the mirror of its journal")

// Connect returns a client of the mirror at a Unix socket. It does not wait for the mirror to be
// there.
func Connect(socket string) (*Client, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket's mode says who may
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(MaxMessage)))
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	return &Client{ctx: ctx, end: end, conn: conn, calls: tooldv1.NewJournalMirrorServiceClient(conn)}, nil
}

// Close ends the connection, and a call of Append that waits for the mirror. It may be called twice.
func (c *Client) Close() error {
	c.end()
	if err := c.conn.Close(); status.Code(err) != codes.Canceled { // it was closed before
		return err
	}
	return nil
}

// Append is a [journal.Mirror]: it returns when the mirror has stored the changes, however long that
// takes. An error is final.
func (c *Client) Append(epoch string, changes []journal.Change) error {
	for request := range requests(changes) {
		c.group++
		request.Epoch, request.Group = epoch, c.group
		if err := c.send(request); err != nil {
			return err
		}
	}
	return nil
}

// send repeats a request until it has a definite answer.
func (c *Client) send(request *tooldv1.AppendChangesRequest) error {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		_, err := c.calls.AppendChanges(c.ctx, request, grpc.WaitForReady(true))
		if c.ctx.Err() != nil {
			return ErrClosed
		}
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Unavailable, codes.Unknown:
		default:
			return fmt.Errorf("the mirror of the journal refuses: %w", err)
		}
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// requests divides changes into messages.
func requests(changes []journal.Change) iter.Seq[*tooldv1.AppendChangesRequest] {
	return func(yield func(*tooldv1.AppendChangesRequest) bool) {
		next, size := &tooldv1.AppendChangesRequest{}, 0
		for _, c := range changes {
			wire := Encode(c)
			if size += proto.Size(wire); size > requestBytes && len(next.Changes) > 0 {
				if !yield(next) {
					return
				}
				next, size = &tooldv1.AppendChangesRequest{}, proto.Size(wire)
			}
			next.Changes = append(next.Changes, wire)
		}
		if len(next.Changes) > 0 {
			yield(next)
		}
	}
}

// Encode returns the message of a change. It shares the change's bytes.
func Encode(c journal.Change) *tooldv1.JournalChange {
	wire := &tooldv1.JournalChange{SessionId: c.Log, FirstSeq: c.First, State: encodeState(c.State), Removed: c.Removed}
	wire.Created, wire.Sealed = nanoseconds(c.Created), nanoseconds(c.Sealed)
	for _, e := range c.Entries {
		wire.Entries = append(wire.Entries, &tooldv1.JournalEntry{
			Time: nanoseconds(e.Time), Kind: uint32(e.Kind), Call: e.Call, Turn: e.Turn, Body: e.Body, Note: e.Note, State: encodeState(e.State),
		})
	}
	return wire
}

// Decode returns the change of a message. It shares the message's bytes.
func Decode(wire *tooldv1.JournalChange) (journal.Change, error) {
	c := journal.Change{Log: wire.GetSessionId(), First: wire.GetFirstSeq(), State: decodeState(wire.GetState()), Removed: wire.GetRemoved()}
	c.Created, c.Sealed = instant(wire.GetCreated()), instant(wire.GetSealed())
	if c.Log == "" {
		return c, fmt.Errorf("a change of the journal names no session")
	}
	for _, e := range wire.GetEntries() {
		if e.GetKind() > math.MaxUint8 || e.GetTurn() > math.MaxInt64 {
			return c, fmt.Errorf("an entry of the journal has the kind %d and the turn %d", e.GetKind(), e.GetTurn())
		}
		c.Entries = append(c.Entries, journal.Entry{
			Time: instant(e.GetTime()), Kind: journal.Kind(e.GetKind()), Call: e.GetCall(), Turn: e.GetTurn(), Body: e.GetBody(), Note: e.Note, State: decodeState(e.GetState()),
		})
	}
	return c, nil
}

func encodeState(puts []journal.Put) (wire []*tooldv1.JournalState) {
	for _, put := range puts {
		wire = append(wire, &tooldv1.JournalState{Key: put.Key, Value: put.Value})
	}
	return wire
}

func decodeState(wire []*tooldv1.JournalState) (puts []journal.Put) {
	for _, put := range wire {
		puts = append(puts, journal.Put{Key: put.GetKey(), Value: put.Value})
	}
	return puts
}

// nanoseconds returns 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}
