// An explanation as it goes over the wire.

package daemon

import (
	"fmt"
	"slices"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// invalid is the explanation of a call that would not be accepted.
func invalid(err *fault.Error) *tooldv1.ExplainResponse {
	return &tooldv1.ExplainResponse{Error: errorOf(err), Decision: tooldv1.Decision_DECISION_DENY, Reasons: []string{visible(err.Message)}}
}

func decisionOf(d permission.Decision) tooldv1.Decision {
	return map[permission.Decision]tooldv1.Decision{
		permission.Allow: tooldv1.Decision_DECISION_ALLOW, permission.Ask: tooldv1.Decision_DECISION_ASK, permission.Deny: tooldv1.Decision_DECISION_DENY,
	}[d]
}

func explanationOf(e pipeline.Explanation) *tooldv1.ExplainResponse {
	v := e.Verdict
	wire := &tooldv1.ExplainResponse{
		Valid: true, Concurrent: e.Concurrent, ReadOnly: e.Effects.ReadOnly(), Level: tooldv1.Level(v.Level), Grounds: groundsOf(v.Reasons),
		Decision: decisionOf(v.Decision), Suggestions: each(e.Suggestions, suggestionOf), PermissionMode: wireMode(e.Mode), Effects: effectsOf(e.Facts),
		Confinement: confinementOf(e.Confined),
	}
	for _, h := range e.Hooks {
		wire.Reasons = append(wire.Reasons, visible(fmt.Sprintf("The %s hook in %s is asked first; what it will say is not known.", h.Event, h.Origin)))
	}
	for _, reason := range v.Sentences {
		wire.Reasons = append(wire.Reasons, shortened(visible(reason), shownReason))
	}
	if v.Way != "" {
		wire.Reasons = append(wire.Reasons, v.Way)
	}
	return wire
}

// effectsOf puts what a call would do into lines.
func effectsOf(f *permission.Facts) (lines []string) {
	for _, c := range f.Commands {
		if c.ForkBomb {
			continue
		}
		line := "runs " + c.Text
		switch {
		case c.ReadOnly:
			line += " (only reads)"
		case c.DenyOnly:
			line += " (behind " + c.Via + ", which only deny and ask rules look through)"
		case c.Transparent:
			line += " (looked through)"
		}
		lines = append(lines, visible(line))
	}
	for _, a := range f.Accesses {
		verb, where := "reads ", a.Named
		if a.Write {
			verb = "writes "
		}
		if a.Real != a.Named {
			where += " -> " + a.Real
		}
		if !a.Inside {
			where += " (outside)"
		}
		lines = append(lines, visible(verb+where))
	}
	for _, a := range f.Accesses {
		line := "makes " + a.Opens + " writable for the call"
		switch {
		case a.Leaves != "":
			line = "leaves the sandbox to change " + a.Leaves
		case a.Opens == "":
			continue
		}
		if line = visible(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, host := range f.Hosts {
		lines = append(lines, visible("contacts "+host))
	}
	if more := len(lines) - shownLines; more > 0 {
		lines = append(lines[:shownLines], fmt.Sprintf("and %d things more", more))
	}
	for i, line := range lines {
		lines[i] = shortened(line, shownReason)
	}
	return lines
}
