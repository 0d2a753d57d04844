// Outcomes: how a call ends, and the texts about it.

package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/ellipsis"
	"github.com/toold/toold/tools/text/redact"
)

// An Outcome is how a call ended.
type Outcome uint8

// The outcomes. Their numbers are those of the wire.
const (
	OK Outcome = iota + 1
	Error
	Invalid
	Denied
	Cancelled
	Aborted
	TimedOut
	Interrupted
	Discarded
)

// String returns the outcome's name in lower case. For stops it is also the error code.
func (o Outcome) String() string {
	return [...]string{"", "ok", "error", "invalid", "denied", "cancelled", "aborted", "timed_out", "interrupted", "discarded"}[o]
}

// A Stop is the cause with which a call is stopped, or never starts. Reason is one sentence without a full stop.
type Stop struct {
	Outcome Outcome
	Reason  string
	Code    string // of the error; empty: the outcome's name
	By      string // the client's id of the call of the same turn whose failure is the cause; empty: it is another cause
}

// Error returns the reason.
func (s *Stop) Error() string { return s.Reason }

// failure returns what the result of a call has that ends with this cause.
func (s *Stop) failure(format string, args ...any) *fault.Error {
	found := fault.Failedf(cmp.Or(s.Code, s.Outcome.String()), format, args...)
	if s.By != "" {
		found = found.With(abortedBy{s.By})
	}
	return found
}

// abortedBy is what programs are told of the cause of an abort.
type abortedBy struct {
	ToolUseID string `json:"tool_use_id"`
}

// stopOf returns the Stop in a cause's chain. Any other cause comes from the order itself, such as
// a parent that has ended.
func stopOf(cause error) *Stop {
	if stop, ok := errors.AsType[*Stop](cause); ok {
		return stop
	}
	if errors.Is(cause, tools.ErrTimeout) {
		return &Stop{Outcome: TimedOut, Reason: "its time limit ran out"}
	}
	return &Stop{Outcome: Cancelled, Reason: cause.Error()}
}

// NotStarted returns the end of a call that was never started. A cause that is a fault has its own
// message.
func NotStarted(cause error) Ended {
	if found, ok := errors.AsType[*fault.Error](cause); ok {
		return Refuse(found)
	}
	stop := stopOf(cause)
	again := " It had no effect and can be sent again under a new id."
	if stop.Outcome == Discarded {
		again = " It had no effect."
	}
	return failed(stop.Outcome, stop.failure("The call was not started: %s.%s", stop.Reason, again))
}

// A Loss is what is known of a call that was open when the daemon died.
type Loss struct {
	Code    string // why it is lost; empty: interrupted
	Started bool   // it had begun to act
	Output  string // the file with its output; empty: there is none
	Kept    bool   // the files that it was about to change were kept
	Changed string // a clause that names those that are different now; empty: none is
}

// Lost returns the end of a call that was open when the daemon died.
func Lost(l Loss) Ended {
	if !l.Started {
		return NotStarted(&Stop{Outcome: Interrupted, Reason: "the daemon ended before it was started"})
	}
	text := "The daemon ended while the call ran, so it may have had effects. It was not run again and nothing of it is still running."
	if l.Output != "" {
		text += " Its output is in " + l.Output + "."
	}
	if l.Kept && l.Changed != "" {
		text += " Of the files that it was about to change, these are different now: " + l.Changed + "."
	}
	if l.Kept {
		text += " The files that it was about to change are kept as they were: the user can see their changes with `toold diff`, and restore them with `toold undo`."
	}
	return failed(Interrupted, fault.Failedf(cmp.Or(l.Code, "interrupted"), "%s Check the present state before you send it again under a new id.", text))
}

// stopped returns the end of a started call that was stopped, with its output so far.
func stopped(cause error, ran time.Duration, result tools.Result) Ended {
	stop := stopOf(cause)
	text := fmt.Sprintf("The call was stopped after %s: %s. Its effects until then remain.", seconds(ran), stop.Reason)
	if result.Changes.Task != "" {
		text += " Its background task " + result.Changes.Task + " continues."
	}
	if stop.Outcome != Discarded {
		text += " It can be sent again under a new id."
	}
	return failed(stop.Outcome, stop.failure("%s", text)).after(result)
}

// refused returns the end of a call that was not executed because of err.
func refused(ctx context.Context, err error) Ended {
	if cause := context.Cause(ctx); cause != nil {
		return NotStarted(cause)
	}
	if stop, is := errors.AsType[*Stop](err); is {
		return NotStarted(stop)
	}
	return Refuse(err)
}

// Refuse returns the end of a tool use that could not become a call.
func Refuse(err error) Ended {
	found := fault.From(err)
	return failed(outcomeOf(found.Kind), found)
}

// Denial returns the fault of a call whose verdict denies it.
func Denial(v permission.Verdict) *fault.Error {
	var denied *fault.Error
	switch {
	case v.ByMode:
		denied = fault.Deniedf("mode_denied", "%s %s", v.Text, v.Way)
	case v.Reasons[0].Rule == nil && v.Reasons[0].Hook == nil:
		denied = fault.Deniedf("setting_denied", "%s %s", v.Text, v.Way)
	case v.Reasons[0].Rule == nil:
		denied = fault.Deniedf("hook_denied", "%s %s", v.Text, v.Way)
	default:
		denied = fault.Deniedf("rule_denied", "%s %s", v.Text, v.Way)
	}
	return denied.With(Refusal{Grounds: ReasonsOf(v.Reasons)})
}

// Refusal is the structured part of a denied call's error.
type Refusal struct {
	Grounds []Reason `json:"grounds"`
	Advice  *Advice  `json:"advice,omitempty"`
}

// A Reason is one thing that a verdict rests on, for programs.
type Reason struct {
	Code string `json:"code"`
	Text string `json:"text"`
	Rule string `json:"rule,omitempty"` // as written
	List string `json:"list,omitempty"` // "allow", "ask" or "deny"
	File string `json:"file,omitempty"` // where the rule or the hook stands
	Line int    `json:"line,omitempty"` // there, from 1
	Part string `json:"part,omitempty"` // of the call
}

// ReasonsOf puts grounds into the form for programs.
func ReasonsOf(grounds []permission.Reason) (list []Reason) {
	for _, g := range grounds {
		ground := Reason{Code: string(g.Code), Text: g.String(), Part: g.Part}
		switch {
		case g.Rule != nil:
			ground.Rule, ground.List, ground.File, ground.Line = g.Rule.Text, g.Rule.List.String(), g.Rule.Origin.File, g.Rule.Origin.Line
		case g.Hook != nil:
			ground.File, ground.Line = g.Hook.File, g.Hook.Line
		}
		list = append(list, ground)
	}
	return list
}

func outcomeOf(kind fault.Kind) Outcome {
	return [...]Outcome{fault.Failed: Error, fault.Invalid: Invalid, fault.Denied: Denied}[kind]
}

func failed(outcome Outcome, err *fault.Error) Ended {
	return Ended{Outcome: outcome, Fault: err, Content: []tools.Block{{Text: brief(err.Message)}}}
}

// add adds a text to the result.
func (e *Ended) add(text string) { e.Content = append(slices.Clip(e.Content), tools.Block{Text: text}) }

// after puts what a tool gave in front of the words about its end.
func (e Ended) after(result tools.Result) Ended {
	e.Content = append(result.Content, e.Content...)
	e.Structured, e.Spill, e.Changes = result.Structured, result.Spill, result.Changes
	return e
}

// seconds writes a duration as people say it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// label names a call for people: the tool, and at most 41 characters of what it is about, if that is known.
func label(tool, about string) string {
	about = strings.Join(strings.Fields(redact.Text(about)), " ") // before it is cut: half a secret is not recognised
	if about == "" {
		return tool
	}
	return tool + "(" + ellipsis.Runes(about, 41) + ")"
}

// because returns a few words about why a call failed: for a command how it ended, otherwise the
// code of the error, whose message the client has in the result.
func because(ended Ended) string {
	if ended.Outcome == TimedOut {
		return "its time limit ran out"
	}
	if exit, is := ended.Fault.Details.(tools.Exit); is {
		return "it " + exit.How()
	}
	return "it ended with the error " + ended.Fault.Code
}
