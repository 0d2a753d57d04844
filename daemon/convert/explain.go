// An explanation: what a call would do, and how its processes would be confined.

package convert

import (
	"fmt"
	"slices"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// Invalid is the explanation of a call that would not be accepted.
func Invalid(err *fault.Error) *tooldv1.ExplainResponse {
	return &tooldv1.ExplainResponse{Error: errorOf(err), Decision: tooldv1.Decision_DECISION_DENY, Reasons: []string{Visible(err.Message)}}
}

func decisionOf(d permission.Decision) tooldv1.Decision {
	return map[permission.Decision]tooldv1.Decision{
		permission.Allow: tooldv1.Decision_DECISION_ALLOW, permission.Ask: tooldv1.Decision_DECISION_ASK, permission.Deny: tooldv1.Decision_DECISION_DENY,
	}[d]
}

// Explanation returns the verdict on a call and what it rests on. Warnings are not in it.
func Explanation(e pipeline.Explanation) *tooldv1.ExplainResponse {
	v := e.Verdict
	wire := &tooldv1.ExplainResponse{
		Valid: true, Concurrent: e.Concurrent, ReadOnly: e.Effects.ReadOnly(), Level: tooldv1.Level(v.Level), Grounds: groundsOf(v.Reasons),
		Decision: decisionOf(v.Decision), Suggestions: Each(e.Suggestions, suggestionOf), PermissionMode: wireMode(e.Mode), Effects: effectsOf(e.Facts),
		Confinement: confinementOf(e.Confined), Error: errorOf(e.Fault),
	}
	for _, h := range e.Hooks {
		wire.Reasons = append(wire.Reasons, Visible(fmt.Sprintf("The %s hook in %s is asked first; what it will say is not known.", h.Event, h.Origin)))
	}
	wire.Reasons = append(wire.Reasons, Each(v.Sentences, func(reason string) string { return Shortened(Visible(reason), ShownReason) })...)
	if v.Way != "" {
		wire.Reasons = append(wire.Reasons, v.Way)
	}
	return wire
}

// effectsOf puts what a call would do into lines.
func effectsOf(f *permission.Facts) (lines []string) {
	add := func(line string) { lines = append(lines, Shortened(Visible(line), ShownReason)) }
	for _, c := range f.Commands {
		how := ""
		switch {
		case c.ForkBomb:
			continue
		case c.ReadOnly:
			how = " (only reads)"
		case c.DenyOnly:
			how = " (behind " + c.Via + ", which only deny and ask rules look through)"
		case c.Transparent:
			how = " (looked through)"
		}
		add("runs " + c.Text + how)
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
		add(verb + where)
	}
	for _, a := range f.Accesses {
		line := "makes " + a.Opens + " writable for the call"
		if a.Leaves != "" {
			line = "leaves the sandbox to change " + a.Leaves
		}
		if (a.Leaves != "" || a.Opens != "") && !slices.Contains(lines, Shortened(Visible(line), ShownReason)) {
			add(line)
		}
	}
	for _, host := range f.Hosts {
		add("contacts " + host)
	}
	if more := len(lines) - shownLines; more > 0 {
		lines = append(lines[:shownLines], fmt.Sprintf("and %d things more", more))
	}
	return lines
}

// confinementOf returns as much as there is room for.
func confinementOf(c pipeline.Confined) *tooldv1.Confinement {
	if c.Tier == "" {
		return nil
	}
	wire, left := &tooldv1.Confinement{Tier: Tier(c.Tier), NotCovered: Each(c.NotCovered, Visible)}, Room(ShownNames)
	for _, d := range c.Denials {
		denial := &tooldv1.SandboxDenial{
			Operation: string(d.Operation), Target: Visible(d.Target), Count: uint32(d.Count), Allow: Visible(d.Allow), MovedTo: Visible(d.MovedTo),
		}
		if !left.Takes(denial.Target, denial.Allow, denial.MovedTo) {
			break
		}
		wire.Denials = append(wire.Denials, denial)
	}
	return wire
}
