// Listeners and locks that go on in the next program of this process. A descriptor outlives the program by its number, so a
// number is all that is passed: the sockets listen throughout, and the locks are held throughout.

package access

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Passed are the descriptors of a daemon's listeners and locks. Each is closed when its process begins another program, unless
// [Passed.Keep] was called. Who has them takes each with [TakeSocket], [TakeState] or as [TCP.Passed], once.
type Passed struct {
	Sockets []PassedSocket `json:"sockets,omitempty"`
	TCP     []int          `json:"tcp,omitempty"`
	State   PassedLock     `json:"state"`
}

// A PassedSocket is the descriptors of a Socket.
type PassedSocket struct {
	Listener int        `json:"listener"`
	Lock     PassedLock `json:"lock"`
	Adopted  bool       `json:"adopted,omitempty"`
}

// A PassedLock is the descriptors of a Lock.
type PassedLock struct {
	File int `json:"file"`
	Dir  int `json:"dir,omitempty"` // 0: none
}

// Keep decides whether the descriptors outlive the beginning of another program.
func (p Passed) Keep(keep bool) error {
	flag := unix.FD_CLOEXEC
	if keep {
		flag = 0
	}
	var wrong []error
	for _, fd := range p.numbers() {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// duplicate returns a descriptor of an open file or listener that the caller owns. It leaves the mode of the open one as it is.
func duplicate(of syscall.Conn) (fd int, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlled := raw.Control(func(open uintptr) { fd, err = unix.FcntlInt(open, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(controlled, err)
}

// Close closes the descriptors: no other program goes on with them.
func (p Passed) Close() {
	for _, fd := range p.numbers() {
		_ = unix.Close(fd)
	}
}

// numbers returns all descriptors.
func (p Passed) numbers() []int {
	numbers := append([]int{p.State.File, p.State.Dir}, p.TCP...)
	for _, s := range p.Sockets {
		numbers = append(numbers, s.Listener, s.Lock.File, s.Lock.Dir)
	}
	return slices.DeleteFunc(numbers, func(fd int) bool { return fd == 0 })
}

// Leave decides that the socket stays where it is: Close does not remove it, and Keep does nothing.
func (l *Socket) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed = true
}

// Pass returns descriptors of the socket for the next program. It listens also when this Socket is closed; see Leave.
func (l *Socket) Pass() (PassedSocket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	listener, err := duplicate(l.socket)
	if err != nil {
		return PassedSocket{}, err
	}
	lock, err := l.lock.Pass()
	if err != nil {
		return PassedSocket{}, errors.Join(err, unix.Close(listener))
	}
	return PassedSocket{Listener: listener, Lock: lock, Adopted: l.adopted}, nil
}

// TakeSocket returns the listener that the program before has passed.
func TakeSocket(passed PassedSocket) (*Socket, error) {
	file := os.NewFile(uintptr(passed.Listener), "socket")
	inherited, err := net.FileListener(file)
	_ = file.Close() // the listener has a descriptor of its own
	if err != nil {
		return nil, fmt.Errorf("the socket that was passed does not listen: %w", err)
	}
	l := &Socket{adopted: passed.Adopted}
	if err := l.adopt(inherited); err != nil {
		return nil, errors.Join(err, inherited.Close())
	}
	l.socket.SetUnlinkOnClose(false)
	if l.lock, err = takeLock(SocketLock(l.path), absolute(l.path), passed.Lock); err != nil {
		return nil, errors.Join(err, inherited.Close())
	}
	return l, nil
}

// Pass returns a descriptor of the listener for the next program. The socket listens also when the listener is closed.
func (d *TCPListener) Pass() (int, error) { return duplicate(d.TCPListener) }

// Pass returns descriptors of the lock for the next program. It is held also when the lock is closed.
func (l *Lock) Pass() (passed PassedLock, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return passed, os.ErrClosed
	}
	if passed.File, err = duplicate(l.file); err == nil && l.dir != nil {
		passed.Dir, err = duplicate(l.dir)
	}
	return passed, err
}

// TakeState returns the lock on a state directory that the program before has passed.
func TakeState(dir string, passed PassedLock) (*Lock, error) {
	return takeLock(StateLock(dir), "", passed)
}

// takeLock returns a lock on the file at path that this process holds already.
func takeLock(path, socket string, passed PassedLock) (*Lock, error) {
	l := &Lock{path: path, holder: Holder{os.Getpid(), socket}, file: os.NewFile(uintptr(passed.File), path)}
	if passed.Dir > 0 {
		l.dir = os.NewFile(uintptr(passed.Dir), filepath.Dir(path))
	}
	if err := unix.Flock(passed.File, unix.LOCK_EX|unix.LOCK_NB); err != nil { // which is held, or the number is another file's
		return nil, errors.Join(fmt.Errorf("the lock %s was not passed: %w", path, err), l.Close())
	}
	return l, nil
}
