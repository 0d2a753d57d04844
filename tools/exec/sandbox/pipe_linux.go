package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// outputPipe returns a pipe for what a process prints. Only the reading end is the poller's: the
// writing end would wake it at once, and the process's own must block.
func outputPipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	_ = unix.SetNonblock(ends[0], true) // it fails for no pipe
	return os.NewFile(uintptr(ends[0]), "output"), os.NewFile(uintptr(ends[1]), "output"), nil
}
