// Terminals on macOS. Best effort, untested: what a program does with its terminal is not known.

package sandbox

import (
	"os"

	"github.com/creack/pty"
)

// hostTerminal opens a terminal of the machine.
func hostTerminal() (master, slave *os.File, err error) { return pty.Open() }

// A Prompt is a program that waits for a line which its terminal does not show.
type Prompt struct {
	PID              int
	Program, Command string
}

// Prompt reports that there is none.
func (t *Terminal) Prompt() (Prompt, bool) { return Prompt{}, false }

// Hidden reports that it is not known whether what is typed is shown.
func (t *Terminal) Hidden() bool { return false }

// Forget does nothing.
func (t *Terminal) Forget() error { return nil }

// Waits reports that it is not known whether a program waits for input.
func (t *Terminal) Waits() (reading, polling bool) { return false, false }
