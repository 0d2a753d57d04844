package rawio

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read waits in the runtime's poller until there is something to read, and reads it. It returns io.EOF at the end.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.raw == nil || len(p) == 0 {
		return s.file.Read(p)
	}
	var errno syscall.Errno
	if err := s.raw.Read(func(fd uintptr) bool {
		n, errno = read(fd, p)
		return errno != unix.EAGAIN
	}); err != nil {
		return 0, err
	}
	switch {
	case errno != 0:
		return 0, errno
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// mostAtOnce is how many bytes are written without waiting: half of what a pipe usually holds. More would wait for its reader all the
// same, in a second call. Ours.
const mostAtOnce = 32 << 10

// Write writes all of p. What is large or is not taken at once by the kernel is written as the file does it; so are errors found, and so
// are files written of a kind that may always block.
func (s *Stream) Write(p []byte) (n int, err error) {
	if s.raw != nil && len(p) > 0 && len(p) <= mostAtOnce {
		err = s.raw.Write(func(fd uintptr) bool {
			n = tryWrite(fd, p)
			return true
		})
	}
	if err == nil && n < len(p) {
		var rest int
		rest, err = s.file.Write(p[n:])
		n += rest
	}
	return n, err
}

// read reads from a descriptor in non-blocking mode.
func read(fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// tryWrite writes what can be written without waiting, in whatever mode the descriptor is. It returns how much that was.
func tryWrite(fd uintptr, p []byte) int {
	const here = ^uintptr(0) // not at an offset
	vector := unix.Iovec{Base: unsafe.SliceData(p)}
	vector.SetLen(len(p))
	n, _, errno := syscall.RawSyscall6(unix.SYS_PWRITEV2, fd, uintptr(unsafe.Pointer(&vector)), 1, here, here, unix.RWF_NOWAIT)
	if errno != 0 {
		return 0
	}
	return int(n)
}
