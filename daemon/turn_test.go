// Turns: which calls run beside each other, what of that ends them early, and in which order it is told.

package daemon_test

import (
	"fmt"
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
			title := map[string]string{reads: "Gate(name: first)", writes: "Gate(name: first, writes: true)"}[test.how]
			want(t, results["waiting"].GetContent()[0].GetText(), "The call was not started: "+title+
				" failed in the same turn: it ended with the error gate_failed. It had no effect and can be sent again under a new id.")
			want(t, results["waiting"].GetError().GetDetails().AsMap(), map[string]any{"tool_use_id": "first"})
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
	if blocks[0].GetText() != "not through" || !strings.Contains(blocks[1].GetText(), "Gate(name: b) failed in the same turn: it ended with the error gate_failed") {
		t.Errorf("content %v, want what it had done and why it was stopped", blocks)
	}
}

// callState asks where a call stands.
func (h *house) callState(session, call string) tooldv1.CallState {
	h.t.Helper()
	got, err := h.tools().GetCall(h.t.Context(), &tooldv1.GetCallRequest{SessionId: session, ToolUseId: call})
	if err != nil {
		h.t.Fatal(err)
	}
	return got.GetState()
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
	for h.callState("s", "c") != tooldv1.CallState_CALL_STATE_COMPLETED { // until it has ended
		want(t, h.callState("s", "c"), tooldv1.CallState_CALL_STATE_RUNNING)
	}
	want(t, h.callState("s", "b"), tooldv1.CallState_CALL_STATE_RUNNING)
	g.open("b")
	g.open("a")
	c.until("turn 1")
	want(t, h.callState("s", "c"), tooldv1.CallState_CALL_STATE_ENDED)
	var told []string
	for _, e := range c.events {
		if e.GetToolResult() != nil {
			told = append(told, tell(e))
		}
	}
	want(t, told, []string{"a OK", "b OK", "nope INVALID unknown_tool", "c OK"})
}

// TestNested: a call that is part of a running one does not wait for it, belongs to its turn, and ends with it.
func TestNested(t *testing.T) {
	t.Parallel() // it waits for a heartbeat, 5 s
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
	beat := c.until("") // each is heard of after 5 s at the latest
	for beat.GetProgress().GetToolUseId() != "inner" {
		beat = c.until("")
	}
	want(t, beat.GetProgress().GetParentToolUseId(), "outer")
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
