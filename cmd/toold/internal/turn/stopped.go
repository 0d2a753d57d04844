package turn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	// stopPatience is how long calls that were stopped are waited for: results are there within a second also of processes
	// that have to be killed.
	stopPatience = 800 * time.Millisecond
	// readPatience is how long what such a call has printed is waited for.
	readPatience = 100 * time.Millisecond
	// mostRead is how much of that is shown, in bytes: as much as Bash shows by default.
	mostRead = 30_000
)

// leaveBehind records, for each call that was stopped and has not ended, a result with that. The daemon goes on ending it.
func (t *Turn) leaveBehind(ctx context.Context) error {
	t.Left = true
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for i, call := range t.State.Calls {
		if call.Over() {
			continue
		}
		event := &tooldv1.ExecuteResponse{
			TurnId: t.State.TurnID, Time: timestamppb.Now(),
			Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: leftResult(call.ID, i, t.printed(ctx, call.ID))},
		}
		t.State.Apply(event, time.Now())
		if t.Seen == nil {
			continue
		}
		if err := t.Seen(event); err != nil {
			return err
		}
	}
	return nil
}

// leftResult returns the result of a call that was left behind when it had printed something.
func leftResult(id string, index int, printed string) *tooldv1.ToolResult {
	text := fmt.Sprintf("The call was told to stop: %s. It had not ended %s later. What still runs of it is killed. Its effects until then remain.", StopReason, stopPatience)
	r := &tooldv1.ToolResult{
		ToolUseId: id, Index: uint32(index), IsError: true, Outcome: tooldv1.Outcome_OUTCOME_CANCELLED, //nolint:gosec // a place in a turn
		Error: &tooldv1.Error{Code: "cancelled", Message: text},
	}
	for _, text := range []string{printed, text} {
		if text != "" {
			r.Content = append(r.Content, &tooldv1.Content{Block: &tooldv1.Content_Text{Text: text}})
		}
	}
	return r
}

// printed returns the beginning of what a call has printed; empty: nothing, or that is not to be had in time.
func (t *Turn) printed(ctx context.Context, id string) string {
	conn := t.Session.Conn()
	if conn == nil {
		return ""
	}
	stream, err := conn.Tools.ReadOutput(ctx, &tooldv1.ReadOutputRequest{SessionId: t.Session.ID(), ToolUseId: id, Limit: mostRead})
	if err != nil {
		return ""
	}
	var b strings.Builder
	for {
		chunk, err := stream.Recv()
		if err != nil {
			break
		}
		b.Write(chunk.GetData())
	}
	if b.Len() == mostRead {
		b.WriteString("\n[More output was cut off.]\n")
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
