// Package gateway serves toold's contract for a cluster: it authenticates users,
// finds the node that has the workspace that a request is about, and relays the
// RPC to it.
//
// A gateway keeps nothing that another one does not find: a client whose stream
// breaks attaches again through any of them. Where a workspace is, is a guess that
// nodes correct; nothing of a request leaves the gateway before a node has accepted
// it, so no request runs twice.
//
// It does not know what sessions and calls are, except where they are.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon/access"
)

// Limits of a gateway, those of a daemon's TCP listener. Windows are fixed, since
// they bound what is kept of a stream whose other side does not read.
const (
	maxMessage       = 16 << 20         // bytes of one message
	maxHeader        = 64 << 10         // bytes of metadata
	maxStreams       = 1000             // of one connection
	streamWindow     = 256 << 10        // bytes that are sent to the gateway before it reads them
	connWindow       = 1 << 20          // bytes, of one connection of a client
	keepaliveEvery   = 25 * time.Second // a silent connection is asked whether it lives
	keepaliveTimeout = 20 * time.Second // so long it has to answer
	keepaliveLeast   = 10 * time.Second // a client may ask as often as this
	handshakeTime    = 10 * time.Second
)

// How much is read from and written to a connection of a client at once, in bytes.
// Nothing is read beforehand, since TLS has a buffer of its own; the one for writing
// is held only while something is written.
const (
	readBuffer  = 0
	writeBuffer = 4 << 10
)

// defaultPatience is how long a request waits for a node. It is longer than a
// cluster needs to notice that a node is gone and to have another take over.
const defaultPatience = 20 * time.Second

// Config is what a gateway needs. All fields without a default are needed.
type Config struct {
	Identity  *identity.Identity
	Users     *identity.Users
	TLS       *tls.Config // for users; see [identity.Identity.UserTLS]
	Members   *members.Members
	JetStream jetstream.JetStream
	Replicas  int // of the bucket toold_index, if it is made; 0: 1
	Version   string
	// Patience is how long a request waits for a node that serves it. 0: 20 s.
	Patience time.Duration
	Log      *zap.Logger // nil: nothing is logged
	// Ended is called with each RPC of the contract that has ended; "other" is for methods that are not of the contract. Nil: not.
	Ended func(method string, code codes.Code)
}

// A Gateway is one gateway. Its methods are safe for concurrent use.
type Gateway struct {
	config  Config
	server  *grpc.Server
	health  *health.Server
	nodes   *nodes
	index   *index
	started time.Time
	mount   string // mountPoint

	attached atomic.Int64 // Execute streams that a node has accepted
	reading  sync.WaitGroup
	watching sync.WaitGroup
	end      context.CancelFunc
}

// New returns a gateway that serves nothing yet. The caller calls Stop.
func New(ctx context.Context, config Config) (*Gateway, error) {
	if config.Patience == 0 {
		config.Patience = defaultPatience
	}
	if config.Log == nil {
		config.Log = zap.NewNop()
	}
	index, err := openIndex(ctx, config.JetStream, config.Replicas)
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	g := &Gateway{config: config, index: index, nodes: newNodes(config.Identity, config.Members), health: health.NewServer(), started: time.Now(), mount: mountPoint, end: end}
	g.server = g.newServer()
	g.watching.Go(func() { g.nodes.watch(running) })
	return g, nil
}

func (g *Gateway) newServer() *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(access.Bounded(credentials.NewTLS(g.config.TLS), access.NewArriving(maxMessage, g.overfull))),
		grpc.ForceServerCodecV2(relay.NewCodec()),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return g.ended(stream, g.serve(stream)) }),
		grpc.StreamInterceptor(g.authenticate),
		grpc.UnaryInterceptor(g.authenticateUnary),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.WaitForHandlers(true), // so that nothing starts while Stop waits for what runs
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast, PermitWithoutStream: true}),
	)
	healthpb.RegisterHealthServer(server, g.health)
	reflection.RegisterV1(contractReflection{server})
	return server
}

// overfull logs that a connection was ended, since too much had arrived of messages that were not finished.
func (g *Gateway) overfull(why *access.Overfull) {
	g.config.Log.Warn("a connection was ended: messages_arriving", zap.String("scope", why.Scope), zap.Int64("limit", why.Limit),
		zap.Int64("held", why.Held), zap.Stringer("from", why.From))
}

// Serve accepts connections until Stop.
func (g *Gateway) Serve(listener net.Listener) error { return g.server.Serve(listener) }

// Attached returns how many streams of Execute a node has accepted.
func (g *Gateway) Attached() int64 { return g.attached.Load() }

// Drain reports that the gateway does not serve, so that a load balancer sends new
// connections elsewhere. What is connected goes on until Stop.
func (g *Gateway) Drain() { g.health.Shutdown() }

// Stop ends every stream, and returns when nothing of the gateway runs any more.
// Clients attach again through another gateway.
func (g *Gateway) Stop() {
	g.health.Shutdown()
	g.server.Stop()
	g.reading.Wait()
	g.end()
	g.watching.Wait()
	g.nodes.close()
}

type principalKey struct{}

// principalOf returns the principal that authenticate has found.
func principalOf(ctx context.Context) string {
	who, _ := ctx.Value(principalKey{}).(string)
	return who
}

// identify returns the context of a request with its principal. Health checks of
// load balancers have none.
func (g *Gateway) identify(ctx context.Context, method string) (context.Context, error) {
	if method == healthpb.Health_Check_FullMethodName || method == healthpb.Health_Watch_FullMethodName {
		return ctx, nil
	}
	header, _ := metadata.FromIncomingContext(ctx)
	who, err := g.config.Users.Authenticate(ctx, header)
	if err != nil {
		g.config.Log.Debug("a request was refused", zap.String("method", method), zap.Error(errors.Unwrap(err)))
		return ctx, err
	}
	return context.WithValue(ctx, principalKey{}, who), nil
}

func (g *Gateway) authenticateUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := g.identify(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return next(ctx, request)
}

// authenticate runs before anything of a request's message is read.
func (g *Gateway) authenticate(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, err := g.identify(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return next(server, &authenticated{stream, ctx})
}

// authenticated is a stream whose principal is known.
type authenticated struct {
	grpc.ServerStream
	ctx context.Context
}

func (a *authenticated) Context() context.Context { return a.ctx }
