// Streams as a whole: how they begin and end, and what a daemon says of itself.

package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestAnonymous: a Read without Attach, as a person with grpcurl sends it.
func TestAnonymous(t *testing.T) {
	h := serve(t)
	path := h.file("hello.txt", "hello\n")
	c := h.converse()
	c.use("r", "Read", `{"file_path":"`+path+`"}`)
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	want(t, story(c.events), []string{"attached", "r accepted 0/1", "r started", "r OK", "turn 1 ended 1/1"})
	if text := resultsOf(c.events)["r"].GetContent()[0].GetText(); !strings.Contains(text, "hello") {
		t.Errorf("result %q, want the file's text", text)
	}
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if err != nil || len(list.GetSessions()) != 0 {
		t.Errorf("sessions %v, %v; want the anonymous one closed", list, err)
	}
}

// TestListTools: the session's tools, in the form of each API, in one order.
func TestListTools(t *testing.T) {
	h := serve(t)
	h.join("s", &tooldv1.Options{Tools: &tooldv1.ToolList{Names: []string{"Glob", "Read"}}})
	for format, schema := range map[tooldv1.ToolFormat]string{
		tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC: "input_schema", tooldv1.ToolFormat_TOOL_FORMAT_OPENAI: "function", tooldv1.ToolFormat_TOOL_FORMAT_MCP: "inputSchema",
	} {
		list, err := h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "s", Format: format})
		if err != nil {
			t.Fatal(err)
		}
		var definitions []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(list.GetDefinitionsJson()), &definitions); err != nil {
			t.Fatal(err)
		}
		if len(definitions) != 2 || len(list.GetTools()) != 2 || list.GetTools()[0].GetName() != "Glob" || definitions[0][schema] == nil {
			t.Errorf("%s: %s; want Read and Glob, each with %q", format, list.GetDefinitionsJson(), schema)
		}
	}
	list, err := h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "s", IncludeUnavailable: true})
	if err != nil || len(list.GetTools()) != len(toolset()) || list.GetTools()[0].GetUnavailable() == "" {
		t.Errorf("%v, %v; want every tool, and why Bash is not offered", list, err)
	}
	_, err = h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{Format: 99})
	refused(t, err, codes.InvalidArgument, "invalid_format")
	_, err = h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "nobody"})
	refused(t, err, codes.NotFound, "unknown_session")
	c := h.join("s", nil)
	c.use("w", "Write", `{"file_path":"x","content":"y"}`)
	c.until("w INVALID unknown_tool")
}

// TestReadOutputAt: the places at which an output can be read, and what is not there.
func TestReadOutputAt(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	c.use("a", "Bash", `{"command":"printf 0123456789"}`)
	c.use("quiet", "Bash", `{"command":"true"}`)
	c.endTurn()
	c.until("turn 1")
	for _, test := range []struct {
		request *tooldv1.ReadOutputRequest
		want    string
		reason  string
	}{
		{&tooldv1.ReadOutputRequest{ToolUseId: "a"}, "0123456789", ""},
		{&tooldv1.ReadOutputRequest{ToolUseId: "a", Offset: 3, Limit: 4}, "3456", ""},
		{&tooldv1.ReadOutputRequest{ToolUseId: "a", Offset: 99, Follow: true}, "", ""},
		{&tooldv1.ReadOutputRequest{ToolUseId: "a", Channel: tooldv1.Channel_CHANNEL_STDERR}, "", ""},
		{&tooldv1.ReadOutputRequest{ToolUseId: "quiet", Follow: true}, "", ""},
		{&tooldv1.ReadOutputRequest{ToolUseId: "nobody"}, "", "unknown_call"},
		{&tooldv1.ReadOutputRequest{ToolUseId: "a", Channel: 9}, "", "invalid_channel"},
		{&tooldv1.ReadOutputRequest{ToolUseId: "a", Offset: math.MaxUint64}, "", "invalid_offset"},
	} {
		test.request.SessionId = "s"
		stream, err := h.tools().ReadOutput(t.Context(), test.request)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for err == nil {
			var response *tooldv1.ReadOutputResponse
			response, err = stream.Recv()
			got.Write(response.GetData())
		}
		if got.String() != test.want || reasonOf(err) != test.reason {
			t.Errorf("%v: %q, %v; want %q %s", test.request, &got, err, test.want, test.reason)
		}
	}
}

// TestHeartbeat: a call that runs silently is heard of, so that a client can tell it from a dead daemon.
func TestHeartbeat(t *testing.T) {
	t.Parallel() // it takes 5 s
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.pass("a", reads)
	g.await(t, "a")
	beat := c.until("")
	for beat.GetProgress() == nil {
		beat = c.until("")
	}
	if p := beat.GetProgress(); p.GetToolUseId() != "a" || p.GetToolName() != "Gate" || p.GetSessionId() != "s" || p.GetTurnId() != beat.GetTurnId() || p.GetParentToolUseId() != "" || p.GetUpdate() != nil || beat.GetSeq() != 0 || p.GetElapsed().AsDuration() <= 0 {
		t.Errorf("heartbeat %v", beat)
	}
	g.open("a")
	c.until("a OK")
}

// TestHungUpStreamDisplacesNobody: a stream that its client has given up does not take the session from the next one,
// however late it is heard.
func TestHungUpStreamDisplacesNobody(t *testing.T) {
	h := serve(t)
	h.join("s", free())
	for n := range 200 {
		ctx, hangUp := context.WithCancel(t.Context())
		given, err := h.tools().Execute(ctx)
		if err != nil {
			t.Fatal(err)
		}
		attach := &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s"}}}
		if err := given.Send(attach); err != nil {
			t.Fatal(err)
		}
		hangUp()
		c := h.join("s", nil)
		c.use(fmt.Sprint(n), "Nope", `{}`)
		c.endTurn()
		c.until("turn ")
	}
}
