package rawio

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read waits in the runtime's poller until there is something to read, and reads it. It returns io.EOF at the end. Files of a kind that
// may always block are read as the file does it.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.raw == nil || len(p) == 0 {
		return s.file.Read(p)
	}
	var errno syscall.Errno
	if err := s.raw.Read(func(fd uintptr) bool {
		n, errno = try(unix.SYS_PREADV2, fd, p)
		return errno != unix.EAGAIN
	}); err != nil {
		return 0, err
	}
	switch {
	case errno == unix.EINTR, errno == unix.EOPNOTSUPP, errno == unix.ENOSYS:
		return s.file.Read(p)
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

// Write writes all of p. It leaves to the file what the kernel does not take at once, what is larger than mostAtOnce, and files of a
// kind that may always block. Errors are those of the file.
func (s *Stream) Write(p []byte) (n int, err error) {
	if s.raw != nil && len(p) > 0 && len(p) <= mostAtOnce {
		err = s.raw.Write(func(fd uintptr) bool {
			n, _ = try(unix.SYS_PWRITEV2, fd, p)
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

// try reads or writes what can be read or written without waiting, in whatever mode the descriptor is: another process may change it.
func try(call, fd uintptr, p []byte) (int, syscall.Errno) {
	const here = ^uintptr(0) // not at an offset
	vector := unix.Iovec{Base: unsafe.SliceData(p)}
	vector.SetLen(len(p))
	n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&vector)), 1, here, here, unix.RWF_NOWAIT)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
