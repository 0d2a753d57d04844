// Questions about hidden lines: a program on the terminal of a call reads what the terminal does not
// show, such as a password. The line goes from the answer to the terminal, past every record.

package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
)

// askingSecrets returns the function by which the terminals of a call ask for hidden lines.
func askingSecrets(c *Call) func(context.Context, sandbox.Prompt) ([]byte, bool) {
	var asked atomic.Int64
	pass := c.order.pass
	return func(ctx context.Context, prompt sandbox.Prompt) ([]byte, bool) {
		defer pass.Away()()
		secret, err := c.session.AskSecret(ctx, c, secretQuestion(c, prompt, asked.Add(1)))
		return secret, err == nil
	}
}

// secretQuestion returns the question, which is the call's number-th about a hidden line.
func secretQuestion(c *Call, prompt sandbox.Prompt, number int64) Question {
	input, err := json.Marshal(struct {
		Program string `json:"program"`
		Command string `json:"command"`
	}{prompt.Program, prompt.Command})
	if err != nil {
		panic("BUG: a prompt that is not JSON")
	}
	reason := fmt.Sprintf("The program %s on the terminal of this command asks for a line that is not shown, such as a password. Its command line is %q. What you type goes to this terminal only.", prompt.Program, prompt.Command)
	return Question{
		Tool: c.Name, Title: fmt.Sprintf("%s: input for %s, not shown", c.Title(), prompt.Program), Input: string(input),
		Digest: DigestOf(fmt.Sprintf("%s.%d %s", c.Key, number, input)), Facts: &permission.Facts{}, Form: &tools.Form{}, Secret: &prompt,
		Verdict: permission.Asking(permission.Dangerous, permission.Reason{Code: permission.ToolAsks, Detail: reason}),
	}
}
