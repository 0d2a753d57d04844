// The joined result of all hooks of one event. It depends on the order of the hooks, and not on which of them ended first. All of
// them received the same input, so each counts for the fields that it changed, added or removed.

package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/ellipsis"
)

// A Decision is what hooks decide about a call.
type Decision uint8

// The decisions, from the mildest to the strictest, as permission has them but for None. The strictest of several counts.
const (
	None  Decision = iota // no hook has decided
	Allow                 // of PreToolUse and PermissionRequest only
	Ask                   // of PreToolUse only
	Deny                  // at an event after a call: the hook objects
)

// String returns the decision as hooks write it.
func (d Decision) String() string { return [...]string{"none", "allow", "ask", "deny"}[d] }

// opinion returns a decision other than None as that of a hook.
func (d Decision) opinion(h *Hook, text string) permission.Opinion {
	return permission.Opinion{Decision: permission.Decision(d - Allow), Reason: text, Origin: h.Origin}
}

// A Result is the joined answers, in the order of the hooks. Every text is valid UTF-8. Every text
// but Input and Output has at most 10,000 characters and a note of how many were cut off.
type Result struct {
	Decision Decision
	Reasons  []permission.Opinion // all of them, including those that did not decide
	// Input is the call's input as hooks have rewritten it, unchecked; nil: unchanged, or denied.
	Input     json.RawMessage
	Interrupt bool     // a hook that denied a PermissionRequest wants the turn to end
	Context   []string // additional text for the model
	// Output replaces the tool's output, at most 1 MiB; nil: it stays. A withheld output is
	// replaced by the reason.
	Output *string
	System []string // messages for the user
	// Stop is why the model must stop, from the first hook that wants it; nil: it may continue.
	Stop *string
	// Failures are sentences, each about a hook that has failed.
	Failures []string
	// Notes are sentences about requests of hooks that have no effect, and about what hooks left
	// behind.
	Notes []string
}

// join joins the results of all hooks.
func join(hooks []*Hook, all []heard, in *Input) Result {
	var r Result
	for i, one := range all {
		r.take(hooks[i], one)
	}
	r.chooseOutput(hooks, all)
	input, conflict := rewrite(in.ToolInput, hooks, all)
	if conflict != nil {
		r.Reasons = append(r.Reasons, *conflict)
	}
	for _, reason := range r.Reasons {
		r.Decision = max(r.Decision, Decision(reason.Decision)+Allow)
	}
	if r.Decision != Deny {
		r.Input, r.Interrupt = input, false
	}
	return r
}

// take adds the result of one hook.
func (r *Result) take(h *Hook, one heard) {
	r.Reasons = append(r.Reasons, one.opinions...)
	if one.context != "" {
		r.Context = append(r.Context, one.context)
	}
	if one.system != "" {
		r.System = append(r.System, one.system)
	}
	if r.Stop == nil {
		r.Stop = one.stop
	}
	r.Interrupt = r.Interrupt || one.interrupt && one.decision == Deny
	r.Failures = append(r.Failures, h.sentences(one.failures)...)
	r.Notes = append(r.Notes, h.sentences(one.notes)...)
}

// sentences returns clauses about the hook as sentences.
func (h *Hook) sentences(clauses []string) (list []string) {
	for _, clause := range clauses {
		list = append(list, capped(fmt.Sprintf("The %s %s.", h, clause)))
	}
	return list
}

// chooseOutput uses the output of the last hook that replaces it, and notes if others wanted
// something else. No other hook can replace a withheld output.
func (r *Result) chooseOutput(hooks []*Hook, all []heard) {
	if at := slices.IndexFunc(all, func(one heard) bool { return one.withheld }); at >= 0 {
		r.Output = all[at].output
		return
	}
	for i, one := range slices.Backward(all) {
		switch {
		case one.output == nil:
		case r.Output == nil:
			r.Output = one.output
		case *r.Output != *one.output:
			r.Notes = append(r.Notes, fmt.Sprintf("The %s replaced the output, and so did a later hook, whose text counts.", hooks[i]))
		}
	}
}

// rewrite returns the input with all changes of the hooks; nil: none. Two hooks that set a field to
// different values conflict, which denies the call.
func rewrite(original json.RawMessage, hooks []*Hook, all []heard) (json.RawMessage, *permission.Opinion) {
	if !slices.ContainsFunc(all, func(one heard) bool { return one.input != nil }) {
		return nil, nil
	}
	var given object
	_ = json.Unmarshal(original, &given) // an input that is not an object has no fields
	result, by := maps.Clone(given), map[string]*Hook{}
	if result == nil {
		result = object{}
	}
	for i, one := range all {
		if one.input == nil {
			continue
		}
		for _, name := range changed(given, one.input) {
			if first := by[name]; first != nil && !equal(result, one.input, name) {
				return nil, conflict(name, first, hooks[i], result, one.input)
			}
			by[name], result[name] = hooks[i], one.input[name]
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	maps.DeleteFunc(result, func(_ string, value json.RawMessage) bool { return value == nil }) // a hook has removed it
	text, err := encoded(result)
	if err != nil {
		panic("BUG: values that were read as JSON cannot be written: " + err.Error())
	}
	return bytes.TrimSpace(text), nil
}

// changed returns the names of the fields in which two objects differ, sorted.
func changed(from, to object) (names []string) {
	for _, o := range []object{from, to} {
		for name := range o {
			if !equal(from, to, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// equal reports whether a field is the same in two objects: absent in both, or the same value in
// any notation. Programs reformat numbers, so numbers are compared as floating point.
func equal(a, b object, name string) bool {
	var left, right any
	return bytes.Equal(a[name], b[name]) ||
		json.Unmarshal(a[name], &left) == nil && json.Unmarshal(b[name], &right) == nil && reflect.DeepEqual(left, right)
}

func conflict(name string, first, second *Hook, one, other object) *permission.Opinion {
	value := func(o object) string { return cmp.Or(ellipsis.Bytes(string(o[name]), 200), "none") }
	return new(Deny.opinion(second, capped(fmt.Sprintf(
		"Two hooks give the field %q of the input different values: %s by the %s, and %s by the %s. Only one of them may change it.",
		ellipsis.Bytes(name, 200), value(one), first, value(other), second))))
}
