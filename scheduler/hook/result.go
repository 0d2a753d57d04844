// The joined result of all hooks of one event. It depends on the order of the hooks, and not on
// which of them ended first.

package hook

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toold/toold/scheduler/permission"
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
