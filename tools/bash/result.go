// The result of a command, for a model and for programs.

package bash

import (
	"fmt"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// Structured is the result of Bash, BashOutput and KillShell for programs.
type Structured struct {
	// ExitCode is absent while the command runs, and if a signal has ended it.
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"` // "SIGKILL", ...
	// Interpretation is the meaning of an exit code that is an answer and not a failure.
	Interpretation string `json:"interpretation,omitempty"`
	// TaskID is the id of the background task, and Status its state: "running" or "ended".
	TaskID string `json:"task_id,omitempty"`
	Status string `json:"status,omitempty"`

	StdoutBytes int64  `json:"stdout_bytes"`          // printed so far
	StderrBytes int64  `json:"stderr_bytes"`          // printed so far
	OutputPath  string `json:"output_path,omitempty"` // the raw bytes of both; absent if nothing was printed
	// OmittedBytes and OmittedLines are left out of the text. ReplacedBytes were not UTF-8.
	OmittedBytes  int64 `json:"omitted_bytes,omitempty"`
	OmittedLines  int64 `json:"omitted_lines,omitempty"`
	ReplacedBytes int64 `json:"replaced_bytes,omitempty"`

	WorkingDirectory string  `json:"working_directory,omitempty"` // in which the command started
	MaxRSSBytes      int64   `json:"max_rss_bytes,omitempty"`     // of its largest process
	Kept             []*Left `json:"kept,omitempty"`              // continue as the background task TaskID
	LeftBehind       []*Left `json:"left_behind,omitempty"`       // still ran when the command had ended, and were stopped
	Stuck            []*Left `json:"stuck,omitempty"`             // were killed, but the kernel still holds them
}

// A Left is a process that outlived its command.
type Left struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Exit is the structured part of a failed command's error.
type Exit struct {
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
}

// Refused is the structured part of the error of a command that was stopped because it requested
// the same host repeatedly.
type Refused struct {
	Host  string `json:"host"`
	Count int    `json:"count"`
}

// room is reserved in the inline text for notes, in characters.
const room = 1000

// result builds the text: the exit code, the output, the notes. task holds what the command has
// left running; nil: nothing.
func (r *shellRun) result(exit sandbox.Exit, task *background.Task) (tools.Result, error) {
	changes := r.changes(exit)
	s := Structured{WorkingDirectory: r.dir}
	s.ended(exit)
	if task != nil {
		s.TaskID, s.Status, changes.Task = task.ID, "running", task.ID
	}
	s.measure(r.out)
	var meaning string
	benign := false
	if s.ExitCode != nil && *s.ExitCode != 0 {
		meaning, benign = shell.Benign(r.in.analysis.Last, *s.ExitCode, s.StdoutBytes)
	}
	if benign {
		s.Interpretation = meaning
	}
	printed, err := r.out.Excerpt(textRoom(r.env.MaxChars))
	if err != nil {
		return tools.Result{Structured: s, Changes: changes}, fault.Failedf("io_error", "The command has ended, but its output cannot be read back: %v.", err)
	}
	if task != nil {
		changes.Cursor = &tools.Cursor{Task: task.ID, Offset: printed.End}
	}
	text, spill := s.text(printed, r.out.Path())
	body, notes := s.headline()+orNothing(text, s), s.goesOn(r.out.Path())+s.leftovers(r.whyStopped(benign || !s.failed()))+r.noted()
	if notes != "" {
		body = spool.EndLine(body)
	}
	result := tools.Text(body + notes)
	result.Structured, result.Spill, result.Changes = s, spill, changes
	if s.failed() && !benign {
		return result, s.fault()
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
	s.Signal, s.MaxRSSBytes = exit.Signal, exit.MaxRSS
	if exit.Code >= 0 {
		s.ExitCode = &exit.Code
	}
	s.Kept, s.LeftBehind, s.Stuck = lefts(exit.Kept), lefts(exit.LeftBehind), lefts(exit.Stuck)
}

func lefts(list []sandbox.Left) (out []*Left) {
	for _, l := range list {
		out = append(out, &Left{PID: l.PID, Name: l.Name})
	}
	return out
}

func (s *Structured) measure(out *spool.Output) {
	s.StdoutBytes, s.StderrBytes = out.Size(spool.Stdout), out.Size(spool.Stderr)
	if s.StdoutBytes+s.StderrBytes > 0 {
		s.OutputPath = out.Path()
	}
}

// textRoom returns how many characters of the inline text the output may have.
func textRoom(maxChars int) int { return max(maxChars-room, maxChars/2) }

// text returns the excerpt, with a line between head and tail about what is left out.
func (s *Structured) text(x spool.Excerpt, path string) (string, *tools.Spill) {
	s.ReplacedBytes, s.OmittedBytes, s.OmittedLines = x.Replaced, x.Bytes, x.Lines
	if x.Bytes == 0 {
		return x.Head, nil
	}
	return x.Text(path), &tools.Spill{Path: path, Bytes: x.Bytes, Lines: x.Lines}
}

func orNothing(text string, s Structured) string {
	if strings.TrimSpace(text) == "" && !s.failed() {
		return "(no output)"
	}
	return text
}

func (s *Structured) failed() bool { return s.ExitCode == nil || *s.ExitCode != 0 }

// headline returns the first line of the text if the exit code is not 0.
func (s *Structured) headline() string {
	switch {
	case s.ExitCode == nil && s.Signal != "":
		return fmt.Sprintf("Ended by signal %s\n", s.Signal)
	case s.ExitCode == nil:
		return "Exit code unknown\n"
	case *s.ExitCode == 0:
		return ""
	case s.Interpretation != "":
		return fmt.Sprintf("Exit code %d\n(%s)\n", *s.ExitCode, s.Interpretation)
	}
	return fmt.Sprintf("Exit code %d\n", *s.ExitCode)
}

func (s *Structured) fault() error {
	text := "The command ended without an exit code."
	switch {
	case s.ExitCode != nil:
		text = fmt.Sprintf("The command ended with exit code %d.", *s.ExitCode)
	case s.Signal != "":
		text = fmt.Sprintf("The command was ended by signal %s.", s.Signal)
	}
	return fault.Failedf("exit_code", "%s Its output usually shows why.", text).With(Exit{s.ExitCode, s.Signal})
}

// goesOn returns a note about what the command has left running. Its output goes to the file at
// path.
func (s *Structured) goesOn(path string) string {
	if len(s.Kept) == 0 {
		return ""
	}
	return fmt.Sprintf("[Left running in the background as %s: %s. BashOutput returns what is printed from now on, which goes to %s; KillShell stops it.]\n", s.TaskID, list(s.Kept), path)
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

func list(left []*Left) string {
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
