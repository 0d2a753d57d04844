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

// hideInput stops showing what is typed, until shown is called.
func hideInput(terminal *os.File) (shown func(), err error) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return nil, err
	}
	var was *unix.Termios
	set := func(mode *unix.Termios) (failed error) {
		if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetTermios(int(fd), unix.TCSETS, mode) }); err != nil {
			return err
		}
		return failed
	}
	if failed := raw.Control(func(fd uintptr) { was, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	return func() { _ = set(was) }, set(&hidden)
}
