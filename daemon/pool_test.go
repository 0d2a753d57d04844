// The pool of a session with tools of every origin, from the client's side: what is listed, and that the same rules hold for
// all of them.

package daemon_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/toolsearch"
)

// kit is a daemon whose settings name an MCP server and two program tools beside more.
func kit(t *testing.T, fillers int, more string) *house {
	t.Helper()
	h := prepare(t, toolsearch.Tool())
	h.configure(fmt.Sprintf(`{"mcpServers": {"kit": %s}, "tools": [
		{"name": "Greet", "description": "Greets.", "readOnly": true, "command": ["sh", "-c", "echo hello"]},
		{"name": "Fail", "description": "Fails.", "readOnly": true, "command": ["sh", "-c", "exit 3"]},
		{"name": "Change", "description": "Changes something.", "command": ["sh", "-c", "echo changed"]}
	] %s}`, mcpEntry(t, fillers), more))
	h.start()
	return h
}

// configure writes the user's settings.
func (h *house) configure(text string) {
	h.t.Helper()
	if err := os.WriteFile(h.settings, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// tools returns the session's tools, when its servers have come.
func (h *house) offers(session string, format tooldv1.ToolFormat) *tooldv1.ListToolsResponse {
	h.t.Helper()
	list, err := h.tools().ListTools(h.t.Context(), &tooldv1.ListToolsRequest{SessionId: session, Format: format})
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

var apis = []tooldv1.ToolFormat{tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC, tooldv1.ToolFormat_TOOL_FORMAT_OPENAI, tooldv1.ToolFormat_TOOL_FORMAT_MCP}

// mixed joins with client tools, when all tools are there.
func (h *house) mixed(options *tooldv1.Options) *conversation {
	h.t.Helper()
	c := h.converse()
	c.attach(&tooldv1.Attach{
		SessionId: "s", Roots: []string{h.root}, Options: options, Capabilities: &tooldv1.Capabilities{Answers: true},
		ClientTools: []*tooldv1.ClientTool{askUser(), openDiff()},
	})
	h.offers("s", 0)
	return c
}

// TestAddingServer: an MCP server changes no byte of the pool before its block, in any format.
func TestAddingServer(t *testing.T) {
	h := kit(t, 2, "")
	h.mixed(nil)
	with := map[tooldv1.ToolFormat]string{}
	for _, format := range apis {
		with[format] = h.offers("s", format).GetDefinitionsJson()
	}
	h.configure(`{"tools": [
		{"name": "Greet", "description": "Greets.", "readOnly": true, "command": ["sh", "-c", "echo hello"]},
		{"name": "Fail", "description": "Fails.", "readOnly": true, "command": ["sh", "-c", "exit 3"]},
		{"name": "Change", "description": "Changes something.", "command": ["sh", "-c", "echo changed"]}
	]}`)
	h.join("alone", nil)
	for _, format := range apis {
		without := strings.TrimSuffix(h.offers("alone", format).GetDefinitionsJson(), "]")
		if !strings.HasPrefix(with[format], without+",") || !strings.Contains(with[format][len(without):], "mcp__kit__act") {
			t.Errorf("%s: without the server\n%s\nwith it\n%s", format, without, with[format])
		}
	}
}

// TestDeferred: with many MCP tools a model gets names, and what it activates stays, over a resume and a restart.
func TestDeferred(t *testing.T) {
	h := kit(t, 40, "")
	c := h.join("s", free())
	list := h.offers("s", tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC)
	if strings.Contains(list.GetDefinitionsJson(), "mcp__") || !strings.Contains(list.GetDefinitionsJson(), "ToolSearch") {
		t.Errorf("definitions %s", list.GetDefinitionsJson())
	}
	const own = 8 // tools of the kit beside the 40
	if prompt := list.GetDeferredPrompt(); !strings.Contains(prompt, "- mcp__kit__tool39\n") || strings.Count(prompt, "\n- ") != own+40 {
		t.Errorf("prompt %s", prompt)
	}
	for _, tool := range list.GetTools() {
		if deferred := strings.HasPrefix(tool.GetName(), "mcp__"); tool.GetDeferred() != deferred || deferred && tool.GetInputSchemaJson() != "" {
			t.Errorf("listed as %v", tool)
		}
	}
	c.use("early", "mcp__kit__tool07", `{}`)
	if text := c.until("early INVALID unknown_tool").GetToolResult().GetContent()[0].GetText(); !strings.Contains(text, "select:mcp__kit__tool07") {
		t.Errorf("a deferred tool is refused with %q", text)
	}
	c.use("names", "ToolSearch", `{"query":"select:mcp__kit__tool07,mcp__kit__tool08"}`)
	c.until("names OK")
	c.use("words", "ToolSearch", `{"query":"+number 31","max_results":1}`)
	c.until("words OK")
	c.use("use", "mcp__kit__tool07", `{}`)
	c.until("use OK")
	activated := func(when string) {
		t.Helper()
		text := h.offers("s", tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC).GetDefinitionsJson()
		for _, name := range []string{"tool07", "tool08", "tool31"} {
			if !strings.Contains(text, "mcp__kit__"+name) {
				t.Errorf("%s: %s is not among %s", when, name, text)
			}
		}
		if n := strings.Count(text, `"mcp__`); n != 3 {
			t.Errorf("%s: %d MCP tools are sent", when, n)
		}
	}
	activated("at once")
	c.cancel()
	h.join("s", nil)
	activated("after a resume")
	h.stop()
	h.start()
	c = h.join("s", nil)
	activated("after a restart")
	c.use("again", "mcp__kit__tool31", `{}`)
	c.until("again OK")
}

// TestEarly: a call of a server that is still starting waits for it, also in a session of one call.
func TestEarly(t *testing.T) {
	h := kit(t, 40, "")
	c := h.converse()
	c.use("a", "mcp__kit__look", `{}`)
	c.until("a DENIED cannot_ask")
	stream, err := h.tools().RunTool(t.Context(), &tooldv1.RunToolRequest{Name: "mcp__kit__tool07", Options: free()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := drain(func() (*tooldv1.ExecuteResponse, error) {
		r, err := stream.Recv()
		return r.GetEvent(), err
	})
	if told := story(events); err != nil || !strings.HasSuffix(told[len(told)-1], " OK") {
		t.Errorf("%v, %v", told, err)
	}
	c = h.converse()
	c.use("bad", "mcp__kit__look", `{"unknown":1}`)
	c.until("bad INVALID invalid_input")
	c.use("none", "mcp__kit__nothing", `{}`)
	c.until("none INVALID unknown_tool")
}

// TestMixedBatched: calls that only read run together wherever they are carried out, and others alone.
func TestMixedBatched(t *testing.T) {
	h := kit(t, 0, "")
	file := h.file("a.txt", "x\n")
	c := h.mixed(free())
	for i, use := range []struct{ name, input string }{
		{"Read", `{"file_path":"` + file + `"}`},
		{"mcp__kit__look", `{}`},
		{"Greet", `{}`},
		{"AskUser", `{"question":"?"}`}, // with it
		{"mcp__kit__act", `{}`},
		{"Change", `{}`},
		{"OpenDiff", `{}`}, // each alone
		{"mcp__kit__look", `{}`},
		{"Read", `{"file_path":"` + file + `"}`},
	} {
		c.use(fmt.Sprint(i), use.name, use.input)
	}
	c.endTurn()
	c.carryOut("turn 1")
	var batches []string
	for _, e := range c.events {
		if a := e.GetAccepted(); a != nil {
			batches = append(batches, fmt.Sprint(a.GetBatch()))
		}
	}
	want(t, strings.Join(batches, " "), "1 1 1 1 2 3 4 5 5")
	for id, outcome := range outcomes(resultsOf(c.events)) {
		if outcome != "OK" {
			t.Errorf("%s: %s", id, outcome)
		}
	}
}

// carryOut runs the client's tools until something is told.
func (c *conversation) carryOut(told string) {
	c.t.Helper()
	for {
		event := c.until("")
		if strings.HasPrefix(tell(event), told) {
			return
		}
		if use := event.GetClientToolUse(); use != nil {
			c.gives(use.GetToolUseId(), &tooldv1.ClientToolResult{Content: textOf("shown")})
		}
	}
}

// TestMixedPermitted: rules, modes and hooks hold for tools of every origin.
func TestMixedPermitted(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(nil)
	for _, name := range []string{"mcp__kit__look", "mcp__kit__act", "Change", "OpenDiff"} {
		c.use(name, name, `{}`)
		q := c.until(name + " asks").GetQuestion()
		if len(q.GetSuggestions()) != 1 || q.GetSuggestions()[0].GetRule() != name {
			t.Errorf("for %s %v is suggested", name, q.GetSuggestions())
		}
		c.reply(q, tooldv1.Decision_DECISION_DENY)
		c.until(name + " DENIED client_denied")
	}
	c.use("free", "Greet", `{}`)
	c.until("free OK")
	c.use("free too", "AskUser", `{"question":"?"}`)
	c.carryOut("free too OK")
	h2 := kit(t, 0, `, "permissions": {"allow": ["mcp__kit", "Change", "OpenDiff"], "ask": ["Greet", "AskUser(question:secret*)"], "deny": ["mcp__kit__act"]}`)
	c = h2.mixed(nil)
	for _, name := range []string{"mcp__kit__look", "Change", "OpenDiff"} {
		c.use(name, name, `{}`)
		c.carryOut(name + " OK")
	}
	c.use("gone", "mcp__kit__act", `{}`)
	c.until("gone INVALID unknown_tool")
	c.use("greet", "Greet", `{}`)
	c.until("greet asks")
	c.cancelCall("greet")
	c.until("greet CANCELLED")
	c.use("secret", "AskUser", `{"question":"secret number?"}`)
	c.until("secret asks")
	h3 := kit(t, 0, `, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}`)
	c = h3.mixed(free())
	for _, name := range []string{"mcp__kit__look", "Change", "OpenDiff", "Greet"} {
		c.use(name, name, `{}`)
		c.until(name + " DENIED hook_denied")
	}
}

// TestNamedDeferred: settings defer any tool by its name, and a model loads it by ToolSearch. A name that no tool has, and
// that of a tool that only the model of another agent knows, are answered with what a model can do.
func TestNamedDeferred(t *testing.T) {
	h := kit(t, 0, `, "deferred": ["Greet", "Bash", "mcp__kit__look"]`)
	c := h.join("s", free())
	list := h.offers("s", tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC)
	if prompt := list.GetDeferredPrompt(); strings.Count(prompt, "\n- ") != 3 || !strings.Contains(prompt, "- Greet\n") || strings.Contains(list.GetDefinitionsJson(), `"Greet"`) {
		t.Errorf("prompt %s\ndefinitions %s", prompt, list.GetDefinitionsJson())
	}
	c.use("early", "Greet", `{}`)
	if text := c.until("early INVALID unknown_tool").GetToolResult().GetContent()[0].GetText(); !strings.Contains(text, `ToolSearch and the query "select:Greet"`) {
		t.Errorf("a deferred tool is refused with %q", text)
	}
	c.use("far", "git_commit", `{}`)
	if text := c.until("far INVALID unknown_tool").GetToolResult().GetContent()[0].GetText(); !strings.HasSuffix(text, "ToolSearch finds others.") || strings.Contains(text, "ListTools") {
		t.Errorf("an unknown tool is refused with %q", text)
	}
	c.use("load", "ToolSearch", `{"query":"select:Greet,Bash,mcp__kit__look"}`)
	c.until("load OK")
	for name, input := range map[string]string{"Greet": `{}`, "Bash": `{"command":"true"}`, "mcp__kit__look": `{}`} {
		c.use(name, name, input)
		c.until(name + " OK")
	}
	c.use("near", "run_terminal_cmd", `{}`)
	if text := c.until("near INVALID unknown_tool").GetToolResult().GetContent()[0].GetText(); !strings.Contains(text, "The nearest are Bash, ") {
		t.Errorf("an unknown tool is refused with %q", text)
	}
}

// TestMixedAborted: the failure of one call stops its siblings wherever they run.
func TestMixedAborted(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free(&tooldv1.Options{SiblingAbort: tooldv1.SiblingAbort_SIBLING_ABORT_ANY.Enum()}))
	c.use("mcp", "mcp__kit__wait", `{}`)
	c.use("client", "AskUser", `{"question":"?"}`)
	for waiting, sent := false, false; !waiting || !sent; {
		event := c.until("")
		waiting = waiting || event.GetProgress().GetStep().GetMessage() == "waiting"
		sent = sent || event.GetClientToolUse() != nil
	}
	c.use("program", "Fail", `{}`)
	c.use("later", "Change", `{}`)
	c.endTurn()
	told := outcomes(c.results())
	want(t, told, map[string]string{"mcp": "ABORTED aborted", "client": "ABORTED aborted", "program": "ERROR exit_code", "later": "ABORTED aborted"})
}

// TestMixedJournaled: the records of all are kept, and the same for whoever reads them later.
func TestMixedJournaled(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free())
	for _, name := range []string{"mcp__kit__act", "Change", "OpenDiff", "Greet"} {
		c.use(name, name, `{}`)
	}
	c.endTurn()
	c.carryOut("turn 1")
	records := func(events []*tooldv1.ExecuteResponse) (told []string) {
		for _, e := range events {
			if e.GetSeq() > 0 && e.GetTurn() > 0 {
				told = append(told, fmt.Sprint(e.GetSeq(), " ", tell(e)))
			}
		}
		return told
	}
	again := h.converse()
	again.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64)})
	again.until("turn 1")
	want(t, records(again.events), records(c.events))
	if n := len(records(c.events)); n != 13 {
		t.Errorf("%d records, want three for each call and the turn's end", n)
	}
}

// TestMixedResumed: calls go on without their client, which finds the results when it comes back; a restart interrupts them.
func TestMixedResumed(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free())
	c.use("client", "AskUser", `{"question":"?"}`)
	c.use("program", "Greet", `{}`)
	c.use("mcp", "mcp__kit__look", `{}`)
	last := uint64(0)
	for sent, accepted := false, false; !sent || !accepted; {
		event := c.until("")
		sent, accepted = sent || event.GetClientToolUse() != nil, accepted || event.GetAccepted().GetToolUseId() == "mcp"
		last = max(last, event.GetSeq())
	}
	c.cancel()
	c = h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: &last, ClientTools: []*tooldv1.ClientTool{askUser()}})
	c.endTurn()
	c.carryOut("turn 1")
	c.use("client 2", "AskUser", `{"question":"?"}`)
	c.use("mcp 2", "mcp__kit__wait", `{}`)
	for sent, accepted := false, false; !sent || !accepted; {
		event := c.until("")
		sent, accepted = sent || event.GetClientToolUse() != nil, accepted || event.GetAccepted().GetToolUseId() == "mcp 2"
	}
	h.stop()
	h.start()
	c = h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64)})
	c.until("turn 2")
	told := outcomes(resultsOf(c.events))
	want(t, told, map[string]string{"client": "OK", "program": "OK", "mcp": "OK", "client 2": "INTERRUPTED interrupted", "mcp 2": "INTERRUPTED interrupted"})
}

// TestElicitation: what a server asks in the middle of a call is a question, and the answer is the server's.
func TestElicitation(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free())
	c.use("a", "mcp__kit__ask", `{}`)
	q := c.until("a asks").GetQuestion()
	if !strings.Contains(q.GetReason(), "Which name?") || !strings.Contains(q.GetFormSchemaJson(), `"name"`) {
		t.Errorf("question %v", q)
	}
	c.reply(q, tooldv1.Decision_DECISION_ALLOW, func(a *tooldv1.Answer) { a.UpdatedInputJson = `{"name":"toold"}` })
	if text := c.until("a OK").GetToolResult().GetContent()[0].GetText(); text != "accept toold" {
		t.Errorf("the server heard %q", text)
	}
	c.use("b", "mcp__kit__ask", `{}`)
	c.reply(c.until("b asks").GetQuestion(), tooldv1.Decision_DECISION_DENY)
	if text := c.until("b OK").GetToolResult().GetContent()[0].GetText(); !strings.HasPrefix(text, "decline") {
		t.Errorf("the server heard %q", text)
	}
}
