// The Unix socket: where it is, which user may connect, and that only one daemon has it.

package access

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// DefaultSocket is where a daemon listens and its clients look: $XDG_RUNTIME_DIR/toold/toold.sock, else
// ~/.local/state/toold/toold.sock.
func DefaultSocket() string {
	return filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), homeState()), "toold", "toold.sock")
}

// DefaultStateDir is where a daemon keeps its journal and outputs: $XDG_STATE_HOME/toold, else ~/.local/state/toold.
func DefaultStateDir() string {
	return filepath.Join(cmp.Or(os.Getenv("XDG_STATE_HOME"), homeState()), "toold")
}

func homeState() string {
	home, _ := os.UserHomeDir() // empty if it is not known
	return filepath.Join(cmp.Or(home, "/"), ".local", "state")
}

// Listen opens the socket at path, in a directory that only this user can enter, and holds a lock beside it for as
// long as the listener is open. A socket that a dead daemon left is replaced; a living one is an error that names its
// process id.
func Listen(path string) (net.Listener, error) {
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	l := &Socket{path: path, lock: lock}
	if err := l.openLocked(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

// Adopt returns the listener for a socket that another process has made and listens on, such as systemd, whose path must be in a
// directory that only this user can enter. It holds the lock beside the socket as [Listen] does. At its end the socket stays
// where it is: it is that process's. The file is closed.
func Adopt(file *os.File) (*Socket, error) {
	inherited, err := net.FileListener(file)
	_ = file.Close() // the listener has a descriptor of its own
	if err != nil {
		return nil, fmt.Errorf("the inherited descriptor is not a socket that listens: %w", err)
	}
	l := &Socket{adopted: true}
	if err := l.adopt(inherited); err != nil {
		return nil, errors.Join(err, inherited.Close())
	}
	if l.lock, err = lockSocket(l.path); err != nil {
		return nil, errors.Join(err, inherited.Close())
	}
	return l, nil
}

// adopt takes over a listener, if it is a Unix socket at a path that belongs to this user alone.
func (l *Socket) adopt(inherited net.Listener) (err error) {
	l.path = inherited.Addr().String()
	var is bool
	if l.socket, is = inherited.(*net.UnixListener); !is || !filepath.IsAbs(l.path) {
		return fmt.Errorf("the inherited socket %s %q is not a Unix socket with an absolute path", inherited.Addr().Network(), l.path)
	}
	if err := privateDir(filepath.Dir(l.path)); err != nil {
		return err
	}
	l.made, err = os.Lstat(l.path)
	if err == nil && l.made.Mode().Type() != fs.ModeSocket {
		err = fmt.Errorf("%s is not the inherited socket any more", l.path)
	}
	return err
}

// privateDir makes dir with mode 0700, or checks that it is this user's and closed to others.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Lstat(dir, &stat); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to user %d; toold does not use it", dir, stat.Uid)
	}
	if stat.Mode&0o077 != 0 {
		return fmt.Errorf("%s can be entered by other users (mode %o); run `chmod 700 %s`", dir, stat.Mode&0o777, dir)
	}
	return nil
}

// removeStale removes a socket that a dead daemon left. A file of another kind, or a socket that answers, is an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket; toold does not replace it. Name another path with --socket", path)
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("another program listens on %s. Name another path with --socket", path), conn.Close())
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err // it may be a program that is too busy to answer
}

// A Socket listens at one path and holds the lock until it is closed. If its socket file is deleted it can listen there again,
// without an effect on connections or on a caller of Accept. Its methods are safe for concurrent use.
type Socket struct {
	path string
	lock *Lock

	mu      sync.Mutex // guards the rest
	socket  *net.UnixListener
	made    fs.FileInfo // of the socket
	adopted bool        // another process has made the socket
	passed  bool        // the next program of this process goes on with it
	closed  bool
}

// openLocked makes the socket. The caller has locked mu, or has made the listener.
func (l *Socket) openLocked() error {
	if err := removeStale(l.path); err != nil {
		return err
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.path, Net: "unix"})
	if err != nil {
		return err
	}
	socket.SetUnlinkOnClose(false) // by then another socket may be at the path
	err = os.Chmod(l.path, 0o600)
	made, looked := os.Lstat(l.path)
	if err := errors.Join(err, looked); err != nil {
		return errors.Join(err, socket.Close())
	}
	l.socket, l.made, l.adopted = socket, made, false
	return nil
}

// there reports whether the socket at the path is the one that open has made.
func (l *Socket) there() bool {
	now, err := os.Lstat(l.path)
	return err == nil && os.SameFile(now, l.made)
}

// Keep makes the socket and its lock file again if they were deleted or replaced, and reports
// whether it has listened again. The error is why it cannot: clients then cannot connect, and the
// next Keep tries again.
func (l *Socket) Keep() (again bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.passed || l.there() && l.lock.there() {
		return false, nil
	}
	if err := privateDir(filepath.Dir(l.path)); err != nil {
		return false, err
	}
	if err := l.lock.Keep(); err != nil || l.there() {
		return false, err
	}
	old := l.socket
	if err := l.openLocked(); err != nil {
		return false, err
	}
	return true, old.Close()
}

// Accept waits for the next connection, at whichever socket is at the path then.
func (l *Socket) Accept() (net.Conn, error) {
	for {
		socket := l.current()
		conn, err := socket.Accept()
		if err != nil && l.current() != socket {
			continue
		}
		return conn, err
	}
}

func (l *Socket) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.socket
}

// Path returns where the socket is.
func (l *Socket) Path() string { return l.path }

// Addr returns the socket's path.
func (l *Socket) Addr() net.Addr { return l.current().Addr() }

// Close ends the listener, removes the socket unless it was adopted or passed, and releases the lock.
func (l *Socket) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.socket.Close()
	if !l.closed && !l.adopted && !l.passed && l.there() {
		err = errors.Join(err, os.Remove(l.path))
	}
	l.closed = true
	return errors.Join(err, l.lock.Close())
}

// A socketInfo is the auth info of a connection on the Unix socket: its process and user, from the kernel.
type socketInfo struct {
	credentials.CommonAuthInfo
	pid int
	uid int
	// own: a call of this daemon started the process.
	own bool
}

// AuthType returns "peercred".
func (socketInfo) AuthType() string { return "peercred" }

// handshakeSocket reads the peer's identity from the kernel.
func handshakeSocket(conn *net.UnixConn) (net.Conn, credentials.AuthInfo, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var found error
	info := socketInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	if err := raw.Control(func(fd uintptr) { info.pid, info.uid, found = peerOf(int(fd)) }); err != nil {
		return nil, nil, err
	}
	if found == nil {
		info.own, found = startedHere(info.pid)
	}
	return conn, info, found
}
