package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process that dies while it asks for a connection leaves its number to another one, which is connected to nothing.
func TestConnectionOfTheDead(t *testing.T) {
	name := fmt.Sprintf("@dead.%d", os.Getpid())
	listener, other := newSocket(t), newSocket(t)
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrUnix{Name: name}), unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	address := append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), "\x00"+name[1:]...)
	gone, err := os.Open(os.DevNull) // the kernel knows no notification there
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	n := &notification{pid: uint32(os.Getpid())}
	n.args[0], n.args[1], n.args[2] = uint64(other), uint64(uintptr(unsafe.Pointer(&address[0]))), uint64(len(address))
	r, later := (&supervisor{listener: gone}).connect(n)
	if later || r.errno == 0 {
		t.Errorf("the answer is %+v, later %t; want an error at once", r, later)
	}
	if _, err := unix.Getpeername(other); !errors.Is(err, unix.ENOTCONN) {
		t.Errorf("the other process's socket is connected: %v", err)
	}
}

func newSocket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}
