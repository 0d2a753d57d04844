// Calls that wait for something else than the machine do not keep others from it, and those that have got a place go on.

package daemon_test

import (
	"fmt"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// onePlace are limits with one place for all calls that start programs.
const onePlace = `"limits": {"host_running_calls": 1, "host_quick": 0}`

// passes checks that a call of another session gets the one place, and that it holds it until it has ended.
func (h *house) passes() {
	h.t.Helper()
	c := h.join("passes", free())
	c.use("passes", "Bash", `{"command":"mkdir passed"}`)
	c.until("passes OK")
}

// TestHostForm: while a client is asked by a tool in the middle of its call, the call's place is free, and it goes on beside the one
// that has taken it.
func TestHostForm(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.configure(fmt.Sprintf(`{"mcpServers": {"kit": %s}, %s}`, mcpEntry(t, 0), onePlace))
	h.start()
	c := h.mixed(free())
	c.use("a", "mcp__kit__ask", `{}`)
	q := c.until("a asks").GetQuestion()
	h.passes()
	other := h.join("other", free())
	other.pass("busy", writes)
	g.await(t, "busy")
	c.reply(q, allow, func(a *tooldv1.Answer) { a.UpdatedInputJson = `{"name":"toold"}` })
	c.until("a OK") // while the other has the place
	g.open("busy")
	other.until("busy OK")
}

// TestHostClientTool: a call that a client carries out has no place, and one that is nested in it takes one only while it runs.
func TestHostClientTool(t *testing.T) {
	h := prepare(t)
	h.configure("{" + onePlace + "}")
	h.start()
	c := h.mixed(free())
	c.use("p", "OpenDiff", `{}`)
	c.asked("p")
	c.ask(&tooldv1.ToolUse{Id: "nested", Name: "Bash", ParentToolUseId: "p", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"command":"mkdir nested"}`}})
	c.until("nested OK")
	h.passes()
	c.gives("p", &tooldv1.ClientToolResult{Content: textOf("shown")})
	c.until("p OK")
}

// TestHostSlots: a call that was let through does not wait for a slot of its principal's, of which a call beside it has the only one.
func TestHostSlots(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"host_running_calls": 1, "host_quick": 0, "max_running_calls": 1`)
	h.start()
	busy, top, reads := h.join("busy", free()), h.join("top", free()), h.join("reads", free())
	nests := h.mixed(free())
	nests.use("p", "OpenDiff", `{}`)
	nests.asked("p")
	busy.pass("busy", writes)
	g.await(t, "busy")
	top.pass("waits", writes)
	top.until("notice host_wait")
	nests.ask(&tooldv1.ToolUse{Id: "nested", Name: "Gate", ParentToolUseId: "p", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(writes, "nested")}})
	nests.until("notice host_wait")
	reads.pass("reads", `{"name":"%s"}`)
	g.await(t, "reads")
	for _, next := range []string{"busy", "waits", "nested"} {
		g.await(t, next)
		g.open(next)
	}
	nests.until("nested OK")
	g.open("reads")
	reads.until("reads OK")
}
