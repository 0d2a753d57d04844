// Who stops calls from outside: a cancel, an interrupt, a turn that is thrown away.

package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// TestCancel: one call, a turn with what still comes of it, and what is not there.
func TestCancel(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.pass("a", writes)
	c.pass("b", writes)
	c.pass("c", writes)
	g.await(t, "a")
	c.cancelCall("b")
	c.until("b CANCELLED cancelled")
	c.cancelCall("nobody")
	c.until("notice unknown_call")
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{TurnId: "nothing"}}})
	c.until("notice unknown_turn")
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{Reason: "no longer needed"}}})
	c.pass("d", reads)
	c.endTurn()
	results := c.results()
	want(t, outcomes(results), map[string]string{"a": "CANCELLED cancelled", "c": "CANCELLED cancelled", "d": "CANCELLED cancelled"})
	if text := results["c"].GetContent()[0].GetText(); !strings.Contains(text, "a client cancelled it: no longer needed") {
		t.Errorf("text %q, want the client's reason", text)
	}
	c.cancelCall("a") // it has ended: nothing happens
	response, err := h.sessions().CancelCall(t.Context(), &tooldv1.CancelCallRequest{SessionId: "s", ToolUseId: "a"})
	if err != nil || response.GetCancelled() {
		t.Errorf("CancelCall of an ended call: %v, %v", response, err)
	}
}

// TestInterrupt: what runs of an interruptible tool is stopped, the rest finishes, and nothing more starts.
func TestInterrupt(t *testing.T) {
	g, steady := gateTool(), newGate(tools.Spec{Name: "Steady", OnInterrupt: tools.Finish})
	h := serve(t, g, steady)
	c := h.join("s", free())
	c.pass("stops", reads)
	c.use("finishes", "Steady", `{"name":"finishes"}`)
	c.pass("waits", writes)
	c.until("waits accepted")
	g.await(t, "stops")
	steady.await(t, "finishes")
	if _, err := h.sessions().Interrupt(t.Context(), &tooldv1.InterruptRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	c.until("stops CANCELLED cancelled")
	steady.open("finishes")
	c.endTurn()
	c.until("turn")
	want(t, outcomes(resultsOf(c.events)), map[string]string{"stops": "CANCELLED cancelled", "waits": "CANCELLED cancelled", "finishes": "OK"})
}

// TestDiscard: the ids of a discarded turn are free at once, also that of a call that is still being stopped.
func TestDiscard(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.pass("a", reads)
	g.await(t, "a")
	g.open("a")
	c.until("a OK")
	c.pass("b", writes)
	c.pass("c", writes)
	g.await(t, "b")
	c.discard()
	c.use("a", "Gate", `{"name":"a again"}`)
	c.use("b", "Gate", `{"name":"b again"}`)
	g.await(t, "a again", "b again")
	g.open("a again", "b again")
	c.endTurn()
	c.until("turn ")
	c.until("turn ") // the discarded turn ends when its last call has, be it before or after the next
	var told []string
	for _, e := range c.events {
		result := e.GetToolResult()
		switch {
		case result != nil:
			told = append(told, fmt.Sprintf("%d %s", e.GetTurn(), tell(e)))
		case e.GetTurnEnded() != nil:
			told = append(told, tell(e))
		}
		if result.GetToolUseId() == "b" && result.GetOutcome() == tooldv1.Outcome_OUTCOME_DISCARDED &&
			!strings.Contains(result.GetContent()[1].GetText(), "Its effects until then remain.") {
			t.Errorf("%v, want it said that what was done stays", result.GetContent())
		}
	}
	slices.Sort(told)
	want(t, told, []string{
		"1 a OK", "1 b DISCARDED discarded", "1 c DISCARDED discarded", "2 a OK", "2 b OK",
		"turn 1 ended 3/3", "turn 2 ended 2/1",
	})
}
