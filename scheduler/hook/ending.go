// What one hook's end means: its exit code, what it printed, and whether it came to its own end. Pure: how hooks are run,
// and what others said, is not known here.

package hook

import (
	"fmt"
	"strings"

	"github.com/toold/toold/tools/ellipsis"
)

const (
	exitBlock        = 2 // the hook forbids
	exitNoExecutable = 126
	exitNotFound     = 127
)

// An ending is how one hook has ended, or a request was answered.
type ending struct {
	out, err string // what was printed, as far as it was kept
	cut      bool   // more was printed to out than was kept
	errCut   bool   // and to err
	code     int
	// failure says as a clause what kept the hook from coming to its own end; empty: it came to that.
	failure string
	notes   []string // clauses
}

// Heard is what counts of one hook.
type heard struct {
	answer
	opinions []Reason
	failures []string // clauses
	withheld bool     // output is there to keep what the hook has not seen to from the model
}

// hear returns what the ending means at an event. Whatever went wrong is in failures. A hook that must not fail, and has,
// holds back what it could have: a call that has not run yet, or the output of one that has succeeded. Where it could have
// held back nothing, the model is told.
func (e *ending) hear(h *Hook, event string, input veil) heard {
	a, failures := e.read(event)
	if why := input.lift(a.input); why != "" {
		failures = append(failures, why)
		a.forbidding()
	}
	a.notes = append(a.notes, e.notes...)
	all := heard{answer: a, failures: failures}
	say := func(d Decision, text string) {
		all.opinions = append(all.opinions, Reason{Decision: d, Text: text, Origin: h.Origin})
	}
	if a.decision != None {
		say(a.decision, a.reason)
	}
	if a.stop != nil && permits(event) {
		say(Deny, firstOf(*a.stop, "The session is to stop."))
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

// withholds is what the model reads in place of an output that the hook should have seen to. How the hook failed stays out
// of it: that may quote the output.
func (h *Hook) withholds() *string {
	text := fmt.Sprintf("The call has succeeded, and what it did stays done. Its output is withheld, because the %s has failed, without which it may not be seen. "+
		"Sending the call again brings no output before the hook is fixed; the notice hook_failed says what is wrong with it.", h)
	return &text
}

// read reads the answer, joined with the exit code.
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

// block makes the answer a refusal, for its own reason, or for what was printed as an error if it has none that fits.
// more: that is not all that was printed.
func (a *answer) block(printed string, more bool) {
	printed = cappedAt(strings.TrimSpace(printed), more)
	if a.decision == Allow {
		a.reason = firstOf(printed, a.reason)
	} else {
		a.reason = firstOf(a.reason, printed)
	}
	a.decision = Deny
}

// exited returns what an exit code means that is neither success nor a refusal.
func exited(code int, printed string) string {
	text := fmt.Sprintf("ended with exit code %d", code)
	switch code {
	case exitNotFound:
		text += ", which says that a program was not found"
	case exitNoExecutable:
		text += ", which says that a program is not executable"
	}
	if printed = strings.TrimSpace(strings.ToValidUTF8(printed, "\uFFFD")); printed != "" {
		text += fmt.Sprintf(", and printed %q", ellipsis.Bytes(printed, 500))
	}
	return text
}
