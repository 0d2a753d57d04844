package daemon

// Who asks, and what is whose: each request is let in, or refused, before a byte of its message is taken. It does not
// know how a connection came about, nor what is asked.
//
// This is no interceptor, since those of unary methods run when the message has been read: whoever is not known could
// have megabytes kept for him.

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
)

// A principal is somebody who has sessions of his own: "uid:1000" on the Unix socket, on TCP "token:NAME" or
// "certificate:COMMON NAME". The empty one has none.
type principal string

// ofUser is the principal of a user of this machine.
func ofUser(uid int) principal { return principal("uid:" + strconv.Itoa(uid)) }

// ourselves is the user that the daemon runs as.
func ourselves() principal { return ofUser(os.Getuid()) }

type principalKey struct{}

// principalOf is who sent the request.
func principalOf(ctx context.Context) principal {
	who, _ := ctx.Value(principalKey{}).(principal) // empty: it did not come over the wire
	return who
}

// owner is whose the session is. Those of an older daemon are its user's.
func (m meta) owner() principal {
	if m.Owner == "" {
		return ourselves()
	}
	return m.Owner
}

// admit is called where a connection is read, so in the order in which its requests were sent. The methods run on
// goroutines of their own and so in any order.
func (d *Daemon) admit(ctx context.Context, request *tap.Info) (context.Context, error) {
	who, err := identify(ctx, request.Header)
	delete(request.Header, "authorization") // nobody behind this needs it, so nobody can write it down
	if err != nil {
		d.tellRefused(ctx, request.FullMethodName, err)
		return ctx, err
	}
	ctx = context.WithValue(ctx, principalKey{}, who) // there is no other way from here to the method
	return context.WithValue(ctx, arrivalKey{}, d.arrivals.Add(1)), nil
}

// identify tells who sent a request.
func identify(ctx context.Context, header metadata.MD) (principal, error) {
	from, ok := grpcpeer.FromContext(ctx)
	if ok {
		switch who := from.AuthInfo.(type) {
		case peer:
			return who.identify()
		case visit:
			return who.identify(header)
		}
	}
	return "", refuse(codes.Unauthenticated, "unknown_peer", "The connection does not tell which user it comes from.")
}

// identify lets only the daemon's own user in, and no process that a call has started: it could allow itself what its
// call was not allowed.
func (p peer) identify() (principal, error) {
	if p.uid != os.Getuid() {
		return "", refuse(codes.PermissionDenied, "other_user", "This daemon serves user %d alone; the connection comes from user %d.", os.Getuid(), p.uid)
	}
	if p.own {
		return "", ownChild(p.pid)
	}
	return ofUser(p.uid), nil
}

func ownChild(pid int) *refusal {
	return refuse(codes.PermissionDenied, "own_child", "The connection comes from process %d, which a call of this daemon has started. Calls cannot use the daemon.", pid)
}

// Of refused requests so many a minute are logged, for each of their reasons: whoever knocks in vain must not fill the
// disk.
const refusalsLogged = 10

// quietly is a log that takes only the first of many equal lines.
func quietly(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, refusalsLogged, 0)
	}))
}

// tellRefused writes down that somebody was not let in. What he sent as a credential is not known here.
func (d *Daemon) tellRefused(ctx context.Context, method string, err error) {
	fields := []zap.Field{zap.String("method", short(method))}
	if from, ok := grpcpeer.FromContext(ctx); ok && from.Addr != nil {
		fields = append(fields, zap.Stringer("from", from.Addr))
	}
	reason := "unknown_peer"
	var refused *refusal
	if errors.As(err, &refused) {
		reason = refused.reason
		fields = append(fields, zap.NamedError("cause", refused.cause))
	}
	d.refusals.Warn("a request was refused: "+reason, fields...)
}

// unknownSession says that there is no session of that name, for whoever asks.
func unknownSession(name string) *refusal {
	return refuse(codes.NotFound, "unknown_session", "There is no session %q.", short(name)).at("session_id")
}
