// The meaning of one hook's end: its exit code, its output, and whether it ended properly. Pure.

package hook

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	exitBlock        = 2 // the hook forbids the call
	exitNoExecutable = 126
	exitNotFound     = 127
)

// An ending is how one hook has ended, or how a request was answered.
type ending struct {
	out, err string // the kept part of the output
	cut      bool   // more was printed to out than was kept
	errCut   bool   // and to err
	code     int
	// failure is, as a clause, what prevented the hook from ending properly; empty: nothing.
	failure string
	notes   []string // clauses
}

// Heard is the result of one hook.
type heard struct {
	answer
	opinions []permission.Opinion
	failures []string // clauses
	withheld bool     // the output is kept from the model, because a hook that should have checked it has failed
}

// hear returns the meaning of the ending at an event. Failures are in failures. If a hook that must
// not fail has failed, it forbids a call that has not run yet, and withholds the output of one that
// has succeeded. At an event with nothing to prevent, the model is notified.
func (e *ending) hear(h *Hook, event string, input veil) heard {
	a, failures := e.read(event)
	if why := input.lift(a.input); why != "" {
		failures = append(failures, why)
		a.forbidding()
	}
	a.notes = append(a.notes, e.notes...)
	all := heard{answer: a, failures: failures}
	say := func(d Decision, text string) { all.opinions = append(all.opinions, d.opinion(h, text)) }
	if a.decision != None {
		say(a.decision, a.reason)
	}
	if a.stop != nil && permits(event) {
		say(Deny, cmp.Or(*a.stop, "The session is to stop."))
	}
	if h.Block && len(failures) > 0 {
		clauses := strings.Join(failures, ", and ")
		switch {
		case permits(event):
			say(Deny, capped("It "+clauses+"; the call may not go on without it."))
		case event == PostToolUse:
			all.output, all.withheld = h.withholds(), true
		case event == PostToolUseFailure:
			say(Deny, capped(fmt.Sprintf("The %s %s.", h, clauses)))
		}
	}
	return all
}

// withholds returns the text that the model gets instead of an output that the hook should have
// checked. It does not contain the hook's failure, which may quote the output.
func (h *Hook) withholds() *string {
	text := fmt.Sprintf("The call has succeeded, and what it did stays done. Its output is withheld, because the %s has failed, which must check it first. "+
		"Sending the call again does not help until the hook is fixed; the notice hook_failed has the reason.", h)
	return &text
}

// read parses the answer and joins it with the exit code.
func (e *ending) read(event string) (a answer, failures []string) {
	if e.failure != "" {
		failures = append(failures, e.failure)
	}
	var err error
	if text := strings.ToValidUTF8(strings.TrimSpace(e.out), "\uFFFD"); strings.HasPrefix(text, "{") {
		a, err = readAnswer(event, text)
	}
	switch {
	case err != nil && e.cut:
		failures = append(failures, fmt.Sprintf("printed JSON of more than %d bytes, which was not read", maxOut))
	case err != nil:
		failures = append(failures, err.Error())
	case e.cut:
		a.notes = append(a.notes, fmt.Sprintf("printed more than %d bytes; the rest was dropped", maxOut))
	}
	if e.failure != "" {
		a.forbidding()
	}
	switch {
	case e.code == exitBlock:
		a.block(e.err, e.errCut)
	case e.failure == "" && e.code != 0:
		failures = append(failures, exited(e.code, e.err))
	}
	return a, failures
}

// block makes the answer a denial, for its own reason, or for the text printed on standard error if
// it has none. more: that text was cut.
func (a *answer) block(printed string, more bool) {
	printed = cappedAt(strings.TrimSpace(printed), more)
	if a.decision == Allow {
		a.reason = cmp.Or(printed, a.reason)
	} else {
		a.reason = cmp.Or(a.reason, printed)
	}
	a.decision = Deny
}

// exited returns the meaning of an exit code that is neither success nor a denial.
func exited(code int, printed string) string {
	text := fmt.Sprintf("ended with exit code %d", code)
	switch code {
	case exitNotFound:
		text += ", which means that a program was not found"
	case exitNoExecutable:
		text += ", which means that a program is not executable"
	}
	if printed = strings.TrimSpace(strings.ToValidUTF8(printed, "\uFFFD")); printed != "" {
		text += fmt.Sprintf(", and printed %q", ellipsis.Bytes(printed, 500))
	}
	return text
}
