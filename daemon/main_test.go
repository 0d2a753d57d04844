package daemon_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/lsp"
	"github.com/toold/toold/tools/media/pdf"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	if code, is := pdf.Main(os.Args); is {
		syscall.Exit(code) // os.Exit takes a second under the race detector
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	if fillers := os.Getenv(mcpFillers); fillers != "" {
		if err := mcpMain(fillers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if socket := os.Getenv(daemonSocket); socket != "" {
		if err := daemonMain(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if socket := os.Getenv(callSocket); socket != "" {
		err := knock(socket)
		if reason := reasonOf(err); reason != "" || err == nil {
			fmt.Println(reason)
		} else {
			fmt.Println(status.Code(err))
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// callSocket makes the test binary a client that knocks at the daemon, at a socket or, with "tcp:" before it, at an
// address, with the token of callBearer.
const (
	callSocket = "DAEMON_TEST_CALL"
	callBearer = "DAEMON_TEST_BEARER"
)

func knock(socket string) error {
	target, options := "unix:"+socket, []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if address, tcp := strings.CutPrefix(socket, "tcp:"); tcp {
		target, options = "passthrough:///"+address, append(options, grpc.WithPerRPCCredentials(bearer(os.Getenv(callBearer))))
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = tooldv1.NewDaemonServiceClient(conn).GetInfo(context.Background(), &tooldv1.GetInfoRequest{})
	return err
}

// These make the test binary a daemon that can be killed.
const (
	daemonSocket = "DAEMON_TEST_SOCKET"
	daemonState  = "DAEMON_TEST_STATE"
	daemonRoot   = "DAEMON_TEST_ROOT"
	daemonRules  = "DAEMON_TEST_SETTINGS"
)

func daemonMain(socket string) error {
	d, err := daemon.New(daemon.Config{
		Tools: append(toolset(), lsp.Tool(), lethalTool()), StateDir: os.Getenv(daemonState), Root: os.Getenv(daemonRoot), Version: "test", Log: zap.NewNop(),
		UserSettings: os.Getenv(daemonRules),
	})
	if err != nil {
		return err
	}
	listener, err := access.Listen(socket)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	return d.Serve(listener)
}
