package daemon_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// stuck is how long a fuzzed stream may take before it counts as one that never ends.
const stuck = 30 * time.Second

// FuzzExecute sends messages to a living daemon without Bash: whatever they are, the stream ends, and the daemon lives.
// The input is a sequence of messages, each with its length in front.
func FuzzExecute(f *testing.F) {
	use := func(id, name, input string) *tooldv1.ExecuteRequest {
		wire := text(name, input)
		wire.Id = id
		return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: wire}}
	}
	attach := func(a *tooldv1.Attach) *tooldv1.ExecuteRequest {
		return &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}}
	}
	for _, messages := range [][]*tooldv1.ExecuteRequest{
		{use("a", "Read", `{"file_path":"/etc/hostname"}`), use("b", "Glob", `{"pattern":"**"}`)},
		{attach(&tooldv1.Attach{SessionId: "s", Roots: []string{"/tmp"}, AfterSeq: proto.Uint64(0), Options: free()}), use("a", "Edit", `{}`)},
		{use("a", "Write", `{"file_path":"x","content":"y"}`), {Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{}}}},
		{use("a", "Nope", ``), {Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{}}}, use("a", "Nope", ``)},
		{{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{QuestionId: "0-0.1"}}}, {Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{}}}},
	} {
		var sequence []byte
		for _, message := range messages {
			whole, err := proto.Marshal(message)
			if err != nil {
				f.Fatal(err)
			}
			sequence = protowire.AppendBytes(sequence, whole)
		}
		f.Add(sequence)
	}
	h := tame(f)
	f.Fuzz(func(t *testing.T, sequence []byte) {
		var messages [][]byte
		for len(sequence) > 0 {
			message, n := protowire.ConsumeBytes(sequence)
			if n < 0 {
				message, n = sequence, len(sequence)
			}
			messages = append(messages, message)
			sequence = sequence[n:]
		}
		ctx, cancel := context.WithTimeout(context.Background(), stuck)
		defer cancel()
		typed(t, "Execute", h.throw(ctx, tooldv1.ToolService_Execute_FullMethodName, messages...))
		if _, err := h.daemon().GetInfo(ctx, &tooldv1.GetInfoRequest{}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzToolUse runs one call of whatever name and input, where nobody answers questions: it gets exactly one result.
func FuzzToolUse(f *testing.F) {
	f.Add("Read", `{"file_path":"a","offset":-1}`)
	f.Add("Edit", `{"file_path":"a","old_string":"x","new_string":"y"}`)
	f.Add("MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"}]}`)
	f.Add("Write", `{"file_path":"base64:AA==","content":""}`)
	f.Add("Glob", `{"pattern":"{a,b}/**/[!c]"}`)
	h := tame(f)
	h.file("a", "x\ny\n")
	f.Fuzz(func(t *testing.T, name, input string) {
		if !utf8.ValidString(name) || !utf8.ValidString(input) {
			return // a client cannot send it
		}
		ctx, cancel := context.WithTimeout(context.Background(), stuck)
		defer cancel()
		stream, err := h.tools().RunTool(ctx, &tooldv1.RunToolRequest{Name: name, Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: input}})
		if err != nil {
			t.Fatal(err)
		}
		events, err := drain(func() (*tooldv1.ExecuteResponse, error) {
			response, err := stream.Recv()
			return response.GetEvent(), err
		})
		told := strings.Join(story(events), "\n")
		if err != nil || len(resultsOf(events)) != 1 || events[len(events)-1].GetToolResult() == nil {
			t.Errorf("%q, %v; want one result at the end", told, err)
		}
		if strings.Contains(told, "ERROR internal") {
			t.Errorf("%v", events[len(events)-1])
		}
	})
}
