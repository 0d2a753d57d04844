// How a command finds its daemon: the socket's identity is checked before a byte is trusted to it, on each connection
// again, and a daemon is started when none answers. This file does not know what is said over the connection.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// errNobody says that no daemon listens on the socket: there is none, or it belonged to one that is gone.
var errNobody = errors.New("no daemon answers")

// A link is a connection to a daemon. Whoever made it closes it.
type link struct {
	conn     *grpc.ClientConn
	tools    tooldv1.ToolServiceClient
	sessions tooldv1.SessionServiceClient
	daemon   tooldv1.DaemonServiceClient
}

func (l *link) close() { _ = l.conn.Close() }

// connectTries is how often a connection is made to a daemon that goes away meanwhile.
const connectTries = 3

// connect returns a link to the daemon, which is started when none answers, and replaced when it is older than this program
// and idle.
func (s *app) connect(ctx context.Context) (*link, error) {
	l, err := s.reach(ctx, s.launch)
	if err != nil || s.remote.address != "" {
		return l, err
	}
	return s.upgraded(ctx, l)
}

// connectRunning returns a link to a daemon that runs already; none: exit code 3.
func (s *app) connectRunning(ctx context.Context) (*link, error) {
	return s.reach(ctx, func(ctx context.Context) error {
		if err := s.located(ctx); !errors.Is(err, errNobody) {
			return err
		}
		return noDaemon("no daemon answers at %s. Start one with \"toold start\".", s.socket)
	})
}

// reach returns a link to a daemon that has answered. absent says what to do when none does, and is content if one does by
// then. A daemon that is dying may still be connected to and then hang up: then there is none a moment later.
func (s *app) reach(ctx context.Context, absent func(context.Context) error) (*link, error) {
	if s.remote.address != "" {
		return s.reachRemote(ctx)
	}
	var err error
	for range connectTries {
		err = s.find(ctx)
		if silent := new(silentDaemon); errors.As(err, &silent) {
			silent.process.release()
			if errors.Is(silent.cause, errNobody) { // it may be about to listen, which is absent's to wait for
				err = silent.cause
			}
		}
		if errors.Is(err, errNobody) {
			err = absent(ctx)
		}
		if err != nil {
			return nil, unreachable(err)
		}
		var l *link
		if l, err = dial(s.socket); err != nil {
			return nil, err
		}
		if err = l.answered(ctx); err == nil {
			return l, nil
		}
		l.close()
	}
	return nil, unreachable(err)
}

// reachRemote does so over TCP, where no daemon is started.
func (s *app) reachRemote(ctx context.Context) (*link, error) {
	l, err := s.remote.dial()
	if err != nil {
		return nil, err
	}
	if _, err := l.daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{}); err != nil { // which says why, where a state does not
		l.close()
		if failed := s.remote.handshake.Load(); failed != nil {
			return nil, noDaemon("no encrypted connection to %s: %v", s.where(), *failed)
		}
		return nil, err
	}
	return l, nil
}

// where names the daemon that is meant.
func (s *app) where() string {
	if s.remote.address != "" {
		return "tcp://" + s.remote.address
	}
	return s.socket
}

// answered returns when the daemon has answered on the connection, or hung up.
func (l *link) answered(ctx context.Context) error {
	l.conn.Connect()
	for {
		switch state := l.conn.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errors.New("the daemon hung up before it had answered; it may be ending: try again")
		default:
			if !l.conn.WaitForStateChange(ctx, state) {
				return ctx.Err()
			}
		}
	}
}

func unreachable(err error) error {
	var e *ending
	if errors.As(err, &e) {
		return err
	}
	return noDaemon("%s", err)
}

func dial(socket string) (*link, error) {
	conn, err := grpc.NewClient("passthrough:///toold",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, _, err := open(ctx, socket)
			return conn, err
		}))
	if err != nil {
		return nil, noDaemon("the connection to %s cannot be set up: %v", socket, err)
	}
	return newLink(conn), nil
}

func newLink(conn *grpc.ClientConn) *link {
	return &link{
		conn:     conn,
		tools:    tooldv1.NewToolServiceClient(conn),
		sessions: tooldv1.NewSessionServiceClient(conn),
		daemon:   tooldv1.NewDaemonServiceClient(conn),
	}
}

func probe(ctx context.Context, socket string) error {
	conn, _, err := open(ctx, socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// open connects to the socket and checks who holds it. The process is the one that began to listen.
func open(ctx context.Context, socket string) (net.Conn, int, error) {
	if err := ownFolder(filepath.Dir(socket)); err != nil {
		return nil, 0, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, 0, fmt.Errorf("%w at %s", errNobody, socket)
	case errors.Is(err, syscall.EINVAL):
		return nil, 0, fmt.Errorf("the socket's path %s is too long for a Unix socket (about 100 bytes): name a shorter one with --socket", socket)
	case err != nil:
		return nil, 0, fmt.Errorf("the socket %s cannot be reached: %w", socket, err)
	}
	uid, pid, err := peer(conn.(*net.UnixConn))
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("the socket %s is held by user %d and not by you (%d): it is not trusted", socket, uid, os.Geteuid())
	}
	if err != nil {
		_ = conn.Close()
		return nil, 0, err
	}
	return conn, pid, nil
}

// ownFolder refuses a folder in which somebody else could have put the socket. A missing one holds no socket.
func ownFolder(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no folder %s", errNobody, dir)
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
