// The result of a program, for a model and for programs.

package program

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// Structured is the structured result.
type Structured struct {
	// ExitCode is absent if a signal has ended the program.
	ExitCode    *int   `json:"exit_code,omitempty"`
	Signal      string `json:"signal,omitempty"`      // "SIGKILL", ...
	StdoutBytes int64  `json:"stdout_bytes"`          // printed
	StderrBytes int64  `json:"stderr_bytes"`          // said
	OutputPath  string `json:"output_path,omitempty"` // standard output, unchanged; absent if nothing was printed
	// OmittedBytes and OmittedLines are left out of the text. ReplacedBytes were not UTF-8.
	OmittedBytes  int64 `json:"omitted_bytes,omitempty"`
	OmittedLines  int64 `json:"omitted_lines,omitempty"`
	ReplacedBytes int64 `json:"replaced_bytes,omitempty"`
}

// Exit is the structured part of a failed program's error.
type Exit struct {
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
}

// room is reserved in the inline text for notes, in characters.
const room = 1000

// set returns the variables that every program gets.
func (r *running) set() []string {
	project := r.env.Dir
	if roots := r.env.Files.Roots(); len(roots) > 0 {
		project = roots[0]
	}
	return []string{
		"PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "PWD=" + r.env.Dir, "CLAUDE_PROJECT_DIR=" + project, "TOOLD_PROJECT_DIR=" + project,
	}
}

// result returns the result of the program.
func (r *running) result(ctx context.Context, exit sandbox.Exit) (tools.Result, error) {
	s := Structured{Signal: exit.Signal, StdoutBytes: r.out.Total(), StderrBytes: r.said.total}
	if exit.Code >= 0 {
		s.ExitCode = &exit.Code
	}
	if s.StdoutBytes > 0 {
		s.OutputPath = r.out.Path()
	}
	if exit.Code != 0 || exit.Output != nil {
		result, err := r.printed(&s, s.headline(), r.said.last(), leftovers(exit))
		if err == nil {
			err = s.fault()
		}
		return result, err
	}
	content, is, err := r.list.blocks(ctx)
	if !is || err != nil {
		result, unread := r.printed(&s, "", leftovers(exit))
		if err != nil && unread == nil {
			unread = fault.Failedf("bad_result", "The program has printed a list of content blocks that cannot be used: %v. The text is its output.", err)
		}
		return result, unread
	}
	if note := leftovers(exit); note != "" || len(content) == 0 {
		content = append(content, tools.Block{Text: orNothing(note)})
	}
	return tools.Result{Content: content, Structured: s}, nil
}

// printed returns standard output as text, with a line before it and others after it.
func (r *running) printed(s *Structured, head string, notes ...string) (tools.Result, error) {
	note := strings.Join(notes, "")
	x, err := r.out.Excerpt(max(r.env.MaxChars-room-len(note), r.env.MaxChars/2))
	if err != nil {
		return tools.Result{Structured: *s}, fault.Failedf("io_error", "The program has ended, but its output cannot be read back: %v.", err)
	}
	s.OmittedBytes, s.OmittedLines, s.ReplacedBytes = x.Bytes, x.Lines, x.Replaced
	text := x.Text(s.OutputPath)
	if note != "" {
		text = spool.EndLine(text) + note
	}
	result := tools.Text(head + orNothing(text))
	result.Structured = *s
	if x.Bytes > 0 {
		result.Spill = &tools.Spill{Path: s.OutputPath, Bytes: x.Bytes, Lines: x.Lines}
	}
	return result, nil
}

func orNothing(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(no output)"
	}
	return text
}

// headline returns the first line of the text if the exit code is not 0.
func (s *Structured) headline() string {
	switch {
	case s.ExitCode != nil:
		return fmt.Sprintf("Exit code %d\n", *s.ExitCode)
	case s.Signal != "":
		return fmt.Sprintf("Ended by signal %s\n", s.Signal)
	}
	return "Exit code unknown\n"
}

func (s *Structured) fault() error {
	why := "The program ended without an exit code."
	switch {
	case s.ExitCode != nil:
		why = fmt.Sprintf("The program ended with exit code %d.", *s.ExitCode)
	case s.Signal != "":
		why = fmt.Sprintf("The program was ended by signal %s.", s.Signal)
	}
	return fault.Failedf("exit_code", "%s Its standard error usually shows why.", why).With(Exit{s.ExitCode, s.Signal})
}

// leftovers returns a note about the processes that outlived the program.
func leftovers(exit sandbox.Exit) string {
	var text strings.Builder
	if n := len(exit.LeftBehind); n > 0 {
		fmt.Fprintf(&text, "\n[Still running when the program had ended, and stopped: %d processes, such as %d (%s).]", n, exit.LeftBehind[0].PID, readable(exit.LeftBehind[0].Name))
	}
	if n := len(exit.Stuck); n > 0 {
		fmt.Fprintf(&text, "\n[Killed, but the kernel still holds: %d processes, such as %d (%s).]", n, exit.Stuck[0].PID, readable(exit.Stuck[0].Name))
	}
	return text.String()
}
