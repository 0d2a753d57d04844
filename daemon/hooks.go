// Hooks of events that are the session's own. Only the ends of a turn and of the session wait for them,
// and none of them decides anything.

package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
)

// A notifier records what clients should know, and runs the hooks of the session's own events.
type notifier struct{ s *session }

// StopTurn stops the other calls of the call's turn.
func (i *intake) StopTurn(c *pipeline.Call, reason string) {
	i.s.queue.StopTurn(c.Use.Turn, &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: reason}, func(t scheduler.Task) bool { return t.ID() != c.ID() })
}

// Later runs f soon, on a goroutine that the session waits for before it ends.
func (s *session) Later(f func(context.Context)) { s.work.Go(func() { f(s.ctx) }) }

// goUnlessStopping does so unless the session is stopping. It must not be called inside an update.
func (s *session) goUnlessStopping(f func(context.Context)) {
	s.update(func(its *state) {
		if !its.stopping {
			s.Later(f)
		}
	})
}

// Notice records something that clients should know about the call.
func (rec *recorder) Notice(c *pipeline.Call, n pipeline.Noticed) {
	rec.s.notifier.notify(&c.Use, n)
}

// noRule stands for a rule of a hook's "if": an event that is about no call meets none.
func noRule(permission.Rule) bool { return false }

// mayRun reports whether an event has hooks, as far as that is known without looking at files, and unless when nothing is known yet.
// about is what a matcher is held against; empty: the event has no such thing.
func (nt *notifier) mayRun(event, about string, unless bool) bool {
	if st := nt.s.judge.snapshot.Load(); st != nil {
		return len(st.hooks.For(event, about, noRule)) > 0
	}
	return unless
}

// startHooks lets the hooks of an event know.
func (nt *notifier) startHooks(in hook.Input, about string) {
	if nt.mayRun(in.Event, about, true) {
		nt.s.Later(func(ctx context.Context) { nt.runHooks(ctx, in, about) })
	}
}

// runHooks runs the hooks of an event and returns when they have ended.
func (nt *notifier) runHooks(ctx context.Context, in hook.Input, about string) {
	st := nt.s.judge.policy()
	hooks := st.hooks.For(in.Event, about, noRule)
	if len(hooks) == 0 {
		return
	}
	rights := nt.s.judge.rights(nt.s.judge.basis(), st)
	in.Session, in.Dir, in.Mode = rights.Common.Session, rights.Common.Dir, rights.Common.Mode
	said := rights.Runner.Run(ctx, hooks, in)
	for _, n := range pipeline.Notices(said) {
		nt.notify(nil, n)
	}
	for _, reason := range said.Reasons {
		if reason.Text != "" {
			said.Context = append(said.Context, reason.Text)
		}
	}
	for _, text := range said.Context {
		nt.notify(nil, pipeline.Noticed{Code: "hook_context", Message: text})
	}
}

// runBatchHooks lets the PostToolBatch hooks know of all calls of a turn, before clients learn that it has ended.
func (nt *notifier) runBatchHooks(ctx context.Context, t *turn) {
	in := hook.Input{Event: hook.PostToolBatch}
	nt.s.update(func(*state) {
		for _, index := range slices.Sorted(maps.Keys(t.hookCalls)) {
			in.Calls = append(in.Calls, t.hookCalls[index])
		}
	})
	nt.runHooks(ctx, in, "")
}

// maxHookCall is how many bytes of an input, and of a result, hooks of a turn's end are told: a turn has up to a thousand calls.
const maxHookCall = 16 << 10

func bounded(text json.RawMessage) json.RawMessage {
	if len(text) <= maxHookCall {
		return text
	}
	return json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(text)))
}

// batchCall is a call as PostToolBatch hooks are told it.
func batchCall(e ending) hook.Call {
	call := hook.Call{Tool: e.use.Name, ToolUse: e.use.ID, Response: bounded(pipeline.ResponseOf(e.use.Name, e.ended))}
	if e.call != nil {
		call.Input = bounded(e.call.Given())
	}
	return call
}

// endPatience is how long the hooks of a session's end may take together. Claude Code gives them the same.
const endPatience = 1500 * time.Millisecond

// runEndHooks lets the hooks of the session's end know, and waits for them for a moment.
func (nt *notifier) runEndHooks(why string) {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	nt.runHooks(ctx, hook.Input{Event: hook.SessionEnd, Reason: why}, "other")
}
