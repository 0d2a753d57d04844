// Package cli is what all commands share: their standard files, and errors with exit codes.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

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

// Show prints text, or, where that is asked for, value as JSON: a message of the wire with the names of the proto files.
func (c *Console) Show(value any, text string) error {
	if !c.JSON {
		_, err := io.WriteString(c.Stdout, text)
		return err
	}
	if m, is := value.(proto.Message); is {
		return terminal.PrintJSON(c.Stdout, m)
	}
	return json.NewEncoder(c.Stdout).Encode(value)
}
