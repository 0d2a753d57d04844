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

// hideInput stops showing what is typed, until shown is called.
func hideInput(terminal *os.File) (shown func(), err error) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return nil, err
	}
	var was *unix.Termios
	set := func(mode *unix.Termios) (failed error) {
		if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetTermios(int(fd), unix.TIOCSETA, mode) }); err != nil {
			return err
		}
		return failed
	}
	if failed := raw.Control(func(fd uintptr) { was, err = unix.IoctlGetTermios(int(fd), unix.TIOCGETA) }); failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	return func() { _ = set(was) }, set(&hidden)
}
