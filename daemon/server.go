package daemon

// The gRPC server: who may talk to it, its limits, its interceptors. Knows nothing of what the methods do.

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/tap"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	keepaliveEvery   = 25 * time.Second // a silent connection is asked whether it lives
	keepaliveTimeout = 20 * time.Second // so long it has to answer
	keepaliveLeast   = 10 * time.Second // a client may ask as often as this
	maxStreams       = 1000             // of one connection
	maxHeader        = 64 << 10         // bytes of metadata
)

func (d *Daemon) newServer() *grpc.Server {
	metrics := grpcprom.NewServerMetrics()
	if d.Metrics != nil {
		d.Metrics.MustRegister(metrics)
	}
	logger := logging.LoggerFunc(d.logCall)
	events := logging.WithLogOnEvents(logging.FinishCall)
	rescue := recovery.WithRecoveryHandler(d.rescued)
	server := grpc.NewServer(
		grpc.Creds(peerCredentials{}),
		grpc.InTapHandle(d.numberArrival),
		grpc.MaxRecvMsgSize(d.limits.MessageBytes),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.WaitForHandlers(true), // so that nothing is left of a stream when the daemon lets go of its state
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(metrics.UnaryServerInterceptor(), logging.UnaryServerInterceptor(logger, events),
			checkUnaryPeer, recovery.UnaryServerInterceptor(rescue)),
		grpc.ChainStreamInterceptor(metrics.StreamServerInterceptor(), logging.StreamServerInterceptor(logger, events),
			checkStreamPeer, recovery.StreamServerInterceptor(rescue)),
	)
	tooldv1.RegisterToolServiceServer(server, &toolServer{daemon: d})
	tooldv1.RegisterSessionServiceServer(server, &sessionServer{daemon: d})
	tooldv1.RegisterDaemonServiceServer(server, &daemonServer{daemon: d})
	healthpb.RegisterHealthServer(server, d.health)
	reflection.Register(server)
	metrics.InitializeMetrics(server)
	return server
}

type arrivalKey struct{}

// numberArrival is called where a connection is read, so in the order in which its requests were sent. The methods run
// on goroutines of their own and so in any order.
func (d *Daemon) numberArrival(ctx context.Context, _ *tap.Info) (context.Context, error) {
	return context.WithValue(ctx, arrivalKey{}, d.arrivals.Add(1)), nil // there is no other way from here to the method
}

func arrivalOf(ctx context.Context) uint64 {
	n, _ := ctx.Value(arrivalKey{}).(uint64) // 0: it did not come over the wire
	return n
}

// logCall writes one line a finished method; no payloads.
func (d *Daemon) logCall(_ context.Context, level logging.Level, message string, fields ...any) {
	zapped := make([]zap.Field, 0, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		zapped = append(zapped, zap.Any(fmt.Sprint(fields[i]), fields[i+1]))
	}
	switch level {
	case logging.LevelError:
		d.Log.Error(message, zapped...)
	case logging.LevelWarn:
		d.Log.Warn(message, zapped...)
	default:
		d.Log.Debug(message, zapped...)
	}
}

func (d *Daemon) rescued(broken any) error {
	d.Log.Error("a method panicked", zap.Any("panic", broken), zap.ByteString("stack", debug.Stack()))
	return refuse(codes.Internal, "internal", "The daemon made a mistake while it served this request. It goes on; the log has the details.")
}

// checkPeer lets only the daemon's own user in, and no process that a call has started: it could allow itself what
// its call was not allowed.
func checkPeer(ctx context.Context) error {
	from, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return refuse(codes.Unauthenticated, "unknown_peer", "The connection does not tell which user it comes from.")
	}
	who, ok := from.AuthInfo.(peer)
	if !ok {
		return refuse(codes.Unauthenticated, "unknown_peer", "The connection does not tell which user it comes from.")
	}
	if who.uid != os.Getuid() {
		return refuse(codes.PermissionDenied, "other_user", "This daemon serves user %d alone; the connection comes from user %d.", os.Getuid(), who.uid)
	}
	if who.own {
		return refuse(codes.PermissionDenied, "own_child", "The connection comes from process %d, which a call of this daemon has started. Calls cannot use the daemon.", who.pid)
	}
	return nil
}

func checkUnaryPeer(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := checkPeer(ctx); err != nil {
		return nil, err
	}
	return next(ctx, request)
}

func checkStreamPeer(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := checkPeer(stream.Context()); err != nil {
		return err
	}
	return next(server, stream)
}
