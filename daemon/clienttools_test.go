// Tools that a client runs itself, from the client's side.

package daemon_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// askUser and openDiff are tools as an agent and an editor have them.
func askUser() *tooldv1.ClientTool {
	return &tooldv1.ClientTool{
		Name: "AskUser", Description: "Asks the user.", ReadOnly: true,
		InputSchemaJson: `{"type":"object","properties":{"question":{"type":"string"}},"required":["question"],"additionalProperties":false}`,
	}
}

func openDiff() *tooldv1.ClientTool {
	return &tooldv1.ClientTool{Name: "OpenDiff", Description: "Shows a diff in the editor."}
}

// clientTool attaches to the session with tools.
func (h *house) offer(session string, role tooldv1.Role, list ...*tooldv1.ClientTool) *conversation {
	h.t.Helper()
	c := h.converse()
	c.attach(&tooldv1.Attach{
		SessionId: session, Roots: []string{h.root}, Role: role, ClientTools: list, Capabilities: &tooldv1.Capabilities{Answers: true},
	})
	return c
}

// asked waits for the use of a client's tool, which comes after the start of its call.
func (c *conversation) asked(id string) *tooldv1.ClientToolUse {
	c.t.Helper()
	for {
		use := c.until("").GetClientToolUse()
		if use.GetToolUseId() != id {
			continue
		}
		if told := story(c.events); len(told) > 1 && told[0] == "attached" && slices.Contains(told, id+" accepted 0/1") && !slices.Contains(told, id+" started") {
			c.t.Errorf("the client is asked before it is told that the call has started: %v", told)
		}
		return use
	}
}

func (c *conversation) gives(id string, result *tooldv1.ClientToolResult) {
	c.t.Helper()
	result.ToolUseId = id
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ClientToolResult{ClientToolResult: result}})
}

func textOf(text string) []*tooldv1.Content {
	return []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: text}}}
}

// TestClientTool: a call of it is checked, judged, sent to the client, followed, and ends with what that gives.
func TestClientTool(t *testing.T) {
	h := serve(t)
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser(), openDiff())
	c.use("bad", "AskUser", `{"question":7}`)
	c.until("bad INVALID invalid_input")
	c.use("q", "AskUser", `{"question":"why?"}`)
	if use := c.asked("q"); use.GetName() != "AskUser" || use.GetInputJson() != `{"question":"why?"}` {
		t.Errorf("the client is asked %v", use)
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ClientToolProgress{ClientToolProgress: &tooldv1.ClientToolProgress{
		ToolUseId: "q", Step: &tooldv1.Step{Message: "thinking", Done: 1, Total: 2},
	}}})
	for c.until("").GetProgress().GetStep().GetMessage() != "thinking" {
	}
	more, _ := structpb.NewStruct(map[string]any{"n": 1})
	c.gives("q", &tooldv1.ClientToolResult{Content: append(textOf("because"), &tooldv1.Content{Block: &tooldv1.Content_Image{Image: &tooldv1.Blob{MediaType: "image/png", Data: []byte("x")}}}), Structured: more})
	result := c.until("q OK").GetToolResult()
	if result.GetContent()[0].GetText() != "because" || string(result.GetContent()[1].GetImage().GetData()) != "x" || result.GetStructured().AsMap()["n"] != 1.0 {
		t.Errorf("result %v", result)
	}
	c.gives("q", &tooldv1.ClientToolResult{Content: textOf("twice")})
	c.until("notice unknown_call")
	c.use("d", "OpenDiff", `{"any":"thing"}`)
	c.reply(c.until("d asks").GetQuestion(), tooldv1.Decision_DECISION_ALLOW)
	c.asked("d")
	c.gives("d", &tooldv1.ClientToolResult{IsError: true, Content: textOf("no window")})
	if result := c.until("d ERROR tool_failed").GetToolResult(); result.GetError().GetMessage() != "no window" {
		t.Errorf("result %v", result)
	}
}

// TestClientToolStopped: a client is told when its call is over before it has answered.
func TestClientToolStopped(t *testing.T) {
	h := serve(t)
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	c.use("q", "AskUser", `{"question":"?"}`)
	c.asked("q")
	c.cancelCall("q")
	seen := map[string]bool{}
	for !seen["cancel"] || !seen["result"] {
		event := c.until("")
		seen["cancel"] = seen["cancel"] || event.GetClientToolCancel().GetToolUseId() == "q"
		seen["result"] = seen["result"] || tell(event) == "q CANCELLED cancelled"
	}
}

// TestClientToolTakenOver: the client's next stream is sent what the broken one has not answered.
func TestClientToolTakenOver(t *testing.T) {
	h := serve(t)
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	c.use("q", "AskUser", `{"question":"?"}`)
	c.asked("q")
	c.cancel()
	c = h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	c.asked("q")
	c.gives("q", &tooldv1.ClientToolResult{Content: textOf("again")})
	c.until("q OK")
}

// TestClientGone: a client that does not come back leaves its tool's calls cancelled, and the pool without the tool.
func TestClientGone(t *testing.T) {
	h := prepare(t)
	h.grace = 50 * time.Millisecond
	h.start()
	c := h.join("s", nil)
	editor := h.offer("s", tooldv1.Role_ROLE_COMPANION, askUser())
	c.until("notice tools_changed")
	c.use("q", "AskUser", `{"question":"?"}`)
	editor.asked("q")
	editor.cancel()
	seen := map[string]bool{} // in either order
	for !seen["q CANCELLED client_gone"] || !seen["notice tools_changed"] {
		seen[tell(c.until(""))] = true
	}
	c.use("r", "AskUser", `{"question":"?"}`)
	c.until("r INVALID unknown_tool")
}

// TestClientToolsInPool: they come last, a built-in tool of the name wins, and both are told.
func TestClientToolsInPool(t *testing.T) {
	h := serve(t)
	h.join("s", nil)
	before, err := h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "s", Format: tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC})
	if err != nil {
		t.Fatal(err)
	}
	h.offer("s", tooldv1.Role_ROLE_COMPANION, openDiff(), askUser(), &tooldv1.ClientTool{Name: "Read", Description: "Another."})
	after, err := h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "s", Format: tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC, IncludeUnavailable: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(after.GetDefinitionsJson(), strings.TrimSuffix(before.GetDefinitionsJson(), "]")+`,{"name":"AskUser"`) || before.GetRevision() == after.GetRevision() {
		t.Errorf("definitions\n%s\nbecome\n%s", before.GetDefinitionsJson(), after.GetDefinitionsJson())
	}
	last := after.GetTools()[len(after.GetTools())-1]
	if last.GetName() != "Read" || !strings.Contains(last.GetUnavailable(), "taken by a tool that is built in") {
		t.Errorf("the client's Read is listed as %v", last)
	}
	var list []struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(after.GetDefinitionsJson()), &list); err != nil || list[len(list)-1].Name != "OpenDiff" {
		t.Errorf("%v %v", list, err)
	}
}

// TestTooManyClientTools: a stream with which there would be too many changes nothing, and one that takes over from another
// comes in its place.
func TestTooManyClientTools(t *testing.T) {
	h := serve(t)
	var most []*tooldv1.ClientTool
	for n := range 128 {
		most = append(most, &tooldv1.ClientTool{Name: fmt.Sprintf("Tool%d", n), Description: "One of many."})
	}
	h.offer("s", tooldv1.Role_ROLE_MAIN, most...)
	one := h.converse()
	one.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{
		SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION, ClientTools: []*tooldv1.ClientTool{askUser()}, Options: free(),
	}}})
	refused(t, one.closed(), codes.ResourceExhausted, "too_many_tools")
	session, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if mode := session.GetSession().GetOptions().GetPermissionMode(); mode == free().GetPermissionMode() {
		t.Errorf("the options of what was refused were taken: %s", mode)
	}
	again := h.offer("s", tooldv1.Role_ROLE_MAIN, most...)
	again.use("q", "Tool127", `{}`)
	again.reply(again.until("q asks").GetQuestion(), allow)
	again.asked("q")
	again.gives("q", &tooldv1.ClientToolResult{Content: textOf("done")})
	again.until("q OK")
}

// TestSameID: in several turns calls may have one id, and each gets its own result.
func TestSameID(t *testing.T) {
	h := serve(t)
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	for _, turn := range []string{"one", "two"} {
		c.ask(&tooldv1.ToolUse{Id: "call_0", TurnId: turn, Name: "AskUser", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"question":"?"}`}})
	}
	for range 2 {
		for c.until("").GetClientToolUse() == nil {
		}
	}
	for _, turn := range []string{"two", "one"} {
		c.gives("call_0", &tooldv1.ClientToolResult{TurnId: turn, Content: textOf(turn)})
		result := c.until("call_0 OK")
		if result.GetTurnId() != turn || result.GetToolResult().GetContent()[0].GetText() != turn {
			t.Errorf("%v, want the result of turn %s", result, turn)
		}
	}
}

// TestClientToolStays: what a client is at is not given to another that registers the name, who gets what comes later; and
// when that one has gone the first has the tool again.
func TestClientToolStays(t *testing.T) {
	h := prepare(t)
	h.grace = 50 * time.Millisecond
	h.start()
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	c.use("a", "AskUser", `{"question":"?"}`)
	c.asked("a")
	writes := askUser()
	writes.ReadOnly = false
	other := h.offer("s", tooldv1.Role_ROLE_COMPANION, writes)
	c.gives("a", &tooldv1.ClientToolResult{Content: textOf("mine")})
	c.until("a OK")
	c.use("b", "AskUser", `{"question":"?"}`)
	c.reply(c.until("b asks").GetQuestion(), tooldv1.Decision_DECISION_ALLOW)
	other.asked("b")
	other.cancel()
	c.until("b CANCELLED client_gone")
	c.use("c", "AskUser", `{"question":"?"}`)
	c.asked("c")
	c.gives("c", &tooldv1.ClientToolResult{Content: textOf("mine again")})
	c.until("c OK")
}

// TestErrandsOfStalledClient: for a client that does not read nothing piles up.
func TestErrandsOfStalledClient(t *testing.T) {
	h := serve(t)
	c := h.join("s", nil)
	silent := h.offer("s", tooldv1.Role_ROLE_COMPANION, askUser())
	_ = silent // it never reads
	big := strings.Repeat("x", 100<<10)
	for i := range 20 {
		id := string(rune('a' + i))
		c.use(id, "AskUser", `{"question":"`+big+`"}`)
		c.until(id + " started")
		c.cancelCall(id)
		c.until(id + " CANCELLED")
	}
	if n := h.d.ClientRequests("s"); n > 8 { // as many as fit into the buffers on the way
		t.Errorf("%d client requests are held", n)
	}
}
