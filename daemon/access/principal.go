// Package access decides who may use the daemon: it holds the listeners, the locks that keep a
// socket and a state directory to one daemon, and the principal and the process behind a request.
// It does not know what is served, nor what a principal may do.
package access

import (
	"context"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/toold/toold/daemon/apierror"
)

// A Principal is a user or client that has sessions of its own: "uid:1000" on the Unix socket, on TCP "token:NAME" or
// "certificate:COMMON NAME". The empty one has none.
type Principal string

// OfUser returns the principal of a user of this machine.
func OfUser(uid int) Principal { return Principal("uid:" + strconv.Itoa(uid)) }

// Self returns the principal of the user that the daemon runs as.
func Self() Principal { return OfUser(os.Getuid()) }

// Remote reports whether the principal comes over TCP.
func (p Principal) Remote() bool { return !strings.HasPrefix(string(p), "uid:") }

// User returns the user who sent a request, if it came over the Unix socket; -1 if it came over
// TCP, where the kernel has none; 0 otherwise.
func User(ctx context.Context) int {
	switch who := authInfo(ctx).(type) {
	case socketInfo:
		return who.uid
	case tcpInfo:
		return -1
	}
	return 0
}

// authInfo returns the auth info of the connection that a request came on; nil: it has none.
func authInfo(ctx context.Context) credentials.AuthInfo {
	if from, ok := grpcpeer.FromContext(ctx); ok {
		return from.AuthInfo
	}
	return nil
}

// Identify returns the principal that sent a request with the header. The error is an *apierror.Error.
func Identify(ctx context.Context, header metadata.MD) (Principal, error) {
	switch who := authInfo(ctx).(type) {
	case socketInfo:
		return who.identify()
	case tcpInfo:
		return who.identify(header)
	}
	return "", apierror.New(codes.Unauthenticated, "unknown_peer", "The user of the connection is unknown.")
}

// identify accepts the daemon's own user only, and no process that a call started: such a process could allow itself what its call
// was denied.
func (p socketInfo) identify() (Principal, error) {
	if p.uid != os.Getuid() {
		return "", apierror.New(codes.PermissionDenied, "other_user", "This daemon serves only user %d; the connection comes from user %d.", os.Getuid(), p.uid)
	}
	if p.own {
		return "", ownChild(p.pid)
	}
	return OfUser(p.uid), nil
}

func ownChild(pid int) *apierror.Error {
	return apierror.New(codes.PermissionDenied, "own_child", "The connection comes from process %d, which a call of this daemon has started. Calls cannot use the daemon.", pid)
}
