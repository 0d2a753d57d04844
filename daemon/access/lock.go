// The lock files by which one daemon has a socket and one has a state directory. Each names its holder, so that a
// client can find a daemon whose socket it cannot find. Whether a client trusts what it reads is the client's decision.

package access

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Holder is what a lock file records about the daemon that took the lock last. The file does not
// show whether that daemon still runs and holds the lock.
type Holder struct {
	PID    int
	Socket string // its absolute path; empty: the daemon does not serve yet, or is older than this record
}

// StateLock returns the path of the lock file of a state directory.
func StateLock(dir string) string { return filepath.Join(dir, "lock") }

// SocketLock returns the path of the lock file of a socket.
func SocketLock(socket string) string { return socket + ".lock" }

// maxLock is how many bytes of a lock file are read: far more than a process id and the path of a socket take.
const maxLock = 4 << 10

// ReadLock reads the lock file at path. A file that is not a regular one, or that belongs to another user, is an error.
func ReadLock(path string) (Holder, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return Holder{}, err
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return Holder{}, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || int(stat.Uid) != os.Getuid() {
		return Holder{}, fmt.Errorf("%s is not a regular file of user %d", path, os.Getuid())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxLock))
	if err != nil {
		return Holder{}, err
	}
	pid, socket, _ := strings.Cut(string(text), "\n")
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 0 {
		return Holder{}, fmt.Errorf("%s does not name a process", path)
	}
	return Holder{number, strings.TrimSuffix(socket, "\n")}, nil
}

// A Lock is a lock file that this process holds. Its methods are safe for concurrent use.
type Lock struct {
	path string
	// dir is the directory of the file, locked as well: deleting the file does not open the directory to a second
	// daemon. nil: other locks may be in it, or its file system has no such locks.
	dir *os.File

	mu     sync.Mutex
	file   *os.File // nil: closed
	holder Holder   // what the file records
}

// lockSocket locks a socket for this process.
func lockSocket(socket string) (*Lock, error) {
	l := &Lock{path: SocketLock(socket), holder: Holder{os.Getpid(), absolute(socket)}}
	return l, l.takeLocked()
}

// LockState locks a state directory for this process.
func LockState(dir string) (*Lock, error) {
	l := &Lock{path: StateLock(dir), holder: Holder{PID: os.Getpid()}}
	var err error
	if l.dir, err = os.Open(dir); err != nil {
		return nil, err
	}
	switch err = exclude(l.dir, l.path); {
	case errors.As(err, new(*heldError)):
		return nil, errors.Join(err, l.dir.Close())
	case err != nil:
		_ = l.dir.Close()
		l.dir = nil
	}
	if err := l.takeLocked(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// takeLocked opens the lock file, locks it and records the holder. The caller has locked mu, or has made the lock.
func (l *Lock) takeLocked() error {
	for {
		file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := exclude(file, l.path); err != nil {
			return errors.Join(err, file.Close())
		}
		if !isAt(l.path, file) { // deleted before it was locked
			_ = file.Close()
			continue
		}
		if err := l.holder.write(file); err != nil {
			return errors.Join(err, file.Close())
		}
		l.file = file
		return nil
	}
}

// exclude locks a file for as long as it is open. A child that a killed daemon was just about to start holds the lock
// for the moment until it has become another program, and is waited for. The process that has the lock has recorded itself in
// the lock file at path.
func exclude(file *os.File, path string) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	holder, _ := ReadLock(path) // on an error the holder counts as alive
	if holder.PID == 0 || !errors.Is(unix.Kill(holder.PID, 0), unix.ESRCH) {
		return &heldError{holder.PID, file.Name()}
	}
	return unix.Flock(int(file.Fd()), unix.LOCK_EX)
}

// A heldError means that another process holds a lock.
type heldError struct {
	pid  int // 0: not known
	path string
}

func (e *heldError) Error() string {
	if e.pid == 0 {
		return fmt.Sprintf("another toold holds %s; end it with `toold stop`", e.path)
	}
	return fmt.Sprintf("another toold (process %d) holds %s; end it with `toold stop`", e.pid, e.path)
}

func (h Holder) write(file *os.File) error {
	text := strconv.Itoa(h.PID) + "\n"
	if h.Socket != "" {
		text += h.Socket + "\n"
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// Record adds to the lock file where the daemon listens.
func (l *Lock) Record(socket string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder.Socket = absolute(socket)
	return l.holder.write(l.file)
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// there reports whether the file that is locked is at its path. A lock that was closed is.
func (l *Lock) there() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file == nil || isAt(l.path, l.file)
}

// Keep makes the lock file again if it was deleted or replaced. The error means that another
// process has locked the present file, or is why the file cannot be made. Nothing is made in a
// directory that has itself been replaced.
func (l *Lock) Keep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || isAt(l.path, l.file) || l.dir != nil && !isAt(filepath.Dir(l.path), l.dir) {
		return nil
	}
	old := l.file
	if err := l.takeLocked(); err != nil {
		return err
	}
	return old.Close()
}

// Close releases the lock. The file stays: removing it would let two daemons hold locks on two files of that name.
func (l *Lock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, file := range []**os.File{&l.file, &l.dir} {
		if *file != nil {
			err = errors.Join(err, (*file).Close())
			*file = nil
		}
	}
	return err
}

// isAt reports whether the open file is the one at path.
func isAt(path string, file *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	open, err := file.Stat()
	return err == nil && os.SameFile(there, open)
}
