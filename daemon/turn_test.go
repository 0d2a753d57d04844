package daemon_test

// Turns: which calls run beside each other, what ends them early, and what is told about it.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

const (
	reads  = `{"name":"%s"}`
	writes = `{"name":"%s","writes":true}`
)

// pass sends a call of the gate whose id is its name.
func (c *conversation) pass(name, how string) {
	c.t.Helper()
	c.use(name, "Gate", fmt.Sprintf(how, name))
}

func TestBatches(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	for _, name := range []string{"r1", "r2", "w", "r3", "r4"} {
		how := reads
		if name == "w" {
			how = writes
		}
		c.pass(name, how)
	}
	c.use("nope", "Nope", `{}`)
	c.endTurn()
	g.await(t, "r1", "r2") // side by side
	g.open("r1")
	c.until("r1 OK")
	if g.began("w") || g.began("r3") {
		t.Error("a call has overtaken the batch before it")
	}
	g.open("r2")
	g.await(t, "w")
	if g.began("r3") {
		t.Error("a serial call does not run alone")
	}
	g.open("w")
	g.await(t, "r3", "r4")
	g.open("r3", "r4")
	c.until("turn 1 ended 6/3")
	var accepted []string
	for _, e := range c.events {
		if e.GetAccepted() != nil {
			accepted = append(accepted, tell(e))
		}
	}
	want(t, accepted, []string{"r1 accepted 0/1", "r2 accepted 1/1", "w accepted 2/2", "r3 accepted 3/3", "r4 accepted 4/3", "nope accepted 5/0"})
	want(t, c.events[len(c.events)-1].GetTurnEnded().GetOutcomes(), map[string]uint32{"ok": 5, "invalid": 1})
}

// TestFeedAndConcurrency: calls held until the turn's end, and one by one.
func TestFeedAndConcurrency(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	one := int32(1)
	c := h.join("s", free(&tooldv1.Options{Start: tooldv1.Start_START_AT_END_OF_TURN.Enum(), MaxConcurrency: &one}))
	c.pass("a", reads)
	c.pass("b", reads)
	c.until("b accepted")
	if g.began("a") {
		t.Error("a call began before its turn was ended")
	}
	c.endTurn()
	g.await(t, "a")
	g.open("a")
	c.until("a OK")
	g.await(t, "b")
	g.open("b")
	c.until("turn 1")
	want(t, story(c.events)[4:], []string{"a started", "a OK", "b started", "b OK", "turn 1 ended 2/1"})
}

// TestSiblingAbort: whose failure aborts the turn under which policy.
func TestSiblingAbort(t *testing.T) {
	bashlike, other := tools.AbortSiblings, tools.Alone
	for _, test := range []struct {
		policy  tooldv1.SiblingAbort
		failure tools.Failure
		how     string
		aborts  bool
	}{
		{tooldv1.SiblingAbort_SIBLING_ABORT_UNSPECIFIED, bashlike, reads, true},
		{tooldv1.SiblingAbort_SIBLING_ABORT_BASH, bashlike, reads, true},
		{tooldv1.SiblingAbort_SIBLING_ABORT_BASH, other, writes, false},
		{tooldv1.SiblingAbort_SIBLING_ABORT_MUTATING_BASH, bashlike, reads, false},
		{tooldv1.SiblingAbort_SIBLING_ABORT_MUTATING_BASH, bashlike, writes, true},
		{tooldv1.SiblingAbort_SIBLING_ABORT_MUTATING_BASH, other, writes, false},
		{tooldv1.SiblingAbort_SIBLING_ABORT_ANY, other, reads, true},
		{tooldv1.SiblingAbort_SIBLING_ABORT_NONE, bashlike, writes, false},
	} {
		t.Run(fmt.Sprintf("%s %d %s", test.policy, test.failure, test.how), func(t *testing.T) {
			g := newGate(tools.Spec{Name: "Gate", OnFailure: test.failure})
			h := serve(t, g)
			c := h.join("s", free(&tooldv1.Options{SiblingAbort: test.policy.Enum()}))
			c.pass("first", test.how)
			c.pass("waiting", writes)
			c.until("waiting accepted")
			g.await(t, "first")
			g.fail("first")
			c.until("first ERROR gate_failed")
			if !test.aborts {
				g.await(t, "waiting")
				g.open("waiting")
				c.endTurn()
				want(t, outcomes(c.results()), map[string]string{"waiting": "OK"})
				return
			}
			c.pass("later", reads)
			c.endTurn()
			results := c.results()
			want(t, outcomes(results), map[string]string{"waiting": "ABORTED aborted", "later": "ABORTED aborted"})
			text := results["waiting"].GetContent()[0].GetText()
			if text != "The call was not started: Gate failed in the same turn: the gate first did not open. It had no effect and can be sent again under a new id." {
				t.Errorf("text %q", text)
			}
			c.pass("next", reads) // the session goes on
			g.await(t, "next")
			g.open("next")
			c.until("next OK")
		})
	}
}

// TestAbortStopsRunning: a running sibling is stopped, and one that was not executed aborts nobody.
func TestAbortStopsRunning(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.use("nope", "Nope", `{}`)
	c.use("bad", "Gate", `{"name":7}`)
	c.pass("a", reads)
	c.pass("b", reads)
	g.await(t, "a", "b")
	g.fail("b")
	c.endTurn()
	results := c.results()
	want(t, outcomes(results), map[string]string{"nope": "INVALID unknown_tool", "bad": "INVALID invalid_input", "a": "ABORTED aborted", "b": "ERROR gate_failed"})
	blocks := results["a"].GetContent()
	if blocks[0].GetText() != "not through" || !strings.Contains(blocks[1].GetText(), "Gate failed in the same turn: the gate b did not open") {
		t.Errorf("content %v, want what it had done and why it was stopped", blocks)
	}
}

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
			!strings.Contains(result.GetContent()[1].GetText(), "What it had done by then stays done.") {
			t.Errorf("%v, want it said that what was done stays", result.GetContent())
		}
	}
	slices.Sort(told)
	want(t, told, []string{
		"1 a OK", "1 b DISCARDED discarded", "1 c DISCARDED discarded", "2 a OK", "2 b OK",
		"turn 1 ended 3/3", "turn 2 ended 2/1",
	})
}

// TestOrderedResults: results come in the order of the tool uses, and a later one is not lost meanwhile.
func TestOrderedResults(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	ordered := true
	c := h.join("s", free(&tooldv1.Options{OrderedResults: &ordered}))
	c.pass("a", reads)
	c.pass("b", reads)
	c.use("nope", "Nope", `{}`)
	c.pass("c", reads)
	c.endTurn()
	g.await(t, "a", "b", "c")
	g.open("c")
	g.open("b")
	g.open("a")
	c.until("turn 1")
	var told []string
	for _, e := range c.events {
		if e.GetToolResult() != nil {
			told = append(told, tell(e))
		}
	}
	want(t, told, []string{"a OK", "b OK", "nope INVALID unknown_tool", "c OK"})
}

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

// TestNested: a call that is part of a running one does not wait for it, belongs to its turn, and ends with it.
func TestNested(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	nested := func(id, parent, how string) {
		c.ask(&tooldv1.ToolUse{Id: id, ParentToolUseId: parent, Name: "Gate", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(how, id)}})
	}
	nested("orphan", "outer", reads)
	c.until("orphan INVALID unknown_parent")
	c.pass("outer", writes)
	c.pass("after", writes)
	g.await(t, "outer")
	c.endTurn()
	nested("inner", "outer", writes)
	nested("left", "outer", writes)
	g.await(t, "inner")
	c.until("left accepted")
	if g.began("after") {
		t.Error("a call has overtaken what is nested in an earlier one")
	}
	g.open("inner")
	c.until("inner OK")
	g.await(t, "left")
	g.open("outer")
	c.until("left CANCELLED cancelled")
	g.await(t, "after")
	g.open("after")
	c.until("turn 1 ended 5/2")
}

// TestToolThatPanics ends its own call and nothing else.
func TestToolThatPanics(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.use("p", "Gate", `{"name":"p","panics":true}`)
	c.until("p ERROR internal")
	c.endTurn()
	c.until("turn 1")
	c.pass("a", reads)
	g.await(t, "a")
	g.open("a")
	c.until("a OK")
}
