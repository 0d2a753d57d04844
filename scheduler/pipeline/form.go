// Questions of a tool in the middle of its call: like those about permission, except that the tool gets the answer. The time
// limit of the run stands still while one is open.

package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
)

// asking returns the call's way to ask, one question at a time, from any of its goroutines. The call keeps its slot meanwhile,
// but after a moment not its place of the machine's; its time stands still.
func (c *Call) asking(watch *stopwatch) func(context.Context, tools.Form) (tools.Reply, error) {
	var one sync.Mutex
	count, pass := c.questions, c.order.pass
	return func(ctx context.Context, form tools.Form) (tools.Reply, error) {
		one.Lock()
		defer one.Unlock()
		count++
		reason := fmt.Sprintf("%s asks, in the middle of its call: %s", c.Name, form.Message)
		q := Question{
			ID: fmt.Sprintf("%s.%d", c.Key, count), Tool: c.Name, Title: c.Title(), Input: c.parsed.input,
			Digest: DigestOf(fmt.Sprintf("%d%q%s", count, form.Message, form.Schema)), Facts: c.facts, Form: &form,
			Verdict: permission.Asking(c.verdict.Level, permission.Reason{Code: permission.ToolAsks, Detail: reason}),
		}
		resume, back := watch.pause(), pass.Away()
		input, err := c.session.Ask(ctx, c, q)
		back()
		resume()
		if no, is := isNo(err); is {
			return tools.Reply{Why: no.Message}, nil
		}
		return tools.Reply{Yes: err == nil, Content: json.RawMessage(input)}, err
	}
}

// A stopwatch measures one run. Its methods may be used from any goroutine, pause by one at a time.
type stopwatch struct {
	timer *time.Timer // fires at the limit; nil: no limit
	begun time.Time

	mu    sync.Mutex
	since time.Time     // when it last started
	left  time.Duration // of the limit then
	still time.Duration // how long it stood still before
	asked []pause       // in which it stood still
	over  bool          // it has ended
}

// A pause is a time in which a stopwatch stood still.
type pause struct {
	began time.Time
	took  time.Duration
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
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.over = true; s.timer != nil {
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
		s.asked = append(s.asked, pause{paused, s.since.Sub(paused)})
		if s.timer != nil && !s.over {
			s.timer.Reset(s.left)
		}
	}
}

// isOver reports whether the run has ended.
func (s *stopwatch) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// addTo adds to the usage of a call how long it has run until now, and how long it stood still while a client was asked. It
// returns the first.
func (s *stopwatch) addTo(u *Usage, accepted time.Time) (ran time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wall := time.Since(s.begun)
	u.Ran, u.Asked = wall-s.still, u.Asked+s.still
	for _, p := range s.asked {
		u.Periods = append(u.Periods, Period{Asking, p.began.Sub(accepted), p.took})
	}
	u.Periods = append(u.Periods, Period{Running, s.begun.Sub(accepted), wall})
	return u.Ran
}
