// Which turn a tool use belongs to, and which call an id means.

package daemon_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"

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

// TestNamedTurn: what names a call and its turn is about that call, or refused: about no other of the same id.
func TestNamedTurn(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	for n, name := range []string{"first", "second"} {
		c.ask(&tooldv1.ToolUse{Id: "1", TurnId: fmt.Sprint("m", n+1), Name: "Gate", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(reads, name)}})
		c.until("1 accepted 0/1")
	}
	g.await(t, "first", "second")
	cancel := func(turn uint64) error {
		response, err := h.sessions().CancelCall(t.Context(), &tooldv1.CancelCallRequest{SessionId: "s", ToolUseId: "1", Turn: &turn})
		if err == nil && !response.GetCancelled() {
			t.Errorf("the call of turn %d had ended", turn)
		}
		return err
	}
	refused(t, cancel(7), codes.FailedPrecondition, "other_turn")
	c.say(cancelOf("m7", "1"))
	c.until("notice other_turn")
	if err := cancel(1); err != nil {
		t.Fatal(err)
	}
	if event := c.until("1 CANCELLED cancelled"); event.GetTurn() != 1 {
		t.Errorf("the call of turn %d was cancelled", event.GetTurn())
	}
	for turn, state := range map[uint64]tooldv1.CallState{1: tooldv1.CallState_CALL_STATE_ENDED, 2: tooldv1.CallState_CALL_STATE_RUNNING} {
		found, err := h.tools().GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: "1", Turn: &turn})
		if err != nil || found.GetState() != state || found.GetRecords()[0].GetTurn() != turn {
			t.Errorf("the call of turn %d: %v %v", turn, found, err)
		}
	}
	c.say(cancelOf("m2", "1"))
	if event := c.until("1 CANCELLED cancelled"); event.GetTurn() != 2 {
		t.Errorf("the call of turn %d was cancelled", event.GetTurn())
	}
	other := uint64(7)
	_, err := h.tools().GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: "1", Turn: &other})
	refused(t, err, codes.FailedPrecondition, "other_turn")
}

func cancelOf(turn, id string) *tooldv1.ExecuteRequest {
	return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{TurnId: turn, ToolUseId: id}}}
}

// TestRestoreOfANamedTurn: an undo that names a call's turn undoes from that call on, or is refused.
func TestRestoreOfANamedTurn(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	for _, turn := range []string{"m1", "m2"} {
		c.ask(&tooldv1.ToolUse{Id: "w", TurnId: turn, Name: "Write", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(`{"file_path":%q,"content":"x"}`, filepath.Join(h.root, turn))}})
		c.until("w OK")
	}
	c.endTurn()
	c.results()
	for turn, calls := range map[uint64]uint32{1: 2, 2: 1, 7: 0} {
		request := beforeCall("s", "w")
		request.CallTurn, request.DryRun = &turn, true
		plan, err := h.sessions().Restore(t.Context(), request)
		if calls == 0 {
			refused(t, err, codes.FailedPrecondition, "other_turn")
		} else if err != nil || plan.GetUndoneCalls() != calls {
			t.Errorf("before the call of turn %d: %v %v, want %d calls undone", turn, plan, err, calls)
		}
	}
}
