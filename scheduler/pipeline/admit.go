// The machine's gate: what a call passes before it may start processes that change something, beside
// those of all other sessions.

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// loadKey returns a text that is equal for calls which are expected to take the same of the machine: of the same tool
// and, if it runs commands, the same programs, in the same order.
func loadKey(c *Call) string {
	var key strings.Builder
	key.WriteString(c.Name)
	last := ""
	for i := range c.facts.Commands {
		command := &c.facts.Commands[i]
		name, general := strings.CutSuffix(command.General(), " *") // "go build", but not the name of a file
		if !general {
			name = command.Name
		}
		if name != last && name != "" {
			key.WriteByte('\n')
			key.WriteString(name)
		}
		last = name
	}
	return key.String()
}

// admit waits, without a slot of the session's, until the machine has room for the call. waited is set if it
// had to, so that what was judged before may not hold any more. From then on the call has a place of the
// machine's, until leave. It does not wait for a slot with it: what may change anything is alone in its lane,
// and so gets that of the call that it is nested in, or the one that a session without any always gets.
func (o *order) admit(ctx context.Context, c *Call) (waited bool, err error) {
	if o.loads || !loadsMachine(c) {
		return false, nil
	}
	o.loads, o.pass = true, c.session.Enter(c, loadKey(c))
	if o.pass.Admitted() {
		return false, nil
	}
	c.files.Release()
	since := time.Now()
	notice := func(d gate.Delay) { c.session.Notice(c, waitsForHost(d, c.Use.ID)) }
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
	For       string  `json:"waits_for"` // slots, memory or pressure
	Running   int     `json:"running"`   // calls of all sessions with a place
	Limit     int     `json:"limit"`
	Waiting   int     `json:"waiting"`                   // calls of all sessions, this one too
	Available int64   `json:"available_bytes,omitempty"` // of memory
	Reserve   int64   `json:"reserve_bytes,omitempty"`   // of it
	Expected  int64   `json:"expected_bytes,omitempty"`  // what the call may take, if it waits for memory
	Waited    float64 `json:"waited_seconds,omitempty"`
	Retry     float64 `json:"retry_after_seconds,omitempty"`
}

func loadOf(d *gate.Delay) machineLoad {
	load := machineLoad{
		For: d.For.String(), Running: d.Inside, Limit: d.Slots, Waiting: d.Queued(),
		Available: d.Available, Reserve: d.Reserve,
	}
	if d.For == gate.Memory {
		load.Expected = d.Expected
	}
	return load
}

// busyRetry is when a call that met a busy machine may try again. Ours: what has run for longer than a call
// waits will hardly have ended sooner.
const busyRetry = 30 * time.Second

// hostBusy returns the fault of a call that has waited too long.
func hostBusy(b *gate.Busy) error {
	load := loadOf(&b.Delay)
	load.Waited, load.Retry = b.Waited.Seconds(), busyRetry.Seconds()
	return fault.Failedf("host_busy",
		"The call was not started: for %s the machine had no room for it. %s It had no effect. Send it again under a new id in %.0f s, wait for calls of yours that run, or do what only reads meanwhile, which does not wait.",
		seconds(b.Waited), busyText(&b.Delay), busyRetry.Seconds()).With(load)
}

// busyText returns what keeps calls waiting, as sentences. It names nothing of other sessions.
func busyText(d *gate.Delay) string {
	switch d.For {
	case gate.Memory:
		return fmt.Sprintf("It is expected to take %d MB of memory. %d MB are available, also for %d calls that run, and %d MB of it are to stay free (limits.host_memory_reserve).",
			d.Expected/1e6, d.Available/1e6, d.Inside, d.Reserve/1e6)
	case gate.Pressure:
		return "Programs on the machine wait for memory or processors, which delays calls that start more of them, each by a second."
	default:
		return fmt.Sprintf("%d calls that start programs and change something run on the whole machine, and the places that this one may have are taken: %d for those that take long, as many for quick ones (limits.host_running_calls).", d.Inside, d.Slots)
	}
}

// waitsForHost returns what clients are notified of while the call with the id waits.
func waitsForHost(d gate.Delay, id string) Noticed {
	return Noticed{
		Code: "host_wait", Message: "The call waits until the machine has room for it. " + busyText(&d), CallID: id, Details: loadOf(&d),
	}
}
