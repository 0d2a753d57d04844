package connect

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestRemoteIsGone: what is written of a daemon elsewhere that does not answer has its address and the reason, and does not
// advise to start a daemon here.
func TestRemoteIsGone(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte(strings.Repeat("x", 43)), 0o600); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := silent.Addr().String()
	closing := make(chan struct{})
	go func() { // as a server of TLS does with a client that speaks something else
		defer close(closing)
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	check := func(err error, want string) {
		t.Helper()
		e, is := errors.AsType[*cli.Error](err)
		if !is || e.Code != cli.ExitNoDaemon || !strings.Contains(e.Text, "tcp://"+address) || !strings.Contains(e.Text, want) || strings.Contains(e.Text, "toold start") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	finder := func() *Finder {
		f := &Finder{Console: &cli.Console{}}
		f.Remote.Address, f.Remote.tokenFile = address, secret
		return f
	}
	_, err = finder().Running(t.Context())
	check(err, "--ca")
	_ = silent.Close()
	<-closing
	_, err = finder().Connect(t.Context())
	check(err, "connection refused")
	f := finder()
	conn, err := f.Remote.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Sessions.ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if text := cli.Describe(err); status.Code(err) != codes.Unavailable || !strings.Contains(text, "tcp://"+address) || strings.Contains(text, "toold start") {
		t.Errorf("%v is described as %q", err, text)
	}
}
