package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toold/toold/tools"
)

// TestStopwatch: the time of a run ends it with its cause, and what it stands still counts as waiting.
func TestStopwatch(t *testing.T) {
	for _, tt := range []struct {
		name              string
		limit             time.Duration
		run, pause, again time.Duration
		ended             bool
	}{
		{"within the limit", 10 * time.Second, 4 * time.Second, 0, 5 * time.Second, false},
		{"over it", 10 * time.Second, 4 * time.Second, 0, 7 * time.Second, true},
		{"stood still for longer than it", 10 * time.Second, 4 * time.Second, time.Hour, 5 * time.Second, false},
		{"over it after it stood still", 10 * time.Second, 4 * time.Second, time.Hour, 7 * time.Second, true},
		{"over it when it stands still", 10 * time.Second, 11 * time.Second, time.Hour, 0, true},
		{"without one", 0, time.Hour, time.Hour, time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, s, end := newStopwatch(t.Context(), tt.limit)
				defer end()
				time.Sleep(tt.run)
				resume := s.pause()
				before := ctx.Err()
				time.Sleep(tt.pause)
				if ctx.Err() != before {
					t.Error("it ended while it stood still")
				}
				resume()
				time.Sleep(tt.again)
				synctest.Wait()
				var took Usage
				if ran, still := s.addTo(&took, time.Time{}), took.Asked; ran != tt.run+tt.again || still != tt.pause {
					t.Errorf("ran for %s and stood still for %s", ran, still)
				}
				if ended := context.Cause(ctx) == tools.ErrTimeout; ended != tt.ended {
					t.Errorf("its end is %v", context.Cause(ctx))
				}
			})
		})
	}
}

// TestHold: a connection waits no longer than one may, and those of a call not longer together than they may; the stopwatch
// stands still while at least one waits.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, watch, end := newStopwatch(t.Context(), 10*time.Second)
		defer end()
		h := hold{watch: watch, limits: HostLimits{Connection: time.Minute, Call: 150 * time.Second}}
		waits := func() time.Duration {
			begun := time.Now()
			ctx, release := h.begin(t.Context())
			defer release()
			<-ctx.Done()
			return time.Since(begun)
		}
		time.Sleep(time.Second)
		if got := waits(); got != time.Minute {
			t.Errorf("the first waits for %s", got)
		}
		time.Sleep(time.Second)
		_, release := h.begin(t.Context())
		time.Sleep(30 * time.Second)
		if got := waits(); got != time.Minute { // at the same time as another, which does not count twice
			t.Errorf("the second waits for %s", got)
		}
		release()
		var took Usage
		if ran, still := watch.addTo(&took, time.Time{}), took.Asked; ran != 2*time.Second || still != 150*time.Second {
			t.Errorf("ran for %s and stood still for %s", ran, still)
		}
		if got := waits(); got != 0 {
			t.Errorf("one after all of the time waits for %s", got)
		}
	})
}
