// Calls that go on in another program.

package pipeline

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/toold/toold/tools"
)

// A Passed is a call that has not started, as another program goes on with it.
type Passed struct {
	Use       Use       `json:"use"`
	Input     string    `json:"input"` // byte for byte, which JSON does not keep of itself
	Accepted  time.Time `json:"accepted"`
	Questions int       `json:"questions,omitempty"` // that were made
}

// PassOn returns what another program goes on with of a call. The scheduler has called neither Run nor Skip, or they have returned.
func PassOn(c *Call) Passed {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Passed{Use: c.Use, Accepted: c.accepted, Questions: c.questions}
	p.Input = cmp.Or(c.parsed.sent, c.parsed.input)
	return p
}

// GoOn returns the call of a use that has waited in another program, as New does.
func GoOn(p Passed, tool tools.Tool, session Session) (call *Call, refused *Ended) {
	p.Use.Input = json.RawMessage(p.Input)
	call, refused = New(p.Use, tool, session)
	if call != nil {
		call.accepted, call.questions = p.Accepted, p.Questions
	}
	return call, refused
}
