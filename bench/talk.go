// A conversation with either server: tool uses go out, results are waited for.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A talk is one stream, attached to a session that may do everything without being asked.
type talk struct {
	stream grpc.BidiStreamingClient[tooldv1.ExecuteRequest, tooldv1.ExecuteResponse]
	turn   int
}

// startTalk opens a stream. The session closes with it, or goes on when it has a name.
func startTalk(ctx context.Context, s *server, session, root string) (*talk, error) {
	stream, err := tooldv1.NewToolServiceClient(s.conn).Execute(ctx)
	if err != nil {
		return nil, err
	}
	mode, most := tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, int32(64)
	return &talk{stream: stream}, stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{
		SessionId: session,
		Roots:     []string{root},
		Client:    &tooldv1.ClientInfo{Name: "bench"},
		Options:   &tooldv1.Options{PermissionMode: &mode, MaxConcurrency: &most},
	}}})
}

// calls makes n calls of one turn, at most window of them unanswered, and returns how long one took
// of the whole. last is the result that came last.
func (t *talk) calls(n, window int, name string, input any) (took time.Duration, last *tooldv1.ToolResult, err error) {
	text, err := json.Marshal(input)
	if err != nil {
		return 0, nil, err
	}
	t.turn++
	start := time.Now()
	for sent, answered := 0, 0; answered < n; answered++ {
		for ; sent < n && sent-answered < window; sent++ {
			if err := t.use(sent, name, string(text)); err != nil {
				return 0, nil, err
			}
		}
		if last, err = t.result(); err != nil {
			return 0, nil, err
		}
	}
	return time.Since(start) / time.Duration(n), last, nil
}

func (t *talk) use(n int, name, input string) error {
	turn := strconv.Itoa(t.turn)
	return t.stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
		Id: turn + "." + strconv.Itoa(n), Name: name, TurnId: turn,
		Arguments: &tooldv1.ToolUse_InputJson{InputJson: input},
	}}})
}

// result waits for the next result, whichever call's it is. A result that is not OK is an error: what was measured
// would not be the work.
func (t *talk) result() (*tooldv1.ToolResult, error) {
	for {
		event, err := t.stream.Recv()
		if err != nil {
			return nil, err
		}
		result := event.GetToolResult()
		if result == nil {
			continue
		}
		if result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
			return nil, fmt.Errorf("a call ended as %v: %v", result.GetOutcome(), result.GetContent())
		}
		return result, nil
	}
}
