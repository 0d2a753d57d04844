// Package connect finds the daemon that a command talks to, and starts, replaces or ends it.
//
// A socket counts only if it is the user's own: its folder and the process that listens are checked before anything is
// sent, on each connection again. A daemon whose socket is elsewhere or gone is found by the locks that it holds. What a lock file
// names is only a hint: the socket is checked like any other, and a process counts only while it holds the lock.
// A daemon is started under a lock, so that two clients start one, and reports on a pipe that it listens.
//
// Over TCP, the token comes from a file, never from the command line, and goes unencrypted only to loopback.
//
// The package does not know what is sent over a connection.
package connect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/rawio"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// errNone means that no daemon listens on the socket: it does not exist, or was left by a daemon that has ended.
var errNone = errors.New("no daemon answers")

// A Finder finds the daemon that a process talks to, starts it, and replaces it. It is not safe for concurrent use.
type Finder struct {
	*cli.Console
	Version string // of this program
	Socket  string // its absolute path
	Remote  remote // a daemon over TCP, which takes the place of Socket

	state     string     // the state directory, once the daemon has named it, or was found through its lock; see StateDir
	replaced  bool       // an older daemon has been looked for
	successor *successor // of the daemon that was replaced; nil: none was
}

// connectTries is how often a connection is made to a daemon that goes away meanwhile.
const connectTries = 3

// Connect returns a connection to the daemon, which the caller closes. It starts the daemon if none answers, and replaces one
// that is older than this program and idle. Errors are cli.Errors.
func (f *Finder) Connect(ctx context.Context) (*toold.Conn, error) {
	l, err := f.reach(ctx, f.launch)
	if err != nil || f.Remote.Address != "" {
		return l, err
	}
	return f.upgraded(ctx, l)
}

// Action adapts a command's body that talks to the daemon: it connects and closes the connection. See [cli.Action].
func (f *Finder) Action(body func(ctx context.Context, l *toold.Conn, args []string) error) func(*cobra.Command, []string) error {
	return cli.Action(func(ctx context.Context, args []string) error {
		l, err := f.Connect(ctx)
		if err != nil {
			return err
		}
		defer l.Close()
		return body(ctx, l, args)
	})
}

// Redial returns a Dial that returns l first, unless it is nil, and connects each time after that.
func (f *Finder) Redial(l *toold.Conn) toold.Dial {
	return func(ctx context.Context) (*toold.Conn, error) {
		if first := l; first != nil {
			l = nil
			return first, nil
		}
		return f.Connect(ctx)
	}
}

// Running returns a connection to a daemon that runs already; it starts none.
func (f *Finder) Running(ctx context.Context) (*toold.Conn, error) {
	if f.UnitWaits() {
		return nil, cli.NoDaemon("no daemon runs. systemd listens at %s, and starts one for the next client.", f.Socket)
	}
	return f.reach(ctx, func(ctx context.Context) error {
		if err := f.located(ctx); !errors.Is(err, errNone) {
			return err
		}
		return cli.NoDaemon("no daemon answers at %s. Start one with \"toold start\".", f.Socket)
	})
}

// reach returns a link to a daemon that has answered. absent is called when none does; it
// returns nil when one should by then. A daemon that is ending may accept a connection and then hang up: then there is none a
// moment later.
func (f *Finder) reach(ctx context.Context, absent func(context.Context) error) (*toold.Conn, error) {
	if f.Remote.Address != "" {
		return f.reachRemote(ctx)
	}
	var err error
	for range connectTries {
		err = f.find(ctx)
		silent, is := errors.AsType[*silentDaemon](err)
		if errors.Is(err, errNone) || is && errors.Is(silent.cause, errNone) { // it may be about to listen, which is absent's to wait for
			err = absent(ctx)
		}
		if err != nil {
			return nil, unreachable(err)
		}
		var l *toold.Conn
		if l, err = Dial(f.Socket); err != nil {
			return nil, err
		}
		if err = awaitAnswer(ctx, l); err == nil {
			return l, nil
		}
		l.Close()
	}
	return nil, unreachable(err)
}

// reachRemote does so over TCP, where no daemon is started.
func (f *Finder) reachRemote(ctx context.Context) (*toold.Conn, error) {
	l, err := f.Remote.dial()
	if err != nil {
		return nil, err
	}
	if _, err := l.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{}); err != nil { // which returns the reason, where a state does not
		l.Close()
		if failed := f.Remote.handshake.Load(); failed != nil {
			return nil, cli.NoDaemon("no encrypted connection to %s: %v", f.Where(), *failed)
		}
		if failed := f.Remote.dialed.Load(); failed != nil {
			return nil, cli.NoDaemon("nothing answers at %s: %v", f.Where(), *failed)
		}
		if f.Remote.plain() && status.Code(err) == codes.Unavailable && toold.Reason(err) == "" {
			return nil, cli.NoDaemon("%s hangs up. If TLS is served there, as by a cluster's gateway, name the authorities of its certificate with --ca.", f.Where())
		}
		return nil, err
	}
	return l, nil
}

// Where returns the address of the daemon: its socket, or tcp://HOST:PORT.
func (f *Finder) Where() string {
	if f.Remote.Address != "" {
		return "tcp://" + f.Remote.Address
	}
	return f.Socket
}

// awaitAnswer returns when the daemon has answered on the connection, or hung up.
func awaitAnswer(ctx context.Context, l *toold.Conn) error {
	l.Connect()
	for {
		switch state := l.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errors.New("the daemon hung up before it had answered; it may be ending: try again")
		default:
			if !l.WaitForStateChange(ctx, state) {
				return ctx.Err()
			}
		}
	}
}

func unreachable(err error) error {
	var e *cli.Error
	if errors.As(err, &e) {
		return err
	}
	return cli.NoDaemon("%s", err)
}

// Dial returns a connection to the daemon at a socket, which is checked when a request is made. It starts none.
func Dial(socket string) (*toold.Conn, error) {
	conn, err := toold.Connect("passthrough:///toold",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return open(ctx, socket)
		}))
	if err != nil {
		return nil, cli.NoDaemon("the connection to %s cannot be set up: %v", socket, err)
	}
	return conn, nil
}

func probe(ctx context.Context, socket string) error {
	conn, err := open(ctx, socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// open connects to the socket and checks which user holds it. The process that began to listen may be a service manager.
func open(ctx context.Context, socket string) (net.Conn, error) {
	if err := ownFolder(filepath.Dir(socket)); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w at %s", errNone, socket)
	case errors.Is(err, syscall.EINVAL):
		return nil, fmt.Errorf("the socket's path %s is too long for a Unix socket (about 100 bytes): name a shorter one with --socket", socket)
	case err != nil:
		return nil, fmt.Errorf("the socket %s cannot be reached: %w", socket, err)
	}
	uid, err := peer(conn.(*net.UnixConn))
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("the socket %s is held by user %d and not by you (%d): it is not trusted", socket, uid, os.Geteuid())
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return rawio.NewConn(conn.(*net.UnixConn)), nil
}

// ownFolder refuses a folder in which another user could have put the socket. A missing one holds no socket.
func ownFolder(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no folder %s", errNone, dir)
	}
	if err != nil {
		return fmt.Errorf("the socket's folder cannot be looked at: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: name another socket with --socket", dir)
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() {
		return fmt.Errorf("the socket's folder %s belongs to user %d and not to you (%d): it is not trusted", dir, owner, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("the socket's folder %s is open to others (mode %04o): run \"chmod 700 %s\", or name another socket with --socket", dir, mode, dir)
	}
	return nil
}
