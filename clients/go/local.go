package toold

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Local is the [Dial] of the daemon at TOOLD_ADDRESS, which is "unix:" and a path, or else of this user's daemon, which the program toold
// on PATH starts if none runs. The Reason of an error is "no_daemon". A daemon over TCP needs a Dial of the program's own: [Connect] with
// the credentials of TLS and the token.
func Local(ctx context.Context) (*Conn, error) {
	address, err := os.Getenv("TOOLD_ADDRESS"), error(nil)
	if address == "" {
		address, err = start(ctx)
	}
	if err != nil {
		return nil, fault(codes.Unavailable, "no_daemon", "toold cannot start the daemon: "+err.Error())
	}
	if !strings.HasPrefix(address, "unix:") {
		return nil, fault(codes.InvalidArgument, "no_daemon", "TOOLD_ADDRESS is "+address+": write unix:/path, or use Connect for a daemon over TCP")
	}
	return Connect(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// start returns the address at which the daemon serves its own user, after it has started one if need be.
func start(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "toold", "start", "--json").Output()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", errors.New(strings.TrimSpace(string(ended.Stderr)))
	}
	if err != nil {
		return "", err
	}
	var daemon struct{ Listeners []struct{ Address string } }
	if err := json.Unmarshal(output, &daemon); err != nil {
		return "", err
	}
	for _, listener := range daemon.Listeners {
		if strings.HasPrefix(listener.Address, "unix:") {
			return listener.Address, nil
		}
	}
	return "", errors.New("it listens on no Unix socket")
}

// fault returns an error with a Reason.
func fault(code codes.Code, reason, message string) error {
	st, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "toold"})
	if err != nil {
		return status.Error(code, message)
	}
	return st.Err()
}
