package daemon_test

import (
	"testing"

	"github.com/toold/toold/tools/tooltest/ownspace"
)

// TestHostHeldConnection: while a connection waits for the answer about its host, the call's place is free.
func TestHostHeldConnection(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, ", "+onePlace)
	c := h.join("s", nil)
	c.connect("asks", hostA)
	q := c.asksHost("asks", hostA)
	h.passes()
	c.reply(q, allow)
	want(t, c.printed("asks"), []string{hostA + " 200"})
}

// TestHostSecret: while a program waits for a hidden line, the call's place is free.
func TestHostSecret(t *testing.T) {
	h := prepare(t)
	h.configure("{" + onePlace + "}")
	h.start()
	c := h.join("s", free())
	c.use("ask", "Bash", `{"command":"read -s a; touch read","pty":true}`)
	c.endTurn()
	q := c.secretQuestion()
	h.passes()
	c.replies(q, "four")
	c.resultOf("ask")
}

// TestHostMemory: where memory would not leave the reserve, one call runs at a time, and what else waits for memory ends with that.
func TestHostMemory(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"host_running_calls": 9, "host_memory_reserve": 1000000000000000, "host_wait": "5s"`)
	h.start()
	other := h.join("other", free())
	other.pass("busy", writes)
	g.await(t, "busy")
	c := h.join("s", free())
	c.pass("waits", writes)
	notice := c.until("notice host_wait").GetNotice().GetDetails().AsMap()
	failure := c.until("waits ERROR host_busy").GetToolResult().GetError()
	details := failure.GetDetails().AsMap()
	for _, d := range []map[string]any{notice, details} {
		if d["waits_for"] != "memory" || d["reserve_bytes"] != 1e15 || d["expected_bytes"] != float64(128<<20) || d["available_bytes"].(float64) <= 0 {
			t.Errorf("told %v", d)
		}
	}
	g.open("busy")
	other.until("busy OK")
	c.use("then", "Bash", `{"command":"mkdir d"}`) // nothing runs, so that it does
	c.until("then OK")
}
