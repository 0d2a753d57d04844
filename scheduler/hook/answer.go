// A hook's JSON answer. Keys are case-sensitive. A value of the wrong type, or an unknown word,
// invalidates the whole answer.

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

	"github.com/toold/toold/tools/text/ellipsis"
)

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
		a.decideBefore(specific)
	case PermissionRequest:
		a.decideRequest(specific.inner("decision"))
	case PostToolUse:
		a.output = specific.anything("updatedToolOutput")
	}
	a.alsoOlder(event, older, olderReason)
	if wrong != nil {
		return answer{}, fmt.Errorf("printed JSON that says nothing: %w", wrong)
	}
	return a, nil
}

// decideBefore reads the fields of PreToolUse.
func (a *answer) decideBefore(f fields) {
	a.decision = f.choice("permissionDecision", map[string]Decision{"allow": Allow, "ask": Ask, "deny": Deny, "defer": None})
	if f.text("permissionDecision") == "defer" {
		a.notes = append(a.notes, "deferred its decision, which counts as none")
	}
	a.reason, a.input = f.text("permissionDecisionReason"), f.inner("updatedInput").of
}

// decideRequest reads the fields of PermissionRequest.
func (a *answer) decideRequest(f fields) {
	a.decision = f.choice("behavior", map[string]Decision{"allow": Allow, "deny": Deny})
	a.reason, a.input, a.interrupt = f.text("message"), f.inner("updatedInput").of, f.truth("interrupt", false)
	if f.has("updatedPermissions") {
		a.notes = append(a.notes, "requests changed permissions (updatedPermissions), which hooks cannot make; add the rule to a settings file")
	}
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
