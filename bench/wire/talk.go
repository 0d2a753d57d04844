// A conversation with a server: tool uses go out, results are waited for.

package wire

import (
	"context"
	"fmt"
	"strconv"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Talk is one stream, attached to a session that may do everything without being asked.
type Talk struct {
	*Stream
	turn int
}

// StartTalk opens a stream of a client that reads no structured results. The session closes with it, or goes on when it has a name.
func StartTalk(ctx context.Context, s *Server, session, root string) (*Talk, error) {
	mode, most := tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, int32(64)
	stream, err := Attach(ctx, s.Conn, &tooldv1.Attach{
		SessionId:    session,
		Roots:        []string{root},
		Client:       &tooldv1.ClientInfo{Name: "bench"},
		Capabilities: &tooldv1.Capabilities{NoStructured: true},
		Options:      &tooldv1.Options{PermissionMode: &mode, MaxConcurrency: &most},
	})
	return &Talk{Stream: stream}, err
}

// Calls makes n calls of one turn, at most window of them unanswered, and returns how long one took
// of the whole. last is the result that came last.
func (t *Talk) Calls(n, window int, name, input string) (took time.Duration, last *tooldv1.ToolResult, err error) {
	t.turn++
	turn := strconv.Itoa(t.turn)
	start := time.Now()
	for sent, answered := 0, 0; answered < n; answered++ {
		for ; sent < n && sent-answered < window; sent++ {
			if err := t.Use(turn, turn+"."+strconv.Itoa(sent), name, input); err != nil {
				return 0, nil, err
			}
		}
		if last, err = t.Result(); err != nil {
			return 0, nil, err
		}
	}
	return time.Since(start) / time.Duration(n), last, nil
}

// Result waits for the next result, whichever call's it is. A result that is not OK is an error: what was measured
// would not be the work.
func (t *Talk) Result() (*tooldv1.ToolResult, error) {
	for {
		event, err := t.Recv()
		if err != nil {
			return nil, err
		}
		if result := event.GetToolResult(); result != nil {
			if result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
				err = fmt.Errorf("a call ended as %v: %v", result.GetOutcome(), result.GetContent())
			}
			return result, err
		}
	}
}
