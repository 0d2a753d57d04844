package mcpserver

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestResult: nothing of a result is lost on its way into MCP's form.
func TestResult(t *testing.T) {
	structured, err := structpb.NewStruct(map[string]any{"lines": 3, "a": []any{nil, true, 1.5e-9, "\"\x01\u2028é", map[string]any{}, -0.5, 1e300}, "": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		result *tooldv1.ToolResult
		want   string
	}{
		"every block": {&tooldv1.ToolResult{ToolUseId: "id", Outcome: tooldv1.Outcome_OUTCOME_OK, Structured: structured, Content: []*tooldv1.Content{
			{Block: &tooldv1.Content_Text{Text: "text"}},
			{Block: &tooldv1.Content_Image{Image: &tooldv1.Blob{MediaType: "image/png", Data: []byte("p")}}},
			{Block: &tooldv1.Content_Document{Document: &tooldv1.Blob{MediaType: "application/pdf", Data: []byte("d")}}},
			{Block: &tooldv1.Content_Link{Link: &tooldv1.Link{Uri: "https://example.org/a.txt"}}},
		}}, `{"_meta": {"toold/outcome": "ok"}, "structuredContent": {"lines": 3, "a": [null, true, 1.5e-9, "\"\u0001\u2028é", {}, -0.5, 1e300], "": []}, "content": [
			{"type": "text", "text": "text"},
			{"type": "image", "mimeType": "image/png", "data": "cA=="},
			{"type": "resource", "resource": {"uri": "toold://result/id/2", "mimeType": "application/pdf", "blob": "ZA=="}},
			{"type": "resource_link", "uri": "https://example.org/a.txt", "name": "a.txt"}]}`},
		"nothing": {&tooldv1.ToolResult{Outcome: tooldv1.Outcome_OUTCOME_OK}, `{"_meta": {"toold/outcome": "ok"}, "content": []}`},
		"an error without content": {
			&tooldv1.ToolResult{IsError: true, Outcome: tooldv1.Outcome_OUTCOME_DENIED, Error: &tooldv1.Error{Code: "rule_denied", Message: "No."}, Spill: &tooldv1.Spill{Path: "/x", OmittedLines: 2}},
			`{"_meta": {"toold/outcome": "denied", "toold/error": {"code": "rule_denied", "message": "No."}, "toold/spill": {"path": "/x", "omitted_lines": "2"}},
			"isError": true, "content": [{"type": "text", "text": "No."}]}`,
		},
		"lost": {
			lostResult(errors.New("gone.")),
			`{"_meta": {"toold/outcome": "interrupted", "toold/error": {"code": "daemon_lost", "message": "` + lostText + `"}}, "isError": true, "content": [{"type": "text", "text": "` + lostText + `"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got, want any
			text := appendResponse(nil, int64(1), received(t, c.result))
			if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal([]byte(`{"jsonrpc": "2.0", "id": 1, "result": `+c.want+`}`), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)", diff)
			}
		})
	}
}

// received returns a result as it is when it was sent.
func received(t testing.TB, result *tooldv1.ToolResult) *tooldv1.ToolResult {
	t.Helper()
	sent := &tooldv1.ExecuteResponse{Seq: 7, TurnId: "turn", Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: result}}
	wire, err := proto.Marshal(sent)
	event := &tooldv1.ExecuteResponse{}
	if err := errors.Join(err, decode(wire, event)); err != nil {
		t.Fatal(err)
	}
	rest := proto.Clone(sent).(*tooldv1.ExecuteResponse)
	rest.GetToolResult().Structured = nil
	got := proto.Clone(event).(*tooldv1.ExecuteResponse)
	got.GetToolResult().ProtoReflect().SetUnknown(nil)
	if !proto.Equal(rest, got) {
		t.Errorf("received %v, sent %v", got, rest)
	}
	return event.GetToolResult()
}

const lostText = "The daemon was lost and could not be reached again, so what became of this call is not known here; if it had begun, look at the present state before sending it again. gone."

// TestFolderOf: which roots of a client are folders of this machine.
func TestFolderOf(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"file://" + dir: dir, "file://localhost" + dir + "/": dir, "file://" + dir + "/a%20file": "", "file://" + dir + "/none": "",
		"file://elsewhere" + dir: "", "https://example.org" + dir: "", dir: "", "file:relative": "", "file:///%00": "", "%": "", "": "",
	} {
		got, err := folderOf(uri)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q gave %q, %v; want %q", uri, got, err, want)
		}
	}
}
