package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
)

// Exit codes. Scripts rely on them.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitNoDaemon = 3
	ExitSignal   = 130 // as shells report a program that SIGINT ended
)

// An Error is how a command ends: its exit code, and its last line on standard error.
type Error struct {
	Code  int    // Exit...
	Text  string // empty: no line
	Cause error  // in the words of a library, for -v; nil: the text is complete
}

func (e *Error) Error() string { return e.Text }

// Failed returns an Error for a command that could not do what it was asked for.
func Failed(format string, args ...any) error {
	return &Error{Code: ExitFailed, Text: fmt.Sprintf(format, args...)}
}

// Misused returns an Error for a wrong command line.
func Misused(format string, args ...any) error {
	return &Error{Code: ExitUsage, Text: fmt.Sprintf(format, args...)}
}

// NoDaemon returns an Error for a daemon that cannot be reached or started.
func NoDaemon(format string, args ...any) error {
	return &Error{Code: ExitNoDaemon, Text: fmt.Sprintf(format, args...)}
}

// Verdict returns the exit code and the last line for the error of a command. An error that is not an Error comes from
// cobra, which reports only wrong command lines.
func Verdict(err error) (code int, text string) {
	var e *Error
	switch {
	case err == nil:
		return ExitOK, ""
	case errors.As(err, &e):
		return e.Code, e.Text
	default:
		return ExitUsage, err.Error()
	}
}

// A RemoteError is an error of a call to a daemon or gateway over TCP, which no command of this machine starts.
type RemoteError struct {
	error
	Where string // tcp://HOST:PORT
}

// AtRemote returns an error of a call with where it was made; nil for nil.
func AtRemote(err error, where string) error {
	if err == nil {
		return nil
	}
	return &RemoteError{err, where}
}

// Unwrap returns the error of the call.
func (e *RemoteError) Unwrap() error { return e.error }

// GRPCStatus returns the status of the call, for package status.
func (e *RemoteError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// Describe returns an error of a call to the daemon as a sentence for the user: the daemon's own message, its reason code, and
// what to do next.
func Describe(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		if errors.Is(err, context.Canceled) {
			return "stopped"
		}
		return err.Error()
	}
	text, reason := strings.TrimSuffix(s.Message(), "."), toold.Reason(err)
	hint := hints[s.Code()]
	switch remote, is := errors.AsType[*RemoteError](err); {
	case !is:
	case s.Code() == codes.Unavailable && reason != "": // it has answered
		hint = ""
	case s.Code() == codes.Unavailable:
		hint = "The daemon at " + remote.Where + " is started on its own machine, not by a command of this one."
	case s.Code() == codes.DeadlineExceeded:
		hint = "Try again: a gateway may be waiting for the rest of its cluster."
	}
	switch {
	case reason != "":
		text += " (" + reason + ")"
	case s.Code() == codes.Canceled:
		return "stopped"
	default: // the connection's own words, which say nothing to a person
		text = cmp.Or(connectionWords[s.Code()], "the exchange with the daemon failed; -v shows how")
	}
	if hint != "" {
		return text + ". " + hint
	}
	return text + "."
}

// connectionWords are the messages for errors of the connection, which the daemon has no part in.
var connectionWords = map[codes.Code]string{
	codes.Unavailable:       "the connection to the daemon broke off",
	codes.Unimplemented:     "the daemon does not know this request",
	codes.ResourceExhausted: "a message was larger than the other side takes",
	codes.DeadlineExceeded:  "the daemon did not answer in time",
}

// hints are what the user of the command line can do next.
var hints = map[codes.Code]string{
	codes.NotFound:      "\"toold sessions --all\" lists the sessions.",
	codes.Unavailable:   "\"toold status\" says whether a daemon runs; \"toold start\" starts one.",
	codes.Unimplemented: "This daemon does not serve it; \"toold status\" tells its version.",
	codes.Aborted:       "The session goes on there; \"toold attach\" watches it from beside.",
}

// Action adapts a command's body: whatever plain error it returns was a failure of the command, not of its usage.
func Action(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := body(cmd.Context(), args)
		var e *Error
		if err == nil || errors.As(err, &e) {
			return err
		}
		wrong := &Error{Code: ExitFailed, Text: Describe(err), Cause: err}
		if status.Code(err) == codes.Unavailable {
			wrong.Code = ExitNoDaemon
		}
		return wrong
	}
}
