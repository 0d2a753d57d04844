// Package toold is the Go client of the toold daemon.
//
// A [Session] is one session of the daemon with the stream over which this program sends tool uses and receives their
// results. It survives the loss of its stream: it attaches again after the last record that it has received, and sends
// again what the daemon may not have. An [Agent] is a session for calls and messages of a model instead of single events: what the
// libraries for Python and TypeScript offer. [Watch] follows a session without taking part in it. Everything else is a
// unary method of one of the three services in [Conn].
//
// [Local] finds the daemon of this user, or starts it; a program may have a [Dial] of its own instead.
package toold

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Conn is a connection to a daemon, with a client of each of its services. It is safe for concurrent use.
type Conn struct {
	*grpc.ClientConn
	Tools    tooldv1.ToolServiceClient
	Sessions tooldv1.SessionServiceClient
	Daemon   tooldv1.DaemonServiceClient
}

// How much a daemon may send before it is read, in bytes. They are fixed: windows that grow with the
// traffic are measured by a ping beside nearly each message.
const (
	streamWindow = 1 << 20
	connWindow   = 4 << 20
)

// Connect returns a connection for target, as grpc.NewClient does, with flow control for many small messages; options win over it.
// It connects when it is used, and errors are about the options alone. The caller closes it.
func Connect(target string, options ...grpc.DialOption) (*Conn, error) {
	windows := []grpc.DialOption{grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connWindow)}
	cc, err := grpc.NewClient(target, append(windows, options...)...)
	if err != nil {
		return nil, err
	}
	return NewConn(cc), nil
}

// NewConn returns a Conn over cc, which it owns from then on: Close closes it.
func NewConn(cc *grpc.ClientConn) *Conn {
	return &Conn{
		ClientConn: cc,
		Tools:      tooldv1.NewToolServiceClient(cc),
		Sessions:   tooldv1.NewSessionServiceClient(cc),
		Daemon:     tooldv1.NewDaemonServiceClient(cc),
	}
}

// Close closes the connection and ends every stream over it.
func (c *Conn) Close() { _ = c.ClientConn.Close() }

// Dial returns a new connection to the daemon. A Session calls it again when it has lost the connection, so it may be
// another daemon by then. The caller of Dial closes the connection.
type Dial func(ctx context.Context) (*Conn, error)

// Reason returns the reason of an error that the daemon returned, such as "session_closed". docs/errors.md lists them.
// It is empty for all other errors.
func Reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// ListSessions returns all sessions of this client's principal, the newest first; with closed, those too that are closed
// and still kept. With an [UnlistedError] it returns those of the workspaces that could be asked.
func (c *Conn) ListSessions(ctx context.Context, closed bool) (all []*tooldv1.Session, err error) {
	request := &tooldv1.ListSessionsRequest{IncludeClosed: closed}
	unlisted := map[string]*tooldv1.UnlistedWorkspace{}
	for {
		page, err := c.Sessions.ListSessions(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetSessions()...)
		for _, workspace := range page.GetUnlisted() {
			unlisted[workspace.GetWorkspace()] = workspace
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	if len(unlisted) == 0 {
		return all, nil
	}
	return all, &UnlistedError{slices.SortedFunc(maps.Values(unlisted), func(a, b *tooldv1.UnlistedWorkspace) int {
		return strings.Compare(a.GetWorkspace(), b.GetWorkspace())
	})}
}

// An UnlistedError is returned by ListSessions of a cluster's gateway if some workspaces could not be asked for their sessions.
type UnlistedError struct {
	Workspaces []*tooldv1.UnlistedWorkspace // at least one, by their names
}

// Error names the workspaces.
func (e *UnlistedError) Error() string {
	var all []string
	for _, w := range e.Workspaces {
		all = append(all, fmt.Sprintf("%q (%s)", w.GetWorkspace(), w.GetText()))
	}
	return "the sessions of these workspaces are not listed, since they could not be asked: " + strings.Join(all, ", ")
}

// Checkpoints returns the pages of a list of checkpoints, from the one that request names on; request becomes that of the next
// page. An error is the last that comes.
func (c *Conn) Checkpoints(ctx context.Context, request *tooldv1.ListCheckpointsRequest) iter.Seq2[*tooldv1.ListCheckpointsResponse, error] {
	return func(yield func(*tooldv1.ListCheckpointsResponse, error) bool) {
		for {
			page, err := c.Sessions.ListCheckpoints(ctx, request)
			if !yield(page, err) || err != nil {
				return
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				return
			}
		}
	}
}
