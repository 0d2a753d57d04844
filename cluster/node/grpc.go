package node

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/cluster/snapshot"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Reasons of errors that a node returns before it has accepted an RPC, beside identity.NotOwner. The same RPC may be sent to another node.
const (
	reasonDraining  = "draining"   // the node takes no workspaces
	reasonNotTaken  = "not_taken"  // the workspace could not be taken over
	reasonNewFormat = "new_format" // the workspace's log was written by a newer version
	reasonNoVolume  = "no_volume"  // the workspace's files are on a shared volume that the node does not have
)

// pingEvery is how often a silent connection is asked whether it lives.
const pingEvery = 10 * time.Second

// How much a node takes before it is read, in bytes: of a stream, which a reader that is slow stops
// alone, and of a connection. They are fixed: windows that grow with the traffic are measured by a ping
// beside nearly each message.
const (
	streamWindow = 1 << 20
	connWindow   = 16 << 20
)

// Server returns the server for gateways, which present a certificate of the cluster. Other nodes may check its health.
func (n *Node) Server(id *identity.Identity) *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(id.ServerTLS(identity.Gateway, identity.Admin, identity.Node))),
		grpc.ForceServerCodecV2(relay.NewCodec()),
		grpc.UnknownServiceHandler(n.handle),
		grpc.MaxRecvMsgSize(mirror.MaxMessage), // the daemon has limits of its own
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingEvery}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingEvery / 2, PermitWithoutStream: true}),
	)
	healthpb.RegisterHealthServer(server, health.NewServer())
	return server
}

// handle passes an RPC to the daemon of its workspace.
func (n *Node) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	call, err := identity.Incoming(stream.Context(), n.Name, method, time.Now())
	if err != nil {
		return err
	}
	switch {
	case call.Workspace == "":
		return apierror.Invalidf("no_workspace", "", "The request names no workspace.")
	case method == tooldv1.DaemonService_Shutdown_FullMethodName, method == tooldv1.DaemonService_Upgrade_FullMethodName:
		return apierror.New(codes.PermissionDenied, "shutdown_refused", "A node's daemons are neither ended nor upgraded by clients.")
	}
	creation := func() (lease.Creation, error) { return CreationIn(stream.Context()) }
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	daemon, u, err := n.open(ctx, log.Workspace{Principal: call.Principal, Name: call.Workspace}, creation, method)
	if err != nil {
		n.Logger.Debug("an RPC was not accepted", zap.String("method", method), zap.Error(err))
		return refusal(err)
	}
	var seen func(*relay.Frame) (*relay.Frame, error)
	if method == tooldv1.ToolService_Execute_FullMethodName { // not before: the session may be another node's
		named, release, err := n.countSession(ctx, call)
		if err != nil {
			return err
		}
		defer release()
		seen = named
		n.sessions.Add(1)
		defer n.sessions.Add(-1)
	}
	if err := relay.Accept(stream, n.Name); err != nil {
		return err
	}
	daemon = relay.Hold(daemon, &n.reading, func() (passes func() error) { return u.mirror.mark(ctx) })
	err = relay.Relay(stream, daemon, cancel, &n.reading, seen)
	if code := status.Code(err); (code == codes.Canceled || code == codes.Unavailable) && u.deleted() {
		return refusal(ErrDeleted)
	}
	if status.Code(err) == codes.Canceled && stream.Context().Err() == nil { // the node has closed its connection to the daemon
		return status.Error(codes.Unavailable, "the workspace's daemon has ended")
	}
	return err
}

// deleted reports whether the unit ends, or has ended, since the workspace was deleted.
func (u *unit) deleted() bool { return isDeletion(u.mirror.fault()) }

// isDeletion reports whether an error is that the workspace was deleted.
func isDeletion(err error) bool {
	fenced, is := errors.AsType[*lease.Fenced](err)
	return errors.Is(err, ErrDeleted) || is && fenced.Deleted()
}

// refusal is what the gateway is told if the workspace cannot be served here.
func refusal(err error) error {
	if owner, is := errors.AsType[*OwnerError](err); is {
		return identity.NotOwner(owner.Owner)
	}
	if refused, is := errors.AsType[*apierror.Error](err); is {
		return refused
	}
	if refused := overQuota(err); refused != nil {
		return refused
	}
	switch {
	case errors.Is(err, snapshot.ErrUnknown):
		return apierror.NotFoundf("unknown_snapshot", "", "The workspace was not created: %v.", err)
	case errors.Is(err, ErrDraining):
		return apierror.New(codes.Unavailable, reasonDraining, "The node is being drained.")
	case errors.Is(err, ErrDeleted):
		return apierror.NotFoundf("workspace_deleted", "", "The workspace was deleted by an administrator.")
	case errors.Is(err, lease.ErrFormat):
		return apierror.New(codes.Unavailable, reasonNewFormat, "The workspace's log was written by a newer version than this node's.")
	case errors.Is(err, ErrNoVolume):
		return apierror.New(codes.Unavailable, reasonNoVolume, "The workspace could not be taken over: %v.", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return apierror.New(codes.Unavailable, reasonNotTaken, "The workspace could not be taken over: %v", err)
}
