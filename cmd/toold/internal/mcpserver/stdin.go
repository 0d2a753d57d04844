package mcpserver

import (
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/cmd/toold/internal/rawio"
)

// polled returns the same input as a file whose reads wait in the runtime's poller, if it is a pipe or a socket: a read that blocks
// has a thread of its own, and each message passes from one to the next. The caller calls release at the end.
//
// Not to block is a property of the open file, which may be the output too, as sshd has it. Then the input stays as it is, since
// writes would fail where they have to wait.
func polled(in *os.File) (from io.Reader, release func()) {
	fd := int(in.Fd())
	info, err := in.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 || neverBlocks(fd) {
		return in, func() {}
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return in, func() {}
	}
	if unix.SetNonblock(fd, true) != nil || neverBlocks(syscall.Stdout) || neverBlocks(syscall.Stderr) {
		_ = unix.SetNonblock(fd, false)
		_ = unix.Close(own)
		return in, func() {}
	}
	file := os.NewFile(uintptr(own), in.Name())
	return rawio.New(file), func() {
		_ = file.Close() // first: a read that is under way would block
		_ = unix.SetNonblock(fd, false)
	}
}

func neverBlocks(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_NONBLOCK != 0
}
