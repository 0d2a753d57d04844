package node

import (
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// FuzzOutcome holds the outcome that is read from the bytes against the one of the decoded event.
func FuzzOutcome(f *testing.F) {
	for _, event := range []*tooldv1.ExecuteResponse{
		{Event: &tooldv1.ExecuteResponse_Accepted{Accepted: &tooldv1.Accepted{ToolUseId: "1"}}},
		{Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: &tooldv1.ToolResult{}}},
		{Seq: 7, Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: &tooldv1.ToolResult{
			ToolUseId: "1", Outcome: tooldv1.Outcome_OUTCOME_TIMED_OUT, IsError: true, Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: "text"}}},
		}}},
	} {
		data, err := proto.Marshal(event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o outcomes
		o.count([]*tooldv1.JournalChange{{Entries: []*tooldv1.JournalEntry{{Body: data}}}})
		event := &tooldv1.ExecuteResponse{}
		if proto.Unmarshal(data, event) != nil {
			return
		}
		again, err := proto.Marshal(event) // fields that come twice are one then
		if err != nil {
			t.Fatal(err)
		}
		want := event.GetToolResult()
		if got, is := outcomeIn(again); is != (want != nil) || is && want.GetOutcome() >= 0 && got != want.GetOutcome() {
			t.Errorf("%v, %v of %v", got, is, event)
		}
	})
}
