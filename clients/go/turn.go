package toold

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Turn is the calls of one message of a model, or one call of the program's.
type Turn struct {
	ID    string
	agent *Agent
	call  string        // of Start
	over  chan struct{} // closed when the turn has ended

	mu      sync.Mutex
	events  uint64
	results []*tooldv1.ToolResult // in the order of the calls, each once
	err     error
}

// Feed passes on the next event of the model's stream, verbatim, or a whole message. A call runs as soon as its block is complete.
func (t *Turn) Feed(event string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	message := &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ModelEvent{ModelEvent: &tooldv1.ModelEvent{
		TurnId: t.ID, Index: t.events, Json: event, Format: t.agent.handlers.Format,
	}}}
	if t.events++; t.events == 1 {
		return t.agent.begin(t, message)
	}
	return t.agent.Send(message)
}

// End ends the message, waits until each call has its result, and returns the items to append to the conversation: for Anthropic
// one message of the user, which holds the results, for OpenAI those of the role tool or output items. It is empty if the model
// has asked for nothing. A call whose block is not complete does not run. Reason of the error is model_failed or
// invalid_model_event if the message cannot be used.
func (t *Turn) End(ctx context.Context) ([]json.RawMessage, error) {
	if t.isEmpty() {
		return nil, nil
	}
	if err := t.sendEnd(); err != nil {
		return nil, err
	}
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	var items []json.RawMessage
	for _, result := range t.results {
		if native := result.GetNativeJson(); native != "" {
			items = append(items, json.RawMessage(native))
		}
	}
	var first struct{ Type string }
	if len(items) == 0 || json.Unmarshal(items[0], &first) != nil || first.Type != "tool_result" {
		return items, nil
	}
	message, err := json.Marshal(map[string]any{"role": "user", "content": items})
	return []json.RawMessage{message}, err
}

// Result waits for the call's result. A call that was denied or has failed has one like any other.
func (t *Turn) Result(ctx context.Context) (*tooldv1.ToolResult, error) {
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	if len(t.results) == 0 {
		return nil, errors.New("the turn has ended without a call")
	}
	return t.results[0], nil
}

// Cancel stops the calls of the turn, which have their results all the same.
func (t *Turn) Cancel(reason string) error {
	cancel := &tooldv1.Cancel{ToolUseId: t.call, TurnId: t.ID, Reason: reason}
	return t.agent.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: cancel}})
}

// Discard throws the turn away, because the model's message broke off and will be asked for again.
func (t *Turn) Discard(ctx context.Context) error {
	if t.isEmpty() {
		return nil
	}
	message := &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{TurnId: t.ID}}
	if err := t.agent.Send(&tooldv1.ExecuteRequest{Message: message}); err != nil {
		return err
	}
	return t.wait(ctx)
}

func (t *Turn) isEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events == 0
}

func (t *Turn) sendEnd() error {
	return t.agent.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: t.ID}}})
}

func (t *Turn) wait(ctx context.Context) error {
	select {
	case <-t.over:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes an event of the turn. It reports whether it was the last.
func (t *Turn) take(event *tooldv1.ExecuteResponse) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_ToolResult:
		t.add(e.ToolResult)
	case *tooldv1.ExecuteResponse_Notice:
		t.notice(e.Notice)
	}
	lost := event.GetTurnEnded().GetInterrupted() && t.events > 0 // another turn of the name follows
	if last = event.GetTurnEnded() != nil && !lost || t.call != "" && len(t.results) > 0; last {
		close(t.over)
	}
	return last
}

func (t *Turn) add(result *tooldv1.ToolResult) {
	if slices.ContainsFunc(t.results, func(r *tooldv1.ToolResult) bool { return r.GetToolUseId() == result.GetToolUseId() }) {
		return
	}
	t.results = append(t.results, result)
	slices.SortStableFunc(t.results, func(a, b *tooldv1.ToolResult) int { return cmp.Compare(a.GetIndex(), b.GetIndex()) })
}

// notice takes a notice. Some are why the turn returns an error.
func (t *Turn) notice(notice *tooldv1.Notice) {
	code, fails := map[string]codes.Code{
		"model_failed": codes.Aborted, "invalid_model_event": codes.InvalidArgument,
	}[notice.GetCode()]
	if !fails || t.err != nil {
		return
	}
	t.err = fault(code, notice.GetCode(), notice.GetMessage())
}

func (t *Turn) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	close(t.over)
}
