// Calls that wait for the machine, and how their waiting ends.

package daemon_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// busyHost is a daemon that lets one call at a time start programs, with one that runs: let opens it.
func busyHost(t *testing.T, limits string) (h *house, g *gate, let func()) {
	t.Helper()
	g = gateTool()
	h = prepare(t, g)
	h.limit(`"host_running_calls": 1, "host_quick": 0` + limits)
	h.start()
	other := h.join("other", free())
	other.pass("busy", writes)
	g.await(t, "busy")
	return h, g, func() {
		t.Helper()
		g.open("busy")
		other.until("busy OK")
	}
}

// TestHostGate: on a busy machine calls that start programs wait, first in, first out by session, and clients see why. What reads
// does not wait.
func TestHostGate(t *testing.T) {
	h, g, let := busyHost(t, "")
	var names []string
	for _, session := range []string{"a", "b", "c"} {
		c := h.join(session, free())
		names = append(names, session+"1", session+"2")
		c.pass(session+"1", writes)
		c.pass(session+"2", writes)
		notice := c.until("notice host_wait").GetNotice()
		if details := notice.GetDetails().AsMap(); notice.GetToolUseId() != session+"1" || details["waits_for"] != "slots" || details["running"] != 1.0 || details["limit"] != 1.0 {
			t.Errorf("noticed of %s: %v", notice.GetToolUseId(), details)
		}
	}
	c := h.join("reads", free())
	c.use("read", "Read", `{"file_path":"`+h.file("f", "text\n")+`"}`)
	c.until("read OK")
	c.use("list", "Bash", `{"command":"ls"}`)
	c.until("list OK")
	let()
	g.await(t, "a1")
	for _, name := range []string{"b1", "c1", "a2", "b2", "c2"} {
		if g.began(name) {
			t.Errorf("%s began out of its turn", name)
		}
	}
	g.open("a1")
	g.await(t, "b1") // and not a2
	if g.began("a2") {
		t.Error("a2 began before others had their turn")
	}
	g.open("b1", "c1")
	g.await(t, "c1")
	g.open("a2", "b2", "c2")
	g.await(t, names...)
}

// TestHostQuick: a call does not wait behind one that has run for longer than a quick one, but behind as many quick ones as there are
// places.
func TestHostQuick(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"host_running_calls": 1, "host_quick": "100ms"`)
	h.start()
	long := h.join("long", free())
	long.pass("long", writes)
	g.await(t, "long")
	c := h.join("s", free())
	c.use("quick", "Bash", `{"command":"mkdir d"}`)
	c.until("quick OK") // while the other one runs
	c.pass("like it", writes)
	c.until("notice host_wait")
	if g.began("like it") {
		t.Error("what is like the long one is taken for a quick one")
	}
	g.open("long")
	g.await(t, "like it")
	g.open("like it")
	c.until("like it OK")
}

// TestHostBusy: a call that has waited for long enough ends with what to do, its time counts as waiting, and its siblings go on.
func TestHostBusy(t *testing.T) {
	h, _, let := busyHost(t, `, "host_wait": "50ms"`)
	c := h.join("s", free(&tooldv1.Options{SiblingAbort: tooldv1.SiblingAbort_SIBLING_ABORT_ANY.Enum()}))
	c.pass("waits", writes)
	c.use("reads", "Bash", `{"command":"ls"}`)
	result := c.until("waits ERROR host_busy").GetToolResult()
	details := result.GetError().GetDetails().AsMap()
	if message := result.GetError().GetMessage(); !strings.Contains(message, "limits.host_running_calls") || !strings.Contains(message, "new id") || details["limit"] != 1.0 || details["retry_after_seconds"] == nil {
		t.Errorf("told %q, %v", message, details)
	}
	if usage := result.GetUsage(); usage.GetWaited().AsDuration() < 50e6 || usage.GetRan().AsDuration() != 0 {
		t.Errorf("its use is %v", usage)
	}
	c.until("reads OK")
	let()
	c.pass("after", `{"name":"%s","writes":true,"panics":true}`)
	c.until("after ERROR internal")
	c.endTurn()
	c.until("turn 1")
	c.use("again", "Bash", `{"command":"mkdir d"}`) // even one that breaks down has left
	c.until("again OK")
}

// TestHostWaitEnds: a call that waits ends as others do that have not begun, and takes no place afterwards.
func TestHostWaitEnds(t *testing.T) {
	h, g, let := busyHost(t, "")
	type ended struct{ name, how string }
	for _, end := range []struct {
		ended
		stop func(c *conversation)
	}{
		{ended{"cancelled", "CANCELLED cancelled"}, func(c *conversation) { c.cancelCall("cancelled") }},
		{ended{"interrupted", "CANCELLED cancelled"}, func(c *conversation) {
			c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{}}})
		}},
		{ended{"discarded", "DISCARDED discarded"}, (*conversation).discard},
		{ended{"closed", "CANCELLED cancelled"}, func(*conversation) {
			if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "closed"}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		c := h.join(end.name, free())
		c.pass(end.name, writes)
		c.until("notice host_wait")
		end.stop(c)
		if result := c.until(end.name + " " + end.how).GetToolResult(); !strings.HasPrefix(result.GetError().GetMessage(), "The call was not started") {
			t.Errorf("told %q", result.GetError().GetMessage())
		}
		if g.began(end.name) {
			t.Errorf("%s has begun", end.name)
		}
	}
	let()
	c := h.join("s", free())
	c.use("last", "Bash", `{"command":"mkdir d"}`)
	c.until("last OK")
}

// TestHostWaitJudged: what was permitted before the wait is judged again after it.
func TestHostWaitJudged(t *testing.T) {
	h, g, let := busyHost(t, "")
	c := h.join("s", free())
	c.pass("waits", writes)
	c.until("notice host_wait")
	h.configure(`{"limits": {"host_running_calls": 1, "host_quick": 0}, "permissions": {"deny": ["Gate"]}}`)
	let()
	c.until("waits DENIED rule_denied")
	if g.began("waits") {
		t.Error("it has begun although a rule denies it")
	}
	c.use("other", "Bash", `{"command":"mkdir d"}`)
	c.until("other OK")
}

// TestHostAsked: a call that asks takes no place of the machine's, neither before its answer nor, if it is asked about again, after
// it has waited.
func TestHostAsked(t *testing.T) {
	h, g, let := busyHost(t, "")
	c := h.join("asks", nil)
	c.pass("asks", writes)
	question := c.until("asks asks").GetQuestion()
	let()
	other := h.join("runs", free())
	other.pass("runs", writes)
	g.await(t, "runs") // while the question is open
	c.reply(question, tooldv1.Decision_DECISION_ALLOW)
	c.until("notice host_wait")
	g.open("runs")
	g.await(t, "asks")
	g.open("asks")
	c.until("asks OK")
}

// TestHostNested: a call that is a part of one that runs takes no place of its own, since the other may be waiting for it.
func TestHostNested(t *testing.T) {
	h, g, _ := busyHost(t, "")
	outer := h.join("other", free())
	outer.ask(&tooldv1.ToolUse{Id: "inner", Name: "Gate", ParentToolUseId: "busy", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(writes, "inner")}})
	g.await(t, "inner")
	g.open("inner")
	outer.until("inner OK")
}

// TestHostShutdown: when the daemon ends, a call that waits is not started, and its client hears so.
func TestHostShutdown(t *testing.T) {
	h, g, _ := busyHost(t, "")
	c := h.join("s", free())
	c.pass("waits", writes)
	c.until("notice host_wait")
	ended := make(chan struct{})
	go func() { defer close(ended); h.d.Stop() }()
	c.until("waits INTERRUPTED interrupted")
	g.open("busy")
	<-ended
}

// TestHostKilled: a call that waits when the daemon is killed never runs, and its result says so.
func TestHostKilled(t *testing.T) {
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte(`{"sandbox": {"enabled": false}, "limits": {"host_running_calls": 1, "host_quick": 0}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	kill := h.spawn()
	busy := h.join("busy", free())
	busy.use("busy", "Bash", `{"command":"touch begun; sleep 1000"}`)
	busy.until("busy started")
	c := h.join("s", free())
	c.use("waits", "Bash", `{"command":"touch ran"}`)
	c.until("notice host_wait")
	kill()
	h.start()
	var told string
	for _, event := range h.records("s") {
		if result := event.GetToolResult(); result != nil {
			told = tell(event) + ": " + result.GetError().GetMessage()
		}
	}
	if !strings.HasPrefix(told, "waits INTERRUPTED interrupted: The call was not started") {
		t.Errorf("it ended as %q", told)
	}
	if _, err := os.Stat(h.root + "/ran"); err == nil {
		t.Error("it has run")
	}
}
