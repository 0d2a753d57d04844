// Which turn a tool use belongs to, and which call an id means.

package daemon_test

import (
	"fmt"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestTurnsByName: another turn_id ends the open turn, an id counts within its turn, and a repeat opens none.
func TestTurnsByName(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	use := func(turn, id, name string) {
		c.ask(&tooldv1.ToolUse{Id: id, TurnId: turn, Name: "Gate", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(reads, name)}})
	}
	use("m1", "1", "first")
	use("m2", "1", "second")
	c.until("1 accepted 0/1")
	c.until("1 accepted 0/1")
	use("m1", "1", "first")
	again := c.until("1 accepted 0/1")
	if !again.GetAccepted().GetReplayed() || again.GetTurn() != 1 || again.GetTurnId() != "m1" {
		t.Errorf("%v, want the acceptance of turn 1 replayed", again)
	}
	use("m2", "1", "third")
	c.until("notice duplicate_id")
	g.await(t, "first", "second")
	g.open("first", "second")
	c.until("turn 1 ended 1/1")
	c.endTurn()
	c.until("turn 2 ended 1/1")
}

// TestIDsWithoutTurn: an id without a turn_id is that of the session's newest call, and counts in its own turn.
func TestIDsWithoutTurn(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	use := func(turn, id, name string) {
		c.ask(&tooldv1.ToolUse{Id: id, TurnId: turn, Name: "Gate", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(reads, name)}})
	}
	repeats := func(turn, id, name string, of uint64) {
		t.Helper()
		use(turn, id, name)
		if again := c.until(id + " accepted"); !again.GetAccepted().GetReplayed() || again.GetTurn() != of {
			t.Errorf("%v, want the acceptance in turn %d replayed", again, of)
		}
	}
	use("m1", "a", "1a") // a gate that is entered twice panics
	c.until("a accepted 0/1")
	repeats("", "a", "1a", 1)
	use("", "b", "1b")
	c.until("b accepted 1/1")
	repeats("m1", "b", "1b", 1)
	use("m1", "b", "other")
	c.until("notice duplicate_id")
	use("", "a", "other")
	c.until("notice duplicate_id")
	use("m2", "a", "2a")
	c.until("a accepted 0/1")
	repeats("", "a", "2a", 2)
	repeats("m1", "a", "1a", 1)
	g.await(t, "1a", "1b", "2a")
	c.discard()
	c.until("a DISCARDED")
	repeats("", "a", "1a", 1) // the newest that was not thrown away
	g.open("1a", "1b")
	c.until("turn 1 ended 2/1")
}

// TestRunToolBesideATurn: a RunTool call in a session has a turn of its own and leaves the open one alone.
func TestRunToolBesideATurn(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.pass("a", reads)
	g.await(t, "a")
	run := h.run(&tooldv1.RunToolRequest{SessionId: "s", Id: "beside", Name: "Gate", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: fmt.Sprintf(reads, "beside")}})
	g.await(t, "beside")
	g.open("beside")
	events, err := run()
	if err != nil {
		t.Fatal(err)
	}
	want(t, story(events), []string{"beside accepted 0/1", "beside started", "beside OK"})
	c.pass("b", reads)
	c.endTurn()
	g.await(t, "b")
	g.open("a", "b")
	c.until("turn 1 ended 2/1")
	again, err := h.run(&tooldv1.RunToolRequest{SessionId: "s", Id: "beside", Name: "Gate", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: fmt.Sprintf(reads, "beside")}})()
	if err != nil || len(again) != 3 || !again[0].GetAccepted().GetReplayed() {
		t.Errorf("%q, %v; want the same records again", story(again), err)
	}
}

// run calls RunTool; the function that it gives receives everything to the end.
func (h *house) run(request *tooldv1.RunToolRequest) func() ([]*tooldv1.ExecuteResponse, error) {
	h.t.Helper()
	stream, err := h.tools().RunTool(h.t.Context(), request)
	if err != nil {
		h.t.Fatal(err)
	}
	return func() ([]*tooldv1.ExecuteResponse, error) {
		return drain(func() (*tooldv1.ExecuteResponse, error) {
			response, err := stream.Recv()
			return response.GetEvent(), err
		})
	}
}
