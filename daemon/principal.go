// Who asks, and what is whose: each request is let in, or refused, before a byte of its message is taken. It does not
// know how a connection came about, nor what is asked.
//
// This is not an interceptor, since those of unary methods run when the message has been read: an unknown client could make
// the daemon hold megabytes.

package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/toold/toold/daemon/convert"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
)

// An admission is what is known of a request since it was let in. It is empty for what did not come over the wire.
type admission struct {
	who     access.Principal
	arrival uint64 // its place among all requests of the daemon, in the order in which they were sent
}

type admissionKey struct{}

func admissionOf(ctx context.Context) admission {
	found, _ := ctx.Value(admissionKey{}).(admission)
	return found
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

// admit is called where a connection is read, so in the order in which its requests were sent. The methods run on
// goroutines of their own and so in any order.
func (d *Daemon) admit(ctx context.Context, request *tap.Info) (context.Context, error) {
	who, err := access.Identify(ctx, request.Header)
	delete(request.Header, "authorization") // nothing after this needs it, so nothing can log it
	if err != nil {
		d.logRefused(ctx, request.FullMethodName, err)
		return ctx, err
	}
	// there is no other way from here to the method
	return context.WithValue(ctx, admissionKey{}, admission{who, d.admission.arrivals.Add(1)}), nil
}

// Of refused requests so many a minute are logged, for each of their reasons: a refused client must not fill the
// disk.
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
