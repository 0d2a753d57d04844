// A page is one of the standard files as something to draw on: whether it is a terminal, how wide it is, and which
// colours it may get. It does not know what is drawn.

package main

import (
	"errors"
	"os"

	"charm.land/lipgloss/v2"
	"golang.org/x/sys/unix"
)

// plainWidth is the width that is used for pictures where no terminal tells its own.
const plainWidth = 100

// A page is safe to copy.
type page struct {
	file     *os.File
	terminal bool
	ink      ink
}

// An ink is the styles that the client uses. The basic sixteen colours alone: they follow the user's own scheme and
// every terminal has them.
type ink struct {
	good, bad, warn, dim, strong, name lipgloss.Style
}

func pageOf(f *os.File) page {
	_, err := window(f)
	p := page{file: f, terminal: err == nil}
	if p.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		p.ink = colours()
	}
	return p
}

// live reports whether lines on the page can be drawn over.
func (p page) live() bool { return p.terminal && os.Getenv("TERM") != "dumb" }

// size asks the terminal again each time, because its window may have changed.
func (p page) size() (width, height int) {
	if p.terminal {
		if ws, err := window(p.file); err == nil && ws.Col > 0 && ws.Row > 0 {
			return int(ws.Col), int(ws.Row)
		}
	}
	return plainWidth, 0
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

func colours() ink {
	style := lipgloss.NewStyle
	return ink{
		good:   style().Foreground(lipgloss.Green),
		bad:    style().Foreground(lipgloss.Red),
		warn:   style().Foreground(lipgloss.Yellow),
		dim:    style().Faint(true),
		strong: style().Bold(true),
		name:   style().Foreground(lipgloss.Cyan),
	}
}
