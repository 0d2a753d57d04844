package telemetry

import (
	"testing"
	"time"

	"github.com/toold/toold/scheduler/pipeline"
)

// TestRecent: of many calls the latest count, and a call counts for the phases that it was in.
func TestRecent(t *testing.T) {
	var r Recent
	if times, rate := r.Phases(); rate != 0 || len(times) != 4 || times[0].Calls != 0 || times[0].P99 != 0 {
		t.Errorf("of no calls: %v, %v", times, rate)
	}
	ended := func(waited, ran time.Duration) {
		r.Ended(&Call{Ended: &pipeline.Ended{Usage: pipeline.Usage{Waited: waited, Ran: ran}}})
	}
	for range recentCalls { // too old when the others have come
		ended(time.Hour, time.Hour)
	}
	for n := range recentCalls {
		ended(0, time.Duration(n+1)*time.Millisecond)
	}
	times, rate := r.Phases()
	want := map[pipeline.Phase]PhaseTime{
		pipeline.Waiting: {Phase: pipeline.Waiting}, pipeline.Asking: {Phase: pipeline.Asking}, pipeline.Hooking: {Phase: pipeline.Hooking},
		pipeline.Running: {Phase: pipeline.Running, Calls: recentCalls, P50: 256 * time.Millisecond, P99: 507 * time.Millisecond},
	}
	for _, got := range times {
		if got != want[got.Phase] {
			t.Errorf("%+v, want %+v", got, want[got.Phase])
		}
	}
	if rate < recentCalls/rateOver.Seconds() {
		t.Errorf("%v calls a second", rate)
	}
}
