// Package cli is what all commands share: their standard files, and errors with exit codes.
package cli

import (
	"fmt"
	"os"

	"github.com/toold/toold/cmd/toold/internal/terminal"
)

// A Console is what every command has: its standard files, and the flags that choose what is printed on them.
type Console struct {
	Stdin   *os.File
	Stdout  *os.File
	Stderr  *os.File
	JSON    bool // print JSON for programs
	Verbose bool // say more on stderr
}

// Say prints a message for the user beside the results.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintln(c.Stderr, "toold: "+terminal.VisibleText(fmt.Sprintf(format, args...)))
}

// Noted prints to standard error when -v was given.
func (c *Console) Noted(format string, args ...any) {
	if c.Verbose {
		fmt.Fprintln(c.Stderr, terminal.VisibleText(fmt.Sprintf(format, args...)))
	}
}
