package scheduler

import (
	"errors"
	"slices"
	"testing"
)

// starts returns the calls that a plan starts or continues now.
func starts(p *Plan) (ids []string) {
	for p.Start(10) {
	}
	for step := range p.Steps {
		if step.Kind == StepStart || step.Kind == StepResume {
			ids = append(ids, step.Task.ID())
		}
	}
	return ids
}

// TestPaused: no call starts but what a running one needs, and all of them once the pause is over.
func TestPaused(t *testing.T) {
	p := NewPlan(Streaming, DefaultConcurrency)
	check := func(what string, want ...string) {
		t.Helper()
		if got := starts(p); !slices.Equal(got, want) {
			t.Errorf("%s: %q starts, want %q", what, got, want)
		}
	}
	p.Add(name{id: "Read1", turn: 1}, "")
	check("at first", "Read1")
	p.SetPaused(true)
	p.Add(name{id: "Read2", turn: 1}, "")
	check("paused")
	p.Add(name{id: "Read3", turn: 1}, "Read1")
	check("nested in one that runs", "Read3")
	p.Finish("Read3", nil)
	p.Leave("Read1")
	p.Return("Read1")
	check("it was outside", "Read1")
	p.Finish("Read1", nil)
	check("all have ended")
	p.SetPaused(false)
	check("the pause is over", "Read2")
	stop := errors.New("stopped")
	p.StopTurn(1, stop, func(Task) bool { return false })
	if got := p.Stopped(1); !errors.Is(got, stop) {
		t.Errorf("further calls are skipped because of %v", got)
	}
}

// TestPausedForOneAlone: a call that waits to continue alone does so in the pause, and no call behind it starts.
func TestPausedForOneAlone(t *testing.T) {
	p := NewPlan(Streaming, 2)
	for _, id := range []string{"Read1", "Read2", "Read3"} {
		p.Add(name{id: id, turn: 1}, "")
	}
	if got := starts(p); !slices.Equal(got, []string{"Read1", "Read2"}) {
		t.Fatalf("%q start", got)
	}
	p.SetPaused(true)
	p.Finish("Read1", nil)
	p.SetPaused(false)
	if got := starts(p); !slices.Equal(got, []string{"Read3"}) {
		t.Fatalf("%q starts", got)
	}
	p.Add(name{id: "Read4", turn: 1}, "")
	p.Separate("Read3")
	p.SetPaused(true)
	p.Finish("Read2", nil)
	if got := starts(p); !slices.Equal(got, []string{"Read3"}) {
		t.Errorf("%q goes on, want the one that continues alone, and not the one behind it", got)
	}
}
