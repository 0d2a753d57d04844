// Finding the node that serves a workspace.

package gateway

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon/apierror"
)

const (
	// triesInRow is how many nodes are asked without a pause: the one that is
	// guessed, the owner that it names, and another if that one is gone.
	triesInRow   = 3
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// passedOn is the metadata of a client that a node gets: that of a trace, and what a new workspace is created with.
var passedOn = append([]string{"traceparent", "tracestate"}, identity.CreationKeys...)

// A search is for the node that serves one call.
type search struct {
	g        *Gateway
	call     call
	deadline time.Time
	owner    string          // whom a node has named last; empty: none
	tried    map[string]bool // since the last pause
	last     error           // why the last node did not serve it
}

// place opens the call's stream at the node that has its workspace. The node has
// accepted it, and has got nothing of the request. The caller calls cancel. The
// error is final: the node's own status, or UNAVAILABLE after Config.Patience.
func (g *Gateway) place(ctx context.Context, c call) (grpc.ClientStream, context.CancelCauseFunc, error) {
	s := &search{g: g, call: c, deadline: time.Now().Add(g.config.Patience), owner: g.nodes.hint(c), tried: map[string]bool{}}
	pause := firstPause
	for {
		changed := g.config.Members.Changed()
		for range triesInRow {
			stream, cancel, err := s.try(ctx)
			if err == nil {
				return stream, cancel, nil
			}
			if !errors.Is(err, errNext) {
				return nil, nil, err
			}
		}
		if err := s.wait(ctx, changed, pause); err != nil {
			return nil, nil, err
		}
		pause = min(2*pause, longestPause)
		clear(s.tried)
	}
}

// errNext is returned by try if another node is to be tried.
var errNext = errors.New("another node is to be tried")

// try asks one node.
func (s *search) try(ctx context.Context) (grpc.ClientStream, context.CancelCauseFunc, error) {
	node, found := s.next()
	if !found {
		return nil, nil, errNext
	}
	s.tried[node.Name] = true
	stream, cancel, err := s.g.nodes.open(ctx, node, s.call)
	if err == nil {
		s.g.nodes.remember(s.call, node.Name)
		return stream, cancel, nil
	}
	s.g.nodes.remember(s.call, "")
	if owner, named := identity.OwnerIn(err); named {
		s.last, s.owner = err, owner
		return nil, nil, errNext
	}
	if !lost(ctx, err) && !errors.Is(err, relay.ErrNotAccepted) {
		return nil, nil, err
	}
	s.last, s.owner = err, ""
	return nil, nil, errNext
}

// next returns the node to ask: the owner if it is known and lives, else the one
// that a workspace without an owner would get.
func (s *search) next() (members.Node, bool) {
	all := s.g.config.Members
	if node, known := all.Node(s.owner); known && !s.tried[s.owner] && !all.Suspect(s.owner) && node.Address != "" {
		return node, true
	}
	return all.Choose(s.call.principal, s.call.workspace, s.tried)
}

// wait waits for the pause, of which the second half ends with a change of the nodes. An error: the client is
// gone, or the time is over.
func (s *search) wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) error {
	left := time.Until(s.deadline)
	if left <= 0 {
		return s.refusal()
	}
	for _, wake := range []<-chan struct{}{nil, changed} { // a pause in any case, since nodes of others change often
		timer := time.NewTimer(min(pause/2, left))
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return s.refusal() // which has the last answer
			}
			return ctx.Err()
		}
		timer.Stop()
	}
	return nil
}

// refusal is returned if no node was found in time.
func (s *search) refusal() error {
	refused := apierror.New(codes.Unavailable, "no_node", "No node of the cluster can be reached. Try again.")
	if s.last != nil {
		refused.Message = "No node serves the workspace at the moment: " + status.Convert(s.last).Message()
	}
	return tryAgain(refused, s.last)
}

// open asks a node to accept the call.
func (n *nodes) open(ctx context.Context, node members.Node, c call) (grpc.ClientStream, context.CancelCauseFunc, error) {
	conn, err := n.connect(node)
	if err != nil {
		return nil, nil, err
	}
	header, err := n.identity.Outgoing(c.principal, c.workspace, node.Name, c.method, time.Now())
	if err != nil {
		return nil, nil, err
	}
	if c.session != "" {
		header.Set(identity.SessionKey, c.session)
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	for _, key := range passedOn {
		header.Append(key, incoming.Get(key)...)
	}
	ctx, cancel := context.WithCancelCause(metadata.NewOutgoingContext(ctx, header))
	stream, err := conn.NewStream(ctx, relay.Descriptor, c.method)
	if err == nil {
		err = relay.Accepted(stream)
	}
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return stream, cancel, nil
}
