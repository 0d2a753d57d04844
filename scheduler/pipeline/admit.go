// The machine's gate: what a call passes before it may start processes that change something, beside
// those of all other sessions.

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/scheduler/gate"
	"github.com/toold/toold/tools/fault"
)

// loadsMachine reports whether the call passes the machine's gate: it starts programs whose effects are not
// known to be none. A call that only reads never does.
func loadsMachine(c *Call) bool {
	effects := c.parsed.effects
	return (effects.Opaque || c.facts.Opaque) && !effects.StartsNone
}

// admit waits, without a slot of the session's, until the machine has room for the call. waited is set if it
// had to, so that what was judged before may not hold any more. From then on the call has a place of the
// machine's, until leave.
func (o *order) admit(ctx context.Context, c *Call) (waited bool, err error) {
	if o.loads || !loadsMachine(c) {
		return false, nil
	}
	o.loads, o.pass = true, c.session.Enter(c)
	if o.pass.Admitted() {
		return false, nil
	}
	c.files.Release()
	since := time.Now()
	notice := func(l gate.Load) { c.session.Notice(c, waitsForHost(l, c.Use.ID)) }
	if gone := o.outside(func() { err = o.pass.Wait(ctx, notice) }); err == nil {
		err = gone
	}
	c.usage.spent(Waiting, c.accepted, since)
	if busy, is := errors.AsType[*gate.Busy](err); is {
		err = hostBusy(busy)
	}
	return true, err
}

// leave frees the call's place of the machine's, if it has one.
func (o *order) leave() {
	o.pass.Leave()
	o.loads, o.pass = false, nil
}

// A machineLoad is what programs learn of what a call waits for.
type machineLoad struct {
	Running int     `json:"running"` // calls of all sessions that the gate has let through
	Limit   int     `json:"limit"`
	Waiting int     `json:"waiting"` // calls of all sessions, this one too
	Waited  float64 `json:"waited_seconds,omitempty"`
	Retry   float64 `json:"retry_after_seconds,omitempty"`
}

// busyRetry is when a call that met a busy machine may try again. Ours: what has run for longer than a call
// waits will hardly have ended sooner.
const busyRetry = 30 * time.Second

// hostBusy returns the fault of a call that has waited too long.
func hostBusy(b *gate.Busy) error {
	return fault.Failedf("host_busy",
		"The call was not started: for %s the machine had no room for it. %s It had no effect. Send it again under a new id in %.0f s, wait for calls of yours that run, or do what only reads meanwhile, which does not wait.",
		seconds(b.Waited), busyText(b.Load), busyRetry.Seconds()).
		With(machineLoad{b.Inside, b.Slots, b.Waiting, b.Waited.Seconds(), busyRetry.Seconds()})
}

// busyText returns what keeps calls waiting, as a sentence. It names nothing of other sessions.
func busyText(l gate.Load) string {
	return fmt.Sprintf("Of the calls that start programs and change something, %d run on the whole machine, and at most %d may at once (limits.host_running_calls).", l.Inside, l.Slots)
}

// waitsForHost returns what clients are notified of while the call with the id waits.
func waitsForHost(l gate.Load, id string) Noticed {
	return Noticed{
		Code: "host_wait", Message: "The call waits until the machine has room for it. " + busyText(l), CallID: id,
		Details: machineLoad{Running: l.Inside, Limit: l.Slots, Waiting: l.Waiting},
	}
}
