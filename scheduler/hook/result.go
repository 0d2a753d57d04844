// What all hooks of one event come to. The order of the hooks decides, never which of them ended first. It does not know
// what the rules say of the call, nor whether anybody heeds the result.

package hook

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toold/toold/scheduler/permission"
)

// A Decision is what hooks want of a call.
type Decision uint8

// The decisions, from the mildest. The strictest of several counts.
const (
	None  Decision = iota // no hook said anything
	Allow                 // of PreToolUse and PermissionRequest only
	Ask                   // of PreToolUse only
	Deny                  // at an event after a call: the hook objects
)

// String returns the decision as hooks write it.
func (d Decision) String() string { return [...]string{"none", "allow", "ask", "deny"}[d] }

// A Reason is what one hook decided, and why. A hook may give several.
type Reason struct {
	Decision Decision // not None
	Text     string   // empty: it gave none
	Origin   permission.Origin
}

// A Result is what hooks said, in the order of the hooks. Every text is valid UTF-8 and, but for Input and Output, has at
// most 10,000 characters and a note of how many were cut off.
type Result struct {
	Decision Decision
	Reasons  []Reason // all of them, also those that did not decide
	// Input is the call's input as hooks have rewritten it, not checked against anything; nil: it is unchanged, or denied.
	Input     json.RawMessage
	Interrupt bool     // a hook that denied a PermissionRequest wants the turn to end
	Context   []string // what the model is to be told besides
	// Output stands in place of the tool's output, at most 1 MiB; nil: that stays. One that is withheld is replaced by why.
	Output *string
	System []string // what the user is to be told
	// Stop is why the model is to go no further, in the words of the first hook that wants it; nil: it goes on.
	Stop *string
	// Failures are sentences, each naming a hook that did not do what hooks do.
	Failures []string
	// Notes are sentences about what hooks asked for in vain, or left behind.
	Notes []string
}

// join makes one result of what was heard of each hook.
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
		r.Decision = max(r.Decision, reason.Decision)
	}
	if r.Decision != Deny {
		r.Input, r.Interrupt = input, false
	}
	return r
}

// take adds what was heard of one hook.
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
	for _, clause := range one.failures {
		r.Failures = append(r.Failures, capped(fmt.Sprintf("The %s %s.", h, clause)))
	}
	for _, clause := range one.notes {
		r.Notes = append(r.Notes, capped(fmt.Sprintf("The %s %s.", h, clause)))
	}
}

// chooseOutput lets the last hook that replaces the output have its way, and says so when others wanted something else.
// What one hook withholds no other brings back.
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
