package daemon

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestRecordsAreSentAsTheyAre: what is sent of a record without decoding it is what its fields say.
func TestRecordsAreSentAsTheyAre(t *testing.T) {
	for _, accepted := range []*tooldv1.Accepted{
		{}, {ToolUseId: "a", Name: "Read", Index: 300, Batch: 2, Concurrent: true, ParentToolUseId: "p", Title: "Read(f)"}, {ToolUseId: "a", InputJson: `{"x":1}`, Title: "t"},
	} {
		for _, replayed := range []bool{false, true} {
			for _, input := range []bool{false, true} {
				body, err := proto.Marshal(&tooldv1.ExecuteResponse{
					Turn: 7, TurnId: "turn", Event: &tooldv1.ExecuteResponse_Accepted{Accepted: accepted},
				})
				if err != nil {
					t.Fatal(err)
				}
				record := journal.Record{Seq: 1 << 40, Time: time.Unix(1790000000, 123456789), Kind: kindAccepted, Body: body}
				want, err := wireOf(record)
				if err != nil {
					t.Fatal(err)
				}
				want.GetAccepted().Replayed = replayed
				if !input {
					want.GetAccepted().InputJson = ""
				}
				checkSent(t, record, want, acceptedBody(body, input, replayed))
			}
		}
	}
}

// TestPlainResults: a result without what is structured is the result otherwise.
func TestPlainResults(t *testing.T) {
	values, err := structpb.NewStruct(map[string]any{"a": []any{1, "x"}, "b": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range []*tooldv1.ToolResult{
		{},
		{ToolUseId: "a", Outcome: tooldv1.Outcome_OUTCOME_OK, Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: "x"}}}, Structured: values, Usage: &tooldv1.Usage{OutputBytes: 5}},
		{ToolUseId: "b", Structured: values},
		{ToolUseId: "c", Usage: &tooldv1.Usage{}},
	} {
		body, err := proto.Marshal(&tooldv1.ExecuteResponse{Turn: 7, TurnId: "turn", Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: result}})
		if err != nil {
			t.Fatal(err)
		}
		record := journal.Record{Seq: 5, Time: time.Unix(1790000000, 0), Kind: kindResult, Body: body}
		want, err := wireOf(record)
		if err != nil {
			t.Fatal(err)
		}
		want.GetToolResult().Structured = nil
		checkSent(t, record, want, plainBody(body)...)
	}
	if got := slices.Concat(plainBody([]byte("ÿ"))...); string(got) != "ÿ" {
		t.Errorf("what cannot be read becomes %q", got)
	}
}

func checkSent(t *testing.T, record journal.Record, want *tooldv1.ExecuteResponse, body ...[]byte) {
	t.Helper()
	into := func(message proto.Message) func(any) error {
		return func(sent any) error {
			wire, err := newCodec().Marshal(sent)
			if err == nil {
				err = proto.Unmarshal(wire.Materialize(), message)
			}
			return err
		}
	}
	event, response := &tooldv1.ExecuteResponse{}, &tooldv1.WatchResponse{}
	plain := eventSender{send: into(event)}
	within := eventSender{into(response), func(e *tooldv1.ExecuteResponse) any { return &tooldv1.WatchResponse{Event: e} }}
	for _, s := range []eventSender{plain, within} {
		if err := s.record(record, body...); err != nil {
			t.Fatal(err)
		}
	}
	if !proto.Equal(event, want) || !proto.Equal(response.GetEvent(), want) {
		t.Errorf("sent %v and %v, want %v", event, response.GetEvent(), want)
	}
}
