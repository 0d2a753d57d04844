package daemon

// The socket: where it is, who may connect, and that one daemon has it. Knows nothing of what is served there.

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// DefaultSocket is where a daemon listens and its clients look: $XDG_RUNTIME_DIR/toold/toold.sock, else
// ~/.local/state/toold/toold.sock.
func DefaultSocket() string {
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		return filepath.Join(runtime, "toold", "toold.sock")
	}
	return filepath.Join(home(), ".local", "state", "toold", "toold.sock")
}

// DefaultStateDir is where a daemon keeps its journal and outputs: $XDG_STATE_HOME/toold, else ~/.local/state/toold.
func DefaultStateDir() string {
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "toold")
	}
	return filepath.Join(home(), ".local", "state", "toold")
}

func home() string {
	if dir, err := os.UserHomeDir(); err == nil {
		return dir
	}
	return "/"
}

// Listen opens the socket at path, in a directory that only this user can enter, and holds a lock beside it for as
// long as the listener is open. A socket that a dead daemon left is replaced; a living one is an error that names its
// process id.
func Listen(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	lock, err := takeLock(path + ".lock")
	if err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close(), lock.Close())
	}
	return &lockedListener{listener, lock}, nil
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

// takeLock holds the file at path for as long as it is open. A child that a killed daemon was just about to start holds
// it for the moment until it has become another program, and is waited for.
// removeStale removes the socket that a dead daemon left. What is no socket, or still answers, is somebody else's.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is there and is no socket; toold does not replace it. Name another path with --socket", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		return errors.Join(fmt.Errorf("another program listens on %s. Name another path with --socket", path), conn.Close())
	}
	return os.Remove(path)
}

func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		owner, _ := os.ReadFile(path) // without it, or with nonsense in it, somebody lives
		pid, _ := strconv.Atoi(strings.TrimSpace(string(owner)))
		if pid == 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return nil, errors.Join(fmt.Errorf("another toold (process %d) holds %s; end it with `toold stop`", pid, path), lock.Close())
		}
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err == nil {
		err = lock.Truncate(0)
	}
	if err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// A lockedListener keeps the lock until the socket is closed. The lock file itself stays: removing it would let two
// daemons hold locks on two files of that name.
type lockedListener struct {
	net.Listener
	lock *os.File
}

func (l *lockedListener) Close() error {
	return errors.Join(l.Listener.Close(), l.lock.Close())
}

// A peer is who connected, as the kernel says.
type peer struct {
	credentials.CommonAuthInfo
	pid int
	uid int
	// own: the daemon itself has started it, for a call.
	own bool
}

// AuthType names the way in which a peer is known.
func (peer) AuthType() string { return "peercred" }

// greetUser takes the peer's identity from the kernel.
func greetUser(conn *net.UnixConn) (net.Conn, credentials.AuthInfo, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var found error
	info := peer{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	if err := raw.Control(func(fd uintptr) { info.pid, info.uid, found = peerOf(int(fd)) }); err != nil {
		return nil, nil, err
	}
	if found == nil {
		info.own, found = startedHere(info.pid)
	}
	return conn, info, found
}
