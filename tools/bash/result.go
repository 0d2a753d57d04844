// The result of a command, for a model and for programs.

package bash

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// Structured is the result of Bash, BashOutput, BashInput and KillShell for programs.
type Structured struct {
	tools.Exit
	// Interpretation is the meaning of an exit code that is an answer and not a failure.
	Interpretation string `json:"interpretation,omitempty"`
	// TaskID is the id of the background task, and Status its state: "running" or "ended".
	TaskID string `json:"task_id,omitempty"`
	Status string `json:"status,omitempty"`
	tools.Printed
	// Stdout and Stderr are exactly what was printed there, terminal escapes included. Each is absent
	// if it is empty, larger than 4,096 bytes or not UTF-8, and both are after merged_output.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// MergedOutput: stdout and stderr were one pipe; StdoutBytes counts both.
	MergedOutput     bool           `json:"merged_output,omitempty"`
	WorkingDirectory string         `json:"working_directory,omitempty"` // in which the command started
	MaxRSSBytes      int64          `json:"max_rss_bytes,omitempty"`     // of its largest process; absent if it is less than the daemon itself has held
	Kept             []sandbox.Left `json:"kept,omitempty"`              // continue as the background task TaskID
	LeftBehind       []sandbox.Left `json:"left_behind,omitempty"`       // still ran when the command had ended, and were stopped
	Stuck            []sandbox.Left `json:"stuck,omitempty"`             // were killed, but the kernel still holds them
	// Screen is what an interactive command shows, without empty lines at its end, and where its cursor
	// is, from 1 on.
	Screen       []string `json:"screen,omitempty"`
	CursorLine   int      `json:"cursor_line,omitempty"`
	CursorColumn int      `json:"cursor_column,omitempty"`

	Ports []tools.Port `json:"ports,omitempty"` // on which the background task listens
}

// Refused is the structured part of the error of a command that was stopped because it requested
// the same host repeatedly.
type Refused struct {
	Host  string `json:"host"`
	Count int    `json:"count"`
}

// result builds the text: the exit code, the output, the notes. task holds what the command has
// left running; nil: nothing.
func (r *shellRun) result(exit sandbox.Exit, task *background.Task) (tools.Result, error) {
	r.noteMemory(exit)
	changes := r.changes(exit)
	s := Structured{WorkingDirectory: r.dir}
	s.ended(exit)
	if task != nil {
		s.TaskID, s.Status, changes.Task, s.Ports = task.ID, "running", task.ID, r.env.Ports(task)
	}
	s.measure(r.out)
	if s.MergedOutput = r.in.MergedOutput || r.terminal != nil; !s.MergedOutput {
		s.Stdout, s.Stderr = small(r.out, spool.Stdout), small(r.out, spool.Stderr)
	}
	succeeded := !s.Failed()
	if s.ExitCode != nil && !succeeded {
		var meaning string
		if meaning, succeeded = shell.Benign(r.in.analysis.Last, *s.ExitCode, s.StdoutBytes); succeeded {
			s.Interpretation = meaning
		}
	}
	printed, err := r.out.Excerpt(tools.OutputRoom(r.env.MaxChars))
	if err != nil {
		return tools.Result{Structured: s, Changes: changes}, fault.Failedf("io_error", "The command has ended, but its output cannot be read back: %v.", err)
	}
	if task != nil {
		changes.Cursor = &tools.Cursor{Task: task.ID, Offset: printed.End}
	}
	text, spill := s.Text(printed, r.out.Path())
	if r.terminal != nil {
		text, spill = s.screen(r.terminal, tools.OutputRoom(r.env.MaxChars), r.out.Path())
	}
	if strings.TrimSpace(text) == "" && !s.Failed() {
		text = "(no output)"
	}
	body, notes := s.Headline(), s.goesOn(r.out.Path())+s.serves()+s.leftovers(r.whyStopped(succeeded))+r.noted()
	if s.Interpretation != "" {
		body += fmt.Sprintf("(%s)\n", s.Interpretation)
	}
	body += text
	if notes != "" {
		body = spool.EndLine(body)
	}
	result := tools.Text(body + notes)
	result.Structured, result.Spill, result.Changes = s, spill, changes
	if !succeeded {
		return result, s.Fault("command", "output")
	}
	return result, nil
}

// notKept is what the model can do instead of relying on processes that outlive the command.
const notKept = "Use run_in_background, or & in the command itself, for processes that must continue."

// whyStopped returns why the processes that outlived the command were killed.
func (r *shellRun) whyStopped(succeeded bool) string {
	switch {
	case !r.in.analysis.Background:
		return notKept
	case !succeeded:
		return "Background processes of a command continue only if the command succeeds."
	}
	return "At most 8 such processes continue in a session; stop one with KillShell."
}

func (s *Structured) ended(exit sandbox.Exit) {
	s.Exit, s.MaxRSSBytes = tools.ExitOf(exit), exit.MaxRSS
	s.Kept, s.LeftBehind, s.Stuck = exit.Kept, exit.LeftBehind, exit.Stuck
}

func (s *Structured) measure(out *spool.Output) {
	s.StdoutBytes, s.StderrBytes = out.Size(spool.Stdout), out.Size(spool.Stderr)
	if s.StdoutBytes+s.StderrBytes > 0 {
		s.OutputPath = out.Path()
	}
}

// maxSmall is how many bytes of a channel are part of the structured result. The number is our own:
// most outputs are smaller, and the text has them already.
const maxSmall = 4096

// small returns all that was printed on a channel, if that is small and text; otherwise nothing. An
// output that cannot be read is reported elsewhere.
func small(out *spool.Output, ch spool.Channel) string {
	size := out.Size(ch)
	if size == 0 || size > maxSmall {
		return ""
	}
	all, err := out.NextOf(ch, 0, make([]byte, size))
	if err != nil || int64(len(all.Data)) < size || !utf8.Valid(all.Data) {
		return ""
	}
	return string(all.Data)
}

// goesOn returns a note about what the command has left running. Its output goes to the file at
// path.
func (s *Structured) goesOn(path string) string {
	if len(s.Kept) == 0 {
		return ""
	}
	return fmt.Sprintf("[Left running in the background as %s: %s. BashOutput returns what is printed from now on, which goes to %s; KillShell stops it.]\n", s.TaskID, list(s.Kept), path)
}

// serves returns a note about each port on which the background task listens.
func (s *Structured) serves() string {
	var text strings.Builder
	for _, p := range s.Ports {
		fmt.Fprintf(&text, "[%s]\n", p)
	}
	return text.String()
}

// leftovers returns a note about what outlived the command and was killed. why is a sentence about
// that.
func (s *Structured) leftovers(why string) string {
	var text strings.Builder
	if len(s.LeftBehind) > 0 {
		fmt.Fprintf(&text, "[Still running when the command had ended, and stopped: %s. %s]\n", list(s.LeftBehind), why)
	}
	if len(s.Stuck) > 0 {
		fmt.Fprintf(&text, "[Killed, but the kernel still holds it: %s.]\n", list(s.Stuck))
	}
	return text.String()
}

func list(left []sandbox.Left) string {
	const most = 10
	var names []string
	for i, l := range left {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(left)-most))
			break
		}
		names = append(names, fmt.Sprintf("%d (%s)", l.PID, l.Name))
	}
	return strings.Join(names, ", ")
}

// noted returns the notes, each on its own line.
func (r *shellRun) noted() string {
	var text strings.Builder
	for _, n := range r.notes {
		fmt.Fprintf(&text, "\n[%s]", n)
	}
	return text.String()
}
