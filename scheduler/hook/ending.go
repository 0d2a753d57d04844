// The meaning of one hook's end: its exit code, its output, and whether it ended properly. Its output may be a JSON answer, with
// case-sensitive keys: a value of the wrong type, or an unknown word, invalidates the whole answer. Pure.

package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

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

// maxText is the longest text of a hook, in characters: as much as existing hooks expect.
const maxText = 10_000

// An answer is a hook's JSON, parsed for one event.
type answer struct {
	decision  Decision
	reason    string
	stop      *string
	interrupt bool
	input     object // nil: unchanged
	output    *string
	context   string
	system    string
	notes     []string // clauses about requests that have no effect
}

// readAnswer parses one JSON object. The error is a clause about it.
func readAnswer(event, text string) (answer, error) {
	var top object
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		return answer{}, fmt.Errorf("printed text that begins like JSON but is not valid (%w)", err)
	}
	var wrong error
	f := fields{of: top, wrong: &wrong}
	a := answer{system: f.text("systemMessage"), stop: f.stop()}
	older, olderReason := f.choice("decision", map[string]Decision{"approve": Allow, "block": Deny}), f.text("reason")
	specific := f.inner("hookSpecificOutput")
	if name := specific.text("hookEventName"); name != "" && name != event {
		specific.refuse("hookEventName", "is %q, but the event is %s", name, event)
	}
	a.context = specific.text("additionalContext")
	switch event {
	case PreToolUse:
		a.decide(specific, "permissionDecision", "permissionDecisionReason", map[string]Decision{"allow": Allow, "ask": Ask, "deny": Deny, "defer": None})
		if specific.text("permissionDecision") == "defer" {
			a.notes = append(a.notes, "deferred its decision, which counts as none")
		}
	case PermissionRequest:
		request := specific.inner("decision")
		a.decide(request, "behavior", "message", map[string]Decision{"allow": Allow, "deny": Deny})
		if a.interrupt = request.truth("interrupt", false); request.has("updatedPermissions") {
			a.notes = append(a.notes, "requests changed permissions (updatedPermissions), which hooks cannot make; add the rule to a settings file")
		}
	case PostToolUse:
		a.output = specific.anything("updatedToolOutput")
	}
	a.alsoOlder(event, older, olderReason)
	if wrong != nil {
		return answer{}, fmt.Errorf("printed JSON that says nothing: %w", wrong)
	}
	return a, nil
}

// decide reads the fields of a decision about a call.
func (a *answer) decide(f fields, key, reason string, words map[string]Decision) {
	a.decision, a.reason, a.input = f.choice(key, words), f.text(reason), f.inner("updatedInput").of
}

// alsoOlder joins the older form of decision with the newer: the stricter counts. An approval has
// no effect at events that allow nothing.
func (a *answer) alsoOlder(event string, d Decision, reason string) {
	if d == Allow && !permits(event) {
		d = None
	}
	if d > a.decision || a.reason == "" {
		a.reason = cmp.Or(reason, a.reason)
	}
	a.decision = max(a.decision, d)
}

// permits reports whether a decision at the event is about whether a call may run.
func permits(event string) bool { return event == PreToolUse || event == PermissionRequest }

// forbidding reduces the answer of a hook that did not end properly: it can forbid a call, but not
// permit one.
func (a *answer) forbidding() {
	kept := answer{stop: a.stop}
	if a.decision > Allow {
		kept.decision, kept.reason, kept.interrupt = a.decision, a.reason, a.interrupt
	}
	*a = kept
}

// An object is a JSON object with unparsed values.
type object map[string]json.RawMessage

// fields reads the values of an object. The first invalid one is recorded in wrong, and counts as
// absent.
type fields struct {
	of    object
	at    string // the object's own name with a dot, for messages
	wrong *error
}

func (f fields) refuse(key, format string, args ...any) {
	if *f.wrong == nil {
		*f.wrong = errors.New(f.at + key + " " + fmt.Sprintf(format, args...))
	}
}

// has reports whether there is a value other than null.
func (f fields) has(key string) bool { return f.of[key] != nil && string(f.of[key]) != "null" }

// value reads one value into to, which stays unchanged if the value is absent.
func (f fields) value(key, wanted string, to any) {
	if f.has(key) && json.Unmarshal(f.of[key], to) != nil {
		f.refuse(key, "is not %s", wanted)
	}
}

// text returns a string, cut to maxText.
func (f fields) text(key string) (text string) {
	f.value(key, "a string", &text)
	return capped(text)
}

func (f fields) truth(key string, otherwise bool) bool {
	f.value(key, "true or false", &otherwise)
	return otherwise
}

func (f fields) inner(key string) fields {
	in := fields{at: f.at + key + ".", wrong: f.wrong}
	f.value(key, "an object", &in.of)
	return in
}

// choice returns the meaning of a word; None if it is absent.
func (f fields) choice(key string, words map[string]Decision) Decision {
	word := f.text(key)
	d, known := words[word]
	if f.has(key) && !known {
		f.refuse(key, "is %q; it can be %s", ellipsis.Bytes(word, 80), strings.Join(slices.Sorted(maps.Keys(words)), ", "))
	}
	return d
}

// stop returns the reason for which everything must end; nil: it must not.
func (f fields) stop() *string {
	if f.truth("continue", true) {
		return nil
	}
	reason := f.text("stopReason")
	return &reason
}

// anything returns a text, or any other value as JSON; nil: it is absent.
func (f fields) anything(key string) *string {
	if !f.has(key) {
		return nil
	}
	text := string(f.of[key])
	if text[0] == '"' {
		f.value(key, "a string", &text)
	}
	return &text
}

// capped returns a text of a hook as valid UTF-8 of at most maxText, with a note if it was cut.
func capped(text string) string { return cappedAt(text, false) }

// cappedAt does the same with a text that may have been cut before.
func cappedAt(text string, more bool) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxText || utf8.RuneCountInString(text) <= maxText {
		return text
	}
	all, least := []rune(text), ""
	if more {
		least = "at least "
	}
	return fmt.Sprintf("%s\n[%s%d more characters of the hook's text were cut off]", string(all[:maxText]), least, len(all)-maxText)
}
