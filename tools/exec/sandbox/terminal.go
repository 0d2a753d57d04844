// The terminal of a process: a pseudoterminal whose other end the daemon holds.

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Size is that of a terminal, in characters.
type Size struct{ Columns, Rows uint16 }

// typing is how long Write waits for room in the input of a terminal. The number is our own: the
// kernel keeps 4,096 bytes, and a program that reads at all makes room at once.
const typing = 2 * time.Second

// A Terminal is the controlling terminal of a process, as seen from its other end. It is safe for
// concurrent use.
type Terminal struct {
	process *Process
	master  *os.File
	slave   os.FileInfo // of the programs' end
}

// Terminal returns the terminal of the process; nil: it has none.
func (p *Process) Terminal() *Terminal { return p.terminal }

// Write types text: the kernel treats it as what comes from a keyboard. An error means that not all
// of it was taken: the terminal is closed, or its input is full.
func (t *Terminal) Write(text []byte) (int, error) {
	if err := t.master.SetWriteDeadline(time.Now().Add(typing)); err != nil {
		return 0, err
	}
	n, err := t.master.Write(text)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the program has not read what was typed before: %w", err)
	}
	return n, err
}

// Resize changes the size, which sends SIGWINCH to the programs in the foreground.
func (t *Terminal) Resize(size Size) error {
	return t.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
	})
}

// control calls act with the descriptor of the daemon's end.
func (t *Terminal) control(act func(fd int) error) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = act(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// withTerminal returns the descriptors of the process, which begin with its terminal if it has one.
// done must be called when the process has started.
func (p *Process) withTerminal(files []*os.File, open func() (master, slave *os.File, err error)) (_ []*os.File, done func(), err error) {
	if p.command.Terminal == nil {
		return files, func() {}, nil
	}
	slave, err := p.openTerminal(open)
	if err != nil {
		return nil, nil, err
	}
	return append([]*os.File{slave, slave, slave}, files...), func() { _ = slave.Close() }, nil
}

// openTerminal opens the terminal of the process, whose output is captured. It returns the programs' end,
// which the caller closes when the process has started.
func (p *Process) openTerminal(open func() (master, slave *os.File, err error)) (*os.File, error) {
	master, slave, err := open()
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	info, err := slave.Stat()
	if err == nil {
		p.terminal = &Terminal{process: p, master: master, slave: info}
		err = p.terminal.Resize(*p.command.Terminal)
	}
	if err != nil {
		_ = master.Close()
		_ = slave.Close()
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	p.outputs = append(p.outputs, &capture{pipe: master, to: p.command.Stdout, done: make(chan struct{}), caught: make(chan struct{}, 1)})
	return slave, nil
}
