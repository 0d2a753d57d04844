//go:build linux

// Doors that are tried by exchanging what was judged before it is used.

package main

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
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

// ownStream listens on a Unix socket of the probe's own, and hears who connects out, one after the other.
func ownStream(s *scene.Scene) (path string, l net.Listener) {
	check(unix.Chdir(s.Own)) // the whole path may be too long
	l = must(net.Listen("unix", "o"))
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
	return "o", l
}

// short makes a name for the stream outside that is as long as that of the probe's own.
func short(s *scene.Scene) error { return unix.Symlink(s.Stream, filepath.Join(s.Own, "s")) }

// connectTo connects a new socket by an address that others may write to, and says it.
func connectTo(address *unix.RawSockaddrUnix, length uintptr, say []byte) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := call(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(address)), length); err != nil {
		return err
	}
	return write(fd, string(say))
}

func exchangeAddress(s *scene.Scene, say []byte) error {
	own, l := ownStream(s)
	defer l.Close()
	check(short(s))
	address := &unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	address.Path[0] = int8(own[0])
	stop := exchanging(func() { address.Path[0] ^= int8(own[0] ^ 's') })
	defer stop()
	var err error
	for end := time.Now().Add(racing); time.Now().Before(end); {
		err = cmp.Or(connectTo(address, 4, say), err)
	}
	return err
}

// exchangeSocket has the number stand for an Internet socket and for a Unix socket by turns: the address is the same.
func exchangeSocket(s *scene.Scene, say []byte) error {
	check(errors.Join(unix.Chdir(s.Own), short(s)))
	packets := must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	stream := must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	turn := packets
	number := must(unix.FcntlInt(uintptr(packets), unix.F_DUPFD_CLOEXEC, 0))
	stop := exchanging(func() {
		_ = unix.Dup3(turn, number, unix.O_CLOEXEC)
		turn = packets + stream - turn
	})
	defer stop()
	address := &unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	address.Path[0] = 's'
	var err error
	for end := time.Now().Add(racing); time.Now().Before(end); {
		if err = call(unix.SYS_CONNECT, uintptr(number), uintptr(unsafe.Pointer(address)), 4); err == nil {
			if _, err = unix.Write(stream, say); err == nil {
				return nil
			}
		}
	}
	return err
}

// exchangeFile has the name lead to the probe's own socket and to the one outside by turns.
func exchangeFile(s *scene.Scene, say []byte) error {
	own, l := ownStream(s)
	defer l.Close()
	check(errors.Join(short(s), os.Link(own, "x")))
	stop := exchanging(func() { _ = unix.Renameat2(unix.AT_FDCWD, "x", unix.AT_FDCWD, "s", unix.RENAME_EXCHANGE) })
	defer stop()
	address := &unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	address.Path[0] = 'x'
	var err error
	for end := time.Now().Add(racing); time.Now().Before(end); {
		err = cmp.Or(connectTo(address, 4, say), err)
	}
	return err
}
