// How a call's processes were confined, as wire messages.

package daemon

import (
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// confinementOf returns as much as there is room for.
func confinementOf(c pipeline.Confined) *tooldv1.Confinement {
	if c.Tier == "" {
		return nil
	}
	wire, left := &tooldv1.Confinement{Tier: tierOf(c.Tier), NotCovered: each(c.NotCovered, visible)}, room(shownNames)
	for _, d := range c.Denials {
		denial := &tooldv1.SandboxDenial{
			Operation: string(d.Operation), Target: visible(d.Target), Count: uint32(d.Count), Allow: visible(d.Allow), MovedTo: visible(d.MovedTo),
		}
		if !left.takes(denial.Target, denial.Allow, denial.MovedTo) {
			break
		}
		wire.Denials = append(wire.Denials, denial)
	}
	return wire
}
