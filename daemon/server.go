// The gRPC server: its limits and interceptors, who is let in, and where it is found. Sockets,
// locks and the journal's file may be deleted, moved or replaced while it runs: what can be made
// again is, and for the rest the user is told what to do.
//
// Requests are let in, or refused, before a byte of their message is taken. That is not an
// interceptor, since those of unary methods run when the message has been read: an unknown client
// could make the daemon hold megabytes.

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/tap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/web"
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

// How much a client may send before it is read, in bytes. They are fixed: windows that grow with the
// traffic are measured by a ping beside nearly each message.
const (
	streamWindow = 256 << 10
	connWindow   = 1 << 20
)

func (d *Daemon) newServer() *grpc.Server {
	logger := logging.LoggerFunc(d.logCall)
	events := logging.WithLogOnEvents(logging.FinishCall)
	rescue := recovery.WithRecoveryHandler(d.rescued)
	options := []grpc.ServerOption{
		grpc.Creds(access.Credentials(access.NewArriving(d.limits.MessageBytes, d.overfull))),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.InTapHandle(d.admit),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.MaxRecvMsgSize(d.limits.MessageBytes),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.WaitForHandlers(true), // so that nothing is left of a stream when the daemon lets go of its state
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(logging.UnaryServerInterceptor(logger, events),
			recovery.UnaryServerInterceptor(rescue)),
		grpc.ChainStreamInterceptor(logging.StreamServerInterceptor(logger, events),
			recovery.StreamServerInterceptor(rescue)),
	}
	server := grpc.NewServer(append(d.countRPC(), options...)...)
	for _, service := range d.services() {
		server.RegisterService(service.Desc, service.Impl)
	}
	healthpb.RegisterHealthServer(server, d.status.health)
	reflection.Register(server)
	if d.Metrics != nil {
		d.Metrics.RPC.InitializeMetrics(server)
	}
	return server
}

// services are the services of the contract.
func (d *Daemon) services() []web.Service {
	return []web.Service{
		{Desc: &tooldv1.ToolService_ServiceDesc, Impl: &toolServer{daemon: d}},
		{Desc: &tooldv1.SessionService_ServiceDesc, Impl: &sessionServer{daemon: d}},
		{Desc: &tooldv1.DaemonService_ServiceDesc, Impl: &daemonServer{daemon: d}},
	}
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

// An admission is what is known of a request since it was let in. It is empty for what did not come
// over the wire.
type admission struct {
	who     access.Principal
	arrival uint64          // its place among all requests of the daemon, in the order in which they were sent
	opener  access.Ancestry // the process that has opened the page which sent it; empty: it came over gRPC
}

type admissionKey struct{}

func admissionOf(ctx context.Context) admission {
	found, _ := ctx.Value(admissionKey{}).(admission)
	return found
}

// senderOf is the process that sent the request, or that has opened the page which did.
func senderOf(ctx context.Context) access.Ancestry {
	if opener := admissionOf(ctx).opener; len(opener) > 0 {
		return opener
	}
	return access.AncestryOf(access.PIDOf(ctx))
}

// principalOf is who sent the request.
func principalOf(ctx context.Context) access.Principal { return admissionOf(ctx).who }

// owner is whose the session is. Those of an older daemon are its user's.
func (m meta) owner() access.Principal {
	if m.Owner == "" {
		return access.Self()
	}
	return m.Owner
}

// admit is called where a connection is read, so in the order in which its requests were sent. The
// methods run on goroutines of their own and so in any order.
func (d *Daemon) admit(ctx context.Context, request *tap.Info) (context.Context, error) {
	who, err := access.Identify(ctx, request.Header)
	delete(request.Header, "authorization") // nothing after this needs it, so nothing can log it
	if err != nil {
		d.logRefused(ctx, request.FullMethodName, err)
		return ctx, err
	}
	// there is no other way from here to the method
	return context.WithValue(ctx, admissionKey{}, admission{who: who, arrival: d.admission.arrivals.Add(1)}), nil
}

// overfull logs that a connection was ended, since too much had arrived of messages that were not finished.
func (d *Daemon) overfull(why *access.Overfull) {
	d.admission.refusals.Warn("a connection was ended: messages_arriving", zap.String("scope", why.Scope), zap.Int64("limit", why.Limit),
		zap.Int64("held", why.Held), zap.Stringer("from", why.From))
}

// Of refused requests so many a minute are logged, for each of their reasons: a refused client must
// not fill the disk.
const refusalsLogged = 10

// quietly is a log that takes only the first of many equal lines.
func quietly(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, refusalsLogged, 0)
	}))
}

// logRefused logs a refused request, without the credential that it had.
func (d *Daemon) logRefused(ctx context.Context, method string, err error) {
	fields := []zap.Field{zap.String("method", convert.Short(method))}
	if from, ok := grpcpeer.FromContext(ctx); ok && from.Addr != nil {
		fields = append(fields, zap.Stringer("from", from.Addr))
	}
	reason := "unknown_peer"
	if refused, is := errors.AsType[*apierror.Error](err); is {
		reason = refused.Reason
		fields = append(fields, zap.NamedError("cause", refused.Cause))
	}
	d.admission.refusals.Warn("a request was refused: "+reason, fields...)
}

// unknownSession is the error for a session that the caller does not have.
func unknownSession(name string) *apierror.Error {
	return apierror.NotFoundf("unknown_session", "session_id", "There is no session %q.", convert.Short(name))
}

// placesTick is how often the daemon looks for what it needs. It does so at every GetInfo too.
const placesTick = 2 * time.Second

// endpoints are where the daemon is found: its listeners, and the lock on its state directory.
type endpoints struct {
	d         *Daemon
	lock      *access.Lock
	dashboard dashboard

	mu        sync.Mutex          // guards the rest
	listeners []*tooldv1.Listener // none before Serve
	sockets   []*access.Socket    // those that are Unix sockets
	tcp       []*access.TCPListener
	left      bool // the listeners were closed in favour of the next program
}

// listenOn notes where the daemon listens, for its clients and in the lock of the state directory.
func (e *endpoints) listenOn(listeners []net.Listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, listener := range listeners {
		wire := &tooldv1.Listener{Address: "unix:" + convert.Clean(listener.Addr().String())}
		switch l := listener.(type) {
		case *access.TCPListener:
			wire = &tooldv1.Listener{Address: "tcp://" + l.Addr().String(), Tls: l.TLS()}
			e.tcp = append(e.tcp, l)
		case *access.Socket:
			e.sockets = append(e.sockets, l)
			if err := e.lock.Record(l.Path()); err != nil {
				e.d.Log.Warn("the lock of the state directory does not name the socket", zap.Error(err))
			}
		}
		e.listeners = append(e.listeners, wire)
	}
}

// maintain looks for what the daemon needs until ctx ends, and logs what changes.
func (e *endpoints) maintain(ctx context.Context) {
	var known []string
	every(ctx, placesTick, func() {
		missing := e.restore()
		for _, what := range missing {
			if !slices.Contains(known, what) {
				e.d.Log.Error("something that the daemon needs is gone", zap.String("what", what))
			}
		}
		if len(missing) == 0 && len(known) > 0 {
			e.d.Log.Info("all that the daemon needs is there again")
		}
		known = missing
	})
}

// restore makes again what is gone, and returns warnings about what it cannot.
func (e *endpoints) restore() (warnings []string) {
	e.mu.Lock()
	sockets := e.sockets
	e.mu.Unlock()
	for _, socket := range sockets {
		again, err := socket.Keep()
		if again {
			e.d.Log.Warn("the socket was gone: the daemon listens there again", zap.String("socket", socket.Path()))
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the socket %s or its lock file was deleted or replaced, and the daemon "+
				"cannot listen there again (%v): clients that are connected go on, and others do not reach this daemon, "+
				"process %d", socket.Path(), err, os.Getpid()))
		}
	}
	if err := e.lock.Keep(); err != nil {
		warnings = append(warnings, fmt.Sprintf("the lock file of the state directory was deleted or replaced, and the "+
			"daemon cannot take it again (%v)", err))
	}
	if gone := e.d.journal.Present(); gone != nil {
		warnings = append(warnings, goneText(gone)+"; until then no call is accepted")
	}
	return warnings
}

// goneText returns, as a clause, what has become of the journal and what to do about it.
func goneText(gone *journal.GoneError) string {
	what := "was deleted or moved away"
	switch {
	case gone.Replaced():
		what = "was replaced by another file"
	case !gone.Absent():
		what = fmt.Sprintf("cannot be reached any more (%v)", gone.Err)
	}
	return fmt.Sprintf("%s, which holds the journal, %s while the daemon runs. Put it back, or restart toold "+
		"(`toold start --replace`; one that was started with `toold serve`, where that was done): the new daemon goes on with the journal that it finds there, or begins a new one",
		gone.Path, what)
}
