// Package wire is one bare stream to a daemon, for programs that measure or maltreat it, and what the kernel reports about the
// daemon's process. Nothing is resumed, repeated or kept: what only wants its calls run uses clients/go.
package wire

import (
	"context"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Dial returns a connection to the daemon at a socket. It does not check whose process that is.
func Dial(socket string) (*toold.Conn, error) {
	return toold.Connect("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// DialTCP returns a connection to the daemon at a TCP address, without TLS, for the principal whose token it shows.
func DialTCP(address, token string) (*toold.Conn, error) {
	return toold.Connect("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(bearer(token)))
}

// bearer is a token, as gRPC sends it.
type bearer string

// GetRequestMetadata returns the header that shows the token.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity returns false: the address is on the loopback.
func (bearer) RequireTransportSecurity() bool { return false }

// A Stream is one Execute stream.
type Stream struct {
	tooldv1.ToolService_ExecuteClient
	HangUp context.CancelFunc // ends it, from any goroutine
}

// Attach opens a stream and attaches it. Its first event is still to be received.
func Attach(ctx context.Context, conn *toold.Conn, attach *tooldv1.Attach) (*Stream, error) {
	ctx, hangUp := context.WithCancel(ctx)
	stream, err := conn.Tools.Execute(ctx)
	if err == nil {
		err = stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: attach}})
	}
	if err != nil {
		hangUp()
		return nil, err
	}
	return &Stream{stream, hangUp}, nil
}

// Use sends a tool use, whose input is JSON text.
func (s *Stream) Use(turn, id, name, input string) error {
	return s.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
		Id: id, Name: name, TurnId: turn, Arguments: &tooldv1.ToolUse_InputJson{InputJson: input},
	}}})
}

// Figure returns one of the kernel's numbers about a process, such as VmRSS, which is in KiB.
func Figure(pid int, name string) (n int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		return 0, fmt.Errorf("the kernel gives no %s of process %d: %w", name, pid, err)
	}
	return n, nil
}
