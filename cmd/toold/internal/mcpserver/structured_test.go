package mcpserver

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// FuzzDecode: whatever comes as an event, a result becomes JSON, and no event is refused that protobuf takes.
func FuzzDecode(f *testing.F) {
	structured, err := structpb.NewStruct(map[string]any{"a": []any{1, "b", nil, map[string]any{"c": true}}, "d": 1.5})
	if err != nil {
		f.Fatal(err)
	}
	result := &tooldv1.ToolResult{ToolUseId: "id", Structured: structured, Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: "\"\n"}}}}
	wire, err := proto.Marshal(&tooldv1.ExecuteResponse{Seq: 1, TurnId: "t", Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: result}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	f.Fuzz(func(t *testing.T, wire []byte) {
		var whole, event tooldv1.ExecuteResponse
		want, got := proto.Unmarshal(wire, &whole), decode(wire, &event)
		if want == nil && got != nil {
			t.Errorf("an event is refused: %v", got)
		}
		if got != nil || event.GetToolResult() == nil {
			return
		}
		if text := appendResponse(nil, "id", event.GetToolResult()); !json.Valid(text) {
			t.Errorf("%q is no JSON", text)
		}
	})
}
