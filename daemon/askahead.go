// Questions of calls whose turn has not come: what waits behind others for a while is judged early, so
// that the user can answer meanwhile.

package daemon

import (
	"slices"
	"time"

	"github.com/toold/toold/scheduler/pipeline"
)

// askAheadAfter is how long a call waits for its turn before it asks ahead. The user does not notice
// it, and calls that are quick are judged once.
const askAheadAfter = 100 * time.Millisecond

// askAhead has the call ask before its turn has come, when others are in front of it. One goroutine
// asks, in the order of the calls.
func (ask *asker) askAhead(c *pipeline.Call) {
	ask.s.update(func(its *state) {
		others := false
		for _, t := range its.ledger.turns {
			others = others || len(t.open) > 1 || len(t.open) == 1 && t.number != c.Use.Turn
		}
		if !others {
			return
		}
		its.questions.ahead = append(its.questions.ahead, c)
		if len(its.questions.ahead) > 1 {
			return
		}
		ask.s.work.Go(func() {
			for next := c; next != nil; next = ask.nextAhead() {
				next.AskAhead(ask.s.ctx, askAheadAfter)
			}
		})
	})
}

// nextAhead is done with the first call that is to ask ahead, and returns the one behind it whose
// turn has not come; nil: there is none.
func (ask *asker) nextAhead() *pipeline.Call {
	return view(ask.s, func(its *state) *pipeline.Call {
		next := slices.IndexFunc(its.questions.ahead[1:], pipeline.Waits)
		its.questions.ahead = its.questions.ahead[1+max(next, 0):]
		if next < 0 || its.stopping {
			its.questions.ahead = nil
			return nil
		}
		return its.questions.ahead[0]
	})
}
