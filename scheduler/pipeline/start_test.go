package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/toold/toold/tools"
)

// A starting records the start of a call by a function.
type starting struct {
	Recorder

	record func() error
}

func (s starting) Start(*Call, Started) error { return s.record() }

// TestStartBeforeInterrupt: a call that a client has seen start is not stopped by an interrupt, if its tool is to finish; one that is
// interrupted before is not recorded as started.
func TestStartBeforeInterrupt(t *testing.T) {
	t.Parallel()
	tool := tools.New(tools.Spec{Name: "Long", OnInterrupt: tools.Finish}, tools.Funcs[struct{}]{Effects: func(struct{}) tools.Effects { return tools.Effects{} }})
	c, recorded := &Call{Tool: tool}, 0
	record := func(err error) Session {
		return Session{Recorder: starting{record: func() error {
			recorded++
			if c.Interruptible() {
				t.Error("an interrupt would stop the call while clients see it start")
			}
			return err
		}}}
	}
	failure, interrupt := errors.New("the disk is full"), errors.New("the user interrupted")
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(interrupt)
	for _, step := range []struct {
		ctx       context.Context
		fails     error
		want      error
		recorded  int
		isStarted bool
	}{
		{interrupted, nil, interrupt, 0, false},
		{t.Context(), failure, failure, 1, false},
		{t.Context(), nil, nil, 2, true},
	} {
		c.session = record(step.fails)
		if err := recordStart(step.ctx, c, ""); !errors.Is(err, step.want) || recorded != step.recorded || c.Interruptible() == step.isStarted {
			t.Errorf("started: %v, recorded %d times, interruptible: %v; want %+v", err, recorded, c.Interruptible(), step)
		}
	}
}
