// Questions of a tool in the middle of its call: like those about permission, except that the tool
// gets the answer.

package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// asking returns the call's way to ask, one question at a time, from any of its goroutines. The call keeps its slot meanwhile;
// its time stands still.
func (c *Call) asking(watch *stopwatch) func(context.Context, tools.Form) (tools.Reply, error) {
	var one sync.Mutex
	count := c.questions
	return func(ctx context.Context, form tools.Form) (tools.Reply, error) {
		one.Lock()
		defer one.Unlock()
		count++
		q := c.formQuestion(count, form)
		resume := watch.pause()
		input, err := c.session.Ask(ctx, c, q)
		resume()
		if said, ok := errors.AsType[*fault.Error](err); ok && said.Code == "client_denied" {
			return tools.Reply{Why: said.Message}, nil
		}
		return tools.Reply{Yes: err == nil, Content: json.RawMessage(input)}, err
	}
}

func (c *Call) formQuestion(number int, form tools.Form) Question {
	reason := fmt.Sprintf("%s asks, in the middle of its call: %s", c.Name, form.Message)
	return Question{
		ID: fmt.Sprintf("%s.%d", c.Key, number), Tool: c.Name, Title: c.Title(), Input: c.parsed.input,
		Digest: DigestOf(fmt.Sprintf("%d%q%s", number, form.Message, form.Schema)), Facts: c.facts, Form: &form,
		Verdict: permission.Verdict{Decision: permission.Ask, Level: c.verdict.Level, Text: reason, Sentences: []string{reason}, Reasons: []permission.Reason{{Code: permission.ToolAsks, Detail: reason}}},
	}
}
