// The time limit of a run, which does not run while a question is open.

package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/toold/toold/tools"
)

// A stopwatch measures one run. Its methods may be used from any goroutine, pause by one at a time.
type stopwatch struct {
	timer *time.Timer // fires at the limit; nil: no limit
	begun time.Time

	mu    sync.Mutex
	since time.Time     // when it last started
	left  time.Duration // of the limit then
	still time.Duration // how long it stood still before
}

// newStopwatch returns a running stopwatch, which the caller ends. At the limit the context's cause
// is tools.ErrTimeout; limit 0: no limit.
func newStopwatch(ctx context.Context, limit time.Duration) (_ context.Context, s *stopwatch, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	now := time.Now()
	s = &stopwatch{begun: now, since: now, left: limit}
	if limit > 0 {
		s.timer = time.AfterFunc(limit, func() { cancel(tools.ErrTimeout) })
	}
	return ctx, s, func() {
		if s.timer != nil {
			s.timer.Stop()
		}
		cancel(nil)
	}
}

// pause lets it stand still until resume is called.
func (s *stopwatch) pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paused := time.Now()
	if s.timer != nil {
		s.timer.Stop()
		s.left -= paused.Sub(s.since)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.since = time.Now()
		s.still += s.since.Sub(paused)
		if s.timer != nil {
			s.timer.Reset(s.left)
		}
	}
}

// took returns how long it has run until now, and how long it stood still.
func (s *stopwatch) took() (ran, still time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.begun) - s.still, s.still
}
