package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropInput throws away what was typed before the question was there to be read.
func dropInput(terminal *os.File) {
	if raw, err := terminal.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	}
}

// How the kernel is asked for the modes of a terminal.
const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)
