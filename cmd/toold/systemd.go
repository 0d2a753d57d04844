// The daemon as a unit of systemd: the socket that it is handed, and what the service manager is told. Without a service manager,
// nothing of this does anything.

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// socket returns the listener for the Unix socket: the one that the program before has passed, or that this process was handed
// (sd_listen_fds(3)), which then is the daemon's socket, or a new one. What this process starts is handed neither the socket nor the
// variables that name it.
func (p *program) socket(passed []access.PassedSocket) (net.Listener, error) {
	if len(passed) > 0 {
		socket, err := access.TakeSocket(passed[0])
		if err != nil {
			return nil, err
		}
		p.daemon.Socket = socket.Path()
		return socket, nil
	}
	handed := activation.Files(true)
	switch len(handed) {
	case 0:
		return access.Listen(p.daemon.Socket)
	case 1:
		socket, err := access.Adopt(handed[0])
		if err != nil {
			return nil, err
		}
		p.daemon.Socket = socket.Path()
		return socket, nil
	}
	for _, file := range handed {
		_ = file.Close()
	}
	return nil, cli.Misused("toold serve was handed %d sockets and can serve one: a toold.socket has one ListenStream=", len(handed))
}

// A serviceManager is the program that started the daemon, if it wants to know how the daemon is (sd_notify(3)).
type serviceManager struct {
	address  string        // of its socket; empty: there is none
	watchdog time.Duration // within which it must hear from the daemon again and again; 0: it need not
}

// takeServiceManager takes the service manager's variables out of the environment: what the daemon starts must not speak for it.
func takeServiceManager() serviceManager {
	m := serviceManager{address: os.Getenv("NOTIFY_SOCKET")}
	_ = os.Unsetenv("NOTIFY_SOCKET")
	m.watchdog, _ = systemd.SdWatchdogEnabled(true) // an interval that cannot be read is none
	return m
}

// variables returns the service manager's variables for the next program of this process.
func (m serviceManager) variables() (env []string) {
	if m.address != "" {
		env = append(env, "NOTIFY_SOCKET="+m.address)
	}
	if m.watchdog > 0 {
		env = append(env, fmt.Sprintf("WATCHDOG_USEC=%d", m.watchdog.Microseconds()), fmt.Sprintf("WATCHDOG_PID=%d", os.Getpid()))
	}
	return env
}

// tell sends a state. It is lost if the service manager does not read: there is nobody else to tell.
func (m serviceManager) tell(state string) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.address, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}

// endMargin is how long the daemon may take to end when its calls have had their drain time.
const endMargin = 30 * time.Second

// supervise reports to the service manager that the daemon at the socket is ready, that it still answers, and that it is ending,
// until ctx ends. drain is how long its calls may take to end then.
func (m serviceManager) supervise(ctx context.Context, socket string, ending <-chan struct{}, drain time.Duration) {
	if m.address == "" {
		return
	}
	var tick <-chan time.Time
	if m.watchdog > 0 {
		ticker := time.NewTicker(m.watchdog / 2)
		defer ticker.Stop()
		tick = ticker.C
	}
	conn, err := connect.Dial(socket)
	if err != nil {
		return // then it is not ready either
	}
	defer conn.Close()
	m.tell(systemd.SdNotifyReady)
	for {
		select {
		case <-ending:
			m.tell(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d", systemd.SdNotifyStopping, (drain + endMargin).Microseconds()))
			ending = nil
		case <-tick:
			m.tick(ctx, conn)
		case <-ctx.Done():
			return
		}
	}
}

// tick reports to the service manager that the daemon lives if it answers a request as a client would send it: the answer takes the
// connection, the server and the lock of each session.
func (m serviceManager) tick(ctx context.Context, conn *toold.Conn) {
	ctx, cancel := context.WithTimeout(ctx, m.watchdog/2)
	defer cancel()
	_, err := conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
	default: // a refusal is an answer too
		m.tell(systemd.SdNotifyWatchdog)
	}
}
