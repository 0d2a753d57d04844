//go:build linux

// Doors that are tried by exchanging what was judged before it is used.

package main

import (
	"cmp"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// racing is how long a race is tried.
const racing = 300 * time.Millisecond

// exchanging calls act over and over on a thread of its own, until the returned function is called.
func exchanging(act func()) (stop func()) {
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		for !over.Load() {
			act()
		}
	}()
	return func() { over.Store(true); <-ended }
}

// ownStream listens on a Unix socket "o" of the probe's own, in the door's directory, and reads from who connects, one after the
// other.
func (p *probe) ownStream() net.Listener {
	check(unix.Chdir(p.own)) // the whole path may be too long
	l := must(net.Listen("unix", "o"))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return l
}

// insist tries to connect while the race goes on, and returns the last error.
func insist(connect func() error) (err error) {
	for end := time.Now().Add(racing); time.Now().Before(end); {
		err = cmp.Or(connect(), err)
	}
	return err
}

// racingAddress is that of a Unix socket with a name of one letter.
func racingAddress(letter byte) *unix.RawSockaddrUnix {
	return &unix.RawSockaddrUnix{Family: unix.AF_UNIX, Path: [108]int8{int8(letter)}}
}

// connect connects a socket by an address that others may write to, and says it.
func (p *probe) connect(fd int, to *unix.RawSockaddrUnix) error {
	const length = 4 // family, letter, NUL
	if err := call(unix.SYS_CONNECT, fd, unsafe.Pointer(to), length); err != nil {
		return err
	}
	return write(fd, string(p.say))
}

// raceStreams connects to "o" while act exchanges it with "s", which leads to the stream outside.
func (p *probe) raceStreams(act func(letter *int8)) error {
	defer p.ownStream().Close()
	check(unix.Symlink(p.Stream, "s"))
	to := racingAddress('o')
	defer exchanging(func() { act(&to.Path[0]) })()
	return insist(func() error {
		fd := must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		defer unix.Close(fd)
		return p.connect(fd, to)
	})
}

func (p *probe) exchangeAddress() error {
	return p.raceStreams(func(letter *int8) { *letter ^= 'o' ^ 's' })
}

// exchangeFile has the name lead to the probe's own socket and to the one outside by turns.
func (p *probe) exchangeFile() error {
	return p.raceStreams(func(*int8) { _ = exchange("o", "s") })
}

// exchangeSocket has the number stand for an Internet socket and for a Unix socket by turns: the address is the same.
func (p *probe) exchangeSocket() error {
	check(errors.Join(unix.Chdir(p.own), unix.Symlink(p.Stream, "s")))
	packets := must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	stream := must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	turn := packets
	number := must(unix.FcntlInt(uintptr(packets), unix.F_DUPFD_CLOEXEC, 0))
	defer exchanging(func() {
		_ = unix.Dup3(turn, number, unix.O_CLOEXEC)
		turn = packets + stream - turn
	})()
	to := racingAddress('s')
	var err error
	for end := time.Now().Add(racing); time.Now().Before(end); {
		if err = call(unix.SYS_CONNECT, number, unsafe.Pointer(to), 4); err == nil {
			if err = write(stream, string(p.say)); err == nil {
				return nil
			}
		}
	}
	return err
}
