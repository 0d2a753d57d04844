// What a hook's JSON says. Keys count as they are written; what is of the wrong type, or none of the words that are known
// for it, spoils the whole answer. What an answer leads to is not known here.

package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools/ellipsis"
)

// maxText is how much of one text a hook may give, in characters: as much as hooks are used to.
const maxText = 10_000

// An answer is a hook's JSON, read for one event.
type answer struct {
	decision  Decision
	reason    string
	stop      *string
	interrupt bool
	input     object // nil: unchanged
	output    *string
	context   string
	system    string
	notes     []string // clauses about what the hook asked for in vain
}

// readAnswer reads what is one JSON object. The error is a clause about it.
func readAnswer(event, text string) (answer, error) {
	var top object
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		return answer{}, fmt.Errorf("printed what begins like JSON and is none (%w)", err)
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

// decideBefore reads what is PreToolUse's own.
func (a *answer) decideBefore(f fields) {
	a.decision = f.choice("permissionDecision", map[string]Decision{"allow": Allow, "ask": Ask, "deny": Deny, "defer": None})
	if f.text("permissionDecision") == "defer" {
		a.notes = append(a.notes, "deferred its decision, which counts as none")
	}
	a.reason, a.input = f.text("permissionDecisionReason"), f.inner("updatedInput").of
}

// decideRequest reads what is PermissionRequest's own.
func (a *answer) decideRequest(f fields) {
	a.decision = f.choice("behavior", map[string]Decision{"allow": Allow, "deny": Deny})
	a.reason, a.input, a.interrupt = f.text("message"), f.inner("updatedInput").of, f.truth("interrupt", false)
	if f.has("updatedPermissions") {
		a.notes = append(a.notes, "wants permissions changed (updatedPermissions), which hooks cannot do; put the rule into a settings file")
	}
}

// alsoOlder joins the older way of deciding with the newer: the stricter counts. Where nothing is to be allowed, an
// approval says nothing.
func (a *answer) alsoOlder(event string, d Decision, reason string) {
	if d == Allow && !permits(event) {
		d = None
	}
	if d > a.decision || a.reason == "" {
		a.reason = firstOf(reason, a.reason)
	}
	a.decision = max(a.decision, d)
}

// permits reports whether a decision at the event is one about whether a call may run.
func permits(event string) bool { return event == PreToolUse || event == PermissionRequest }

// forbidding is what counts of the answer of a hook that did not come to its own end: it can hold a call back, and not
// let one through.
func (a *answer) forbidding() {
	kept := answer{stop: a.stop}
	if a.decision > Allow {
		kept.decision, kept.reason, kept.interrupt = a.decision, a.reason, a.interrupt
	}
	*a = kept
}

// An object is a JSON object with its values as they came.
type object map[string]json.RawMessage

// fields reads the values of an object. The first that does not fit is noted in wrong, and counts as absent.
type fields struct {
	of    object
	at    string // its own name with a dot, for messages
	wrong *error
}

func (f fields) refuse(key, format string, args ...any) {
	if *f.wrong == nil {
		*f.wrong = errors.New(f.at + key + " " + fmt.Sprintf(format, args...))
	}
}

// has reports whether a value is there that is not null.
func (f fields) has(key string) bool { return f.of[key] != nil && string(f.of[key]) != "null" }

// value reads one value into to, which is left alone when it is absent.
func (f fields) value(key, wanted string, to any) {
	if f.has(key) && json.Unmarshal(f.of[key], to) != nil {
		f.refuse(key, "is not %s", wanted)
	}
}

// text returns a string, cut to what hooks may say.
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

// choice returns what a word stands for; an absent one for None.
func (f fields) choice(key string, words map[string]Decision) Decision {
	word := f.text(key)
	d, known := words[word]
	if f.has(key) && !known {
		f.refuse(key, "is %q; it can be %s", ellipsis.Bytes(word, 80), strings.Join(slices.Sorted(maps.Keys(words)), ", "))
	}
	return d
}

// stop returns the reason for which everything is to end; nil: it is not.
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

// capped makes a text of a hook fit to be passed on: valid UTF-8, and not longer than maxText but for a note of that.
func capped(text string) string { return cappedAt(text, false) }

// cappedAt does the same with a text of which there may have been more.
func cappedAt(text string, more bool) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	count := 0
	for end := range text {
		if count == maxText {
			least := ""
			if more {
				least = "at least "
			}
			return fmt.Sprintf("%s\n[%s%d more characters of the hook's text were cut off]", text[:end], least, utf8.RuneCountInString(text[end:]))
		}
		count++
	}
	return text
}

// firstOf returns the first text that says something.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
