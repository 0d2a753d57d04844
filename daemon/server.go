// The gRPC server: its limits, its interceptors.

package daemon

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toold/toold/daemon/access"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	keepaliveEvery   = 25 * time.Second // a silent connection is asked whether it lives
	keepaliveTimeout = 20 * time.Second // so long it has to answer
	keepaliveLeast   = 10 * time.Second // a client may ask as often as this
	maxStreams       = 1000             // of one connection
	maxHeader        = 64 << 10         // bytes of metadata
	handshakeTime    = 10 * time.Second // for TLS and the first words of HTTP/2
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
		grpc.Creds(access.Credentials()),
		grpc.InTapHandle(d.admit),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.MaxRecvMsgSize(d.limits.MessageBytes),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.WaitForHandlers(true), // so that nothing is left of a stream when the daemon lets go of its state
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(metrics.UnaryServerInterceptor(), logging.UnaryServerInterceptor(logger, events),
			recovery.UnaryServerInterceptor(rescue)),
		grpc.ChainStreamInterceptor(metrics.StreamServerInterceptor(), logging.StreamServerInterceptor(logger, events),
			recovery.StreamServerInterceptor(rescue)),
	)
	tooldv1.RegisterToolServiceServer(server, &toolServer{daemon: d})
	tooldv1.RegisterSessionServiceServer(server, &sessionServer{daemon: d})
	tooldv1.RegisterDaemonServiceServer(server, &daemonServer{daemon: d})
	healthpb.RegisterHealthServer(server, d.health)
	reflection.Register(server)
	metrics.InitializeMetrics(server)
	return server
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
	return apierror.New(codes.Internal, "internal", "The daemon made a mistake while it served this request. It goes on; the log has the details.")
}
