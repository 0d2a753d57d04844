package mirror

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Between two tries to reach the mirror the daemon waits so long: at first, and at most.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = 2 * time.Second
)

// A Client passes changes to a mirror.
type Client struct {
	socket string
	ctx    context.Context // ends with Close
	end    context.CancelFunc

	mu    sync.Mutex // held by Append
	conn  net.Conn   // nil: there is none now
	group uint64     // of the last request
}

// ErrClosed is returned by Append after Close: whether the mirror has the changes is not known.
var ErrClosed = errors.New("the daemon no longer waits for the mirror of its journal")

// Connect returns a client of the mirror at a Unix socket. The mirror need not be there yet.
func Connect(socket string) *Client {
	ctx, end := context.WithCancel(context.Background())
	return &Client{socket: socket, ctx: ctx, end: end}
}

// Close ends the connection, and a call of Append that waits for the mirror. It may be called twice.
func (c *Client) Close() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUp()
}

func (c *Client) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// Append is a [journal.Mirror]: it returns when the mirror has stored the changes, however long that
// takes. It calls held if the mirror holds back what this daemon sends to clients. An error is final.
func (c *Client) Append(epoch string, changes []journal.Change, held func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Collect(requests(changes))
	for n, request := range all {
		c.group++
		request.Epoch, request.Group, request.Holds = epoch, c.group, n == len(all)-1 // what is shown is in requests before, too
		if err := c.send(request, held); err != nil {
			return err
		}
	}
	return nil
}

// send repeats a request until it has an answer.
func (c *Client) send(request *tooldv1.AppendChangesRequest, held func()) error {
	frame, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, lengthBytes), request)
	if err != nil {
		return fmt.Errorf("changes of the journal cannot be passed on: %w", err)
	}
	if err := setLength(frame); err != nil {
		return err
	}
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		refusal, err := c.exchange(frame, held)
		switch {
		case c.ctx.Err() != nil:
			return ErrClosed
		case refusal != "":
			return fmt.Errorf("the mirror of the journal refuses: %s", refusal)
		case err == nil:
			return nil
		}
		c.hangUp() // the mirror knows by the group what it has already
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// exchange sends a frame and waits for its answer.
func (c *Client) exchange(frame []byte, held func()) (refusal string, err error) {
	if c.conn == nil {
		var dialer net.Dialer
		if c.conn, err = dialer.DialContext(c.ctx, "unix", c.socket); err != nil {
			c.conn = nil
			return "", err
		}
	}
	conn := c.conn
	stop := context.AfterFunc(c.ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err = conn.Write(frame); err != nil {
		return "", err
	}
	return readAnswer(conn, held)
}
