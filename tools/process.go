// What a tool reports about a process that it has run.

package tools

import (
	"errors"
	"fmt"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// An Exit is how a process has ended. It is also the details of the fault exit_code.
type Exit struct {
	// ExitCode is absent while the process runs, and if a signal has ended it.
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"` // "SIGKILL", ...
}

// ExitOf returns the exit of the sandbox's main process.
func ExitOf(exit sandbox.Exit) Exit {
	if exit.Code < 0 {
		return Exit{Signal: exit.Signal}
	}
	return Exit{&exit.Code, exit.Signal}
}

// Failed reports whether the exit code is not 0.
func (e Exit) Failed() bool { return e.ExitCode == nil || *e.ExitCode != 0 }

// Headline returns the first line of a result's text if the exit code is not 0.
func (e Exit) Headline() string {
	switch {
	case !e.Failed():
		return ""
	case e.ExitCode != nil:
		return fmt.Sprintf("Exit code %d\n", *e.ExitCode)
	case e.Signal != "":
		return fmt.Sprintf("Ended by signal %s\n", e.Signal)
	}
	return "Exit code unknown\n"
}

// How returns how the process has ended, as the end of a sentence about it: "ended with exit code 1".
func (e Exit) How() string {
	switch {
	case e.ExitCode != nil:
		return fmt.Sprintf("ended with exit code %d", *e.ExitCode)
	case e.Signal != "":
		return "was ended by signal " + e.Signal
	}
	return "ended without an exit code"
}

// Fault returns the error of a process that has failed: "The command ended with exit code 1." and
// where to look for the reason.
func (e Exit) Fault(what, where string) error {
	return fault.Failedf("exit_code", "The %s %s. Its %s usually shows why.", what, e.How(), where).With(e)
}

// Printed is what a process has printed, and what of it is in the text of the result.
type Printed struct {
	StdoutBytes int64  `json:"stdout_bytes"`          // printed so far
	StderrBytes int64  `json:"stderr_bytes"`          // printed so far
	OutputPath  string `json:"output_path,omitempty"` // the file with the raw bytes; absent if nothing was printed to it
	// OmittedBytes and OmittedLines are left out of the text. ReplacedBytes were not UTF-8.
	OmittedBytes  int64 `json:"omitted_bytes,omitempty"`
	OmittedLines  int64 `json:"omitted_lines,omitempty"`
	ReplacedBytes int64 `json:"replaced_bytes,omitempty"`
}

// Text returns an excerpt of the output at path as text, and what is left out of it; nil: nothing.
func (p *Printed) Text(x spool.Excerpt, path string) (string, *Spill) {
	p.ReplacedBytes, p.OmittedBytes, p.OmittedLines = x.Replaced, x.Bytes, x.Lines
	if x.Bytes == 0 {
		return x.Head, nil
	}
	return x.Text(path), &Spill{Path: path, Bytes: x.Bytes, Lines: x.Lines}
}

// OutputRoom returns how many characters of a result's text the output may have. The rest is
// reserved for notes.
func OutputRoom(maxChars int) int { return max(maxChars-1000, maxChars/2) }

// outputRetry is when a call that met a limit of several outputs may be sent again, in seconds: when
// others may have ended, whose outputs make room. Ours.
const outputRetry = 10

// overLimit is which limit was reached, for programs. The status is what a method would have been
// refused with.
type overLimit struct {
	Status     string  `json:"status"`
	Scope      string  `json:"scope"`
	Limit      int64   `json:"limit_bytes"`
	RetryAfter float64 `json:"retry_after_seconds"`
}

// OutputFault returns the error of a process that was stopped because its output could not be kept:
// a full disk and a full quota are not its own failures.
func OutputFault(what string, err error, out *spool.Output) error {
	if shared, ok := errors.AsType[*spool.LimitError](err); ok {
		return fault.Failedf("output_limit", "The %s was stopped because its output would have taken %s over their limit of %d bytes, and no output of an ended call is left to remove. The first %d bytes are in %s. Make it print less or write to a file, or send it again under a new id in %d s, when others may have ended.", what, shared.Of, shared.Bytes, out.Total(), out.Path(), outputRetry).With(overLimit{"RESOURCE_EXHAUSTED", string(shared.Of), shared.Bytes, outputRetry})
	}
	switch {
	case errors.Is(err, spool.ErrLimit):
		return fault.Failedf("output_limit", "The %s was stopped because it had printed %d bytes, the limit of one call. They are in %s. Make it print less, or write to a file.", what, out.Total(), out.Path())
	case errors.Is(err, spool.ErrFull):
		return fault.Failedf("disk_full", "The %s was stopped because the disk that keeps its output is full; that is not the %[1]s's own failure. The first %d bytes are in %s. Free some space on that disk, then send the call again.", what, out.Total(), out.Path())
	}
	return fault.Failedf("io_error", "The %s was stopped because its output could not be kept: %v.", what, err)
}
