package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// TestSettled: how a started call ends is told by what stopped it, unless its tool knows that it had no effect.
func TestSettled(t *testing.T) {
	unavailable, other := fault.Failedf("server_unavailable", "It was not sent."), fault.Failedf("tool_failed", "It broke.")
	cancelled := &Stop{Outcome: Cancelled, Reason: "the user stopped it"}
	for _, tt := range []struct {
		name    string
		cause   error
		err     error
		outcome Outcome
		code    string // of the fault
		stays   bool   // what it had done is said to stay done
	}{
		{"succeeds", nil, nil, OK, "", false},
		{"succeeds as it is stopped", cancelled, nil, OK, "", false},
		{"fails", nil, other, Error, "tool_failed", false},
		{"was not sent", nil, unavailable, Error, "server_unavailable", false},
		{"runs out of time", tools.ErrTimeout, tools.ErrTimeout, TimedOut, "timed_out", true},
		{"fails as its time runs out", tools.ErrTimeout, other, TimedOut, "timed_out", true},
		{"runs out of time before it is sent", tools.ErrTimeout, unavailable, TimedOut, "server_unavailable", false},
		{"is stopped", cancelled, errors.New("stopped"), Cancelled, "cancelled", true},
		{"is stopped before it is sent", cancelled, unavailable, Cancelled, "cancelled", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.cause != nil {
				cancel(tt.cause)
			}
			ended := settle(ctx, tools.Text("given"), tt.err, time.Second)
			code, words := "", ended.Content[len(ended.Content)-1].Text
			if ended.Fault != nil {
				code = ended.Fault.Code
			}
			if ended.Outcome != tt.outcome || code != tt.code || strings.Contains(words, "Its effects until then remain") != tt.stays || ended.Content[0].Text != "given" {
				t.Errorf("%s %s %q, want %s %s", ended.Outcome, code, words, tt.outcome, tt.code)
			}
		})
	}
}
