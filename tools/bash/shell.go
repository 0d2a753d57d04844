// The Shell tool: several commands in one call, as OpenAI's models ask for them. Each is a call of Bash,
// with a verdict and records of its own.

package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/ellipsis"
)

//go:embed shell.md
var shellDescription string

const (
	maxCommands = 50 // of one call; our own number
	// shellChars is how many characters of output the structured result has at most, of all commands
	// together. The number is our own: its JSON has six times as many bytes at worst.
	shellChars = 400_000
)

// The exit codes of commands that did not run to their end, as shells use them.
const (
	exitRefused   = 126
	exitCancelled = 130
	exitSignal    = 128 // and the number of the signal
)

type shellInput struct {
	Commands  []string `json:"commands" jsonschema:"the commands, each as bash is to read it"`
	Timeout   int64    `json:"timeout_ms,omitempty" jsonschema:"time limit of each command in milliseconds, at most 600000" minimum:"0" default:"120000"`
	MaxOutput int64    `json:"max_output_length,omitempty" jsonschema:"how many characters of a command's output are returned; 30000 at most" minimum:"0"`
}

// Commands is the structured result of Shell.
type Commands struct {
	Commands  []CommandResult `json:"commands"`                    // in their order
	MaxOutput int64           `json:"max_output_length,omitempty"` // as in the input
}

// CommandResult is the result of one command of Shell.
type CommandResult struct {
	// Stdout and Stderr are what was printed. If either is larger than 4,096 bytes or not text, Stdout has
	// the text of Bash's result, with both.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// ExitCode is 126 for a command that did not run, with the reason in Stderr, and 130 for one that
	// was cancelled.
	ExitCode int  `json:"exit_code"`
	TimedOut bool `json:"timed_out,omitempty"`
}

// ShellTool returns the Shell tool.
func ShellTool() tools.Tool {
	spec := tools.Spec{
		Name: "Shell", Description: shellDescription, Destructive: true, OpenWorld: true, OnDemand: true,
		OnInterrupt: tools.Finish,
	}
	return tools.New(spec, tools.Funcs[shellInput]{
		Validate: validateShell,
		// It does nothing itself. The session is named, so that the directory stays as it is meanwhile.
		Effects: func(shellInput) tools.Effects { return tools.Effects{Session: true} },
		Run:     runShell,
	})
}

func validateShell(in *shellInput) error {
	switch n := len(in.Commands); {
	case n == 0:
		return fault.Invalidf("invalid_input", "commands is empty; send at least one command.").At("/commands")
	case n > maxCommands:
		return fault.Invalidf("invalid_input", "There are %d commands, and one call takes at most %d. Send the others in another call.", n, maxCommands).At("/commands")
	}
	return nil
}

func runShell(ctx context.Context, env *tools.Env, in shellInput) (tools.Result, error) {
	parts := make([]tools.Part, len(in.Commands))
	for i, command := range in.Commands {
		text, err := json.Marshal(input{Command: command, Timeout: in.Timeout})
		if err != nil {
			return tools.Result{}, err
		}
		parts[i] = tools.Part{Name: "Bash", Input: text}
	}
	ends := env.Parts(parts)
	most := shellChars / len(parts)
	if in.MaxOutput > 0 {
		most = int(min(in.MaxOutput, int64(most)))
	}
	out := Commands{MaxOutput: in.MaxOutput}
	var text strings.Builder
	for i, end := range ends {
		c := commandResult(end, most)
		out.Commands = append(out.Commands, c)
		fmt.Fprintf(&text, "$ %s\n%s", ellipsis.Runes(in.Commands[i], 200), c.text())
	}
	if stopped := func(end tools.PartEnd) bool { return end.How == tools.PartStopped }; slices.ContainsFunc(ends, stopped) {
		return tools.TextWith(text.String(), out), context.Cause(ctx)
	}
	return tools.TextWith(text.String(), out), nil
}

// commandResult returns the result of a command, with so many characters of its output.
func commandResult(end tools.PartEnd, most int) CommandResult {
	switch end.How {
	case tools.PartRefused:
		return CommandResult{Stderr: end.Text, ExitCode: exitRefused}
	case tools.PartStopped:
		c := printed(end, most)
		c.Stderr, c.ExitCode = strings.TrimSpace(c.Stderr+"\n"+end.Reason), exitCancelled
		return c
	}
	c := printed(end, most)
	if end.How == tools.PartTimedOut {
		c.TimedOut, c.ExitCode = true, 0
	}
	return c
}

// printed returns what a command that ran has printed, and how it ended.
func printed(end tools.PartEnd, most int) CommandResult {
	s, ran := end.Structured.(Structured)
	c := CommandResult{Stdout: s.Stdout, Stderr: s.Stderr}
	switch {
	case !ran:
		return CommandResult{Stderr: end.Text, ExitCode: exitRefused}
	case int64(len(s.Stdout)) < s.StdoutBytes || int64(len(s.Stderr)) < s.StderrBytes || s.TaskID != "":
		c.Stdout, c.Stderr = end.Text, ""
	}
	c.Stdout = ellipsis.Runes(c.Stdout, most)
	c.Stderr = ellipsis.Runes(c.Stderr, max(most-utf8.RuneCountInString(c.Stdout), 1))
	switch {
	case s.ExitCode != nil:
		c.ExitCode = *s.ExitCode
	case s.TaskID != "": // at its time limit it went on in the background
		c.TimedOut = true
	case s.Signal != "":
		c.ExitCode = exitSignal + int(unix.SignalNum(s.Signal))
	}
	return c
}

// text returns the result for a model that did not ask in OpenAI's form.
func (c *CommandResult) text() string {
	var b strings.Builder
	for _, part := range []string{c.Stdout, c.Stderr} {
		if b.WriteString(part); part != "" && !strings.HasSuffix(part, "\n") {
			b.WriteString("\n")
		}
	}
	switch {
	case c.TimedOut:
		b.WriteString("(its time limit ran out)\n")
	case c.ExitCode != 0:
		fmt.Fprintf(&b, "(exit code %d)\n", c.ExitCode)
	}
	return b.String()
}
