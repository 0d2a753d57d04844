package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropInput throws away what was typed before the question was there to be read; 1 is FREAD, the input's side.
func dropInput(terminal *os.File) {
	if raw, err := terminal.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, 1) })
	}
}

// How the kernel is asked for the modes of a terminal.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)
