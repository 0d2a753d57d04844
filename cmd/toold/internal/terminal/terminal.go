// Package terminal is what the commands draw for the user and ask of them: the calls of a turn as they run, results,
// events, diffs and questions, as text for a terminal or for a pipe. Text that came from a model, a file or a process
// is made safe to show. It does not know how a daemon is reached, nor where an answer goes.
package terminal

import (
	"errors"
	"os"

	"charm.land/lipgloss/v2"
	"golang.org/x/sys/unix"
)

// PlainWidth is the width that is used for pictures where no terminal reports its own.
const PlainWidth = 100

// A Terminal is one of the standard files as a surface to draw on: whether it is a terminal, how wide it is, and which
// colours it may get. It is safe to copy.
type Terminal struct {
	file     *os.File
	Terminal bool
	Ink      Ink
}

// An Ink is the styles that the client uses. Only the basic sixteen colours: they follow the user's own scheme and
// every terminal has them.
type Ink struct {
	Good, Bad, Warn, Dim, Strong, Name lipgloss.Style
}

// Open returns f as a surface. Its colours are set only on a terminal, and neither with NO_COLOR nor on a dumb one.
func Open(f *os.File) Terminal {
	_, err := window(f)
	p := Terminal{file: f, Terminal: err == nil}
	if p.Terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		p.Ink = Colours()
	}
	return p
}

// Live reports whether lines on the page can be drawn over.
func (p Terminal) Live() bool { return p.Terminal && os.Getenv("TERM") != "dumb" }

// Size asks the terminal again each time, because its window may have changed.
func (p Terminal) Size() (width, height int) {
	if p.Terminal {
		if ws, err := window(p.file); err == nil && ws.Col > 0 && ws.Row > 0 {
			return int(ws.Col), int(ws.Row)
		}
	}
	return PlainWidth, 0
}

// window asks without os.File.Fd, after which a file's reads could not be given up any more.
func window(f *os.File) (ws *unix.Winsize, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) { ws, err = unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ) })
	return ws, errors.Join(controlErr, err)
}

// Colours returns the styles for a terminal that has colours.
func Colours() Ink {
	style := lipgloss.NewStyle
	return Ink{
		Good:   style().Foreground(lipgloss.Green),
		Bad:    style().Foreground(lipgloss.Red),
		Warn:   style().Foreground(lipgloss.Yellow),
		Dim:    style().Faint(true),
		Strong: style().Bold(true),
		Name:   style().Foreground(lipgloss.Cyan),
	}
}
