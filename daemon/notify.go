// What clients and hooks are told of a session without having asked: notices, the hooks of the
// session's own events, and files that something else than a tool has changed. Only the ends of a
// turn and of the session wait for hooks, and none of these decides anything.

package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fs/workspace"
)

// noticef notifies clients of something about the session, or about the call of that id when callID
// is not empty.
func (s *session) noticef(code, callID, format string, args ...any) {
	s.notify(nil, pipeline.Noticed{Code: code, CallID: callID, Message: fmt.Sprintf(format, args...)})
}

// notify records something that clients should know of a use, or of the session itself when use is
// nil. A full disk loses it, since nothing depends on it. It must not be called inside an update.
func (s *session) notify(use *pipeline.Use, n pipeline.Noticed) {
	if n.Code == "hook_failed" {
		s.daemon.Log.Warn("a hook failed", zap.String("session", s.name), zap.String("what", n.Message))
	}
	s.update(func(its *state) { its.ledger.append(entry(use, n)) })
}

// StopTurn stops the other calls of the call's turn.
func (i *intake) StopTurn(c *pipeline.Call, reason string) {
	i.s.queue.StopTurn(c.Use.Turn, &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: reason}, func(t scheduler.Task) bool { return t.ID() != c.ID() })
}

// Later runs f soon, on a goroutine that the session waits for before it ends.
func (s *session) Later(f func(context.Context)) {
	s.working.Add(1)
	s.work.Go(func() {
		defer s.working.Add(-1)
		f(s.ctx)
	})
}

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
	rec.s.notify(&c.Use, n)
}

// Remark records a message to clients that no call's records hold.
func (rec *recorder) Remark(n pipeline.Noticed) { rec.s.notify(nil, n) }

// noRule stands for a rule of a hook's "if": an event that is about no call meets none.
func noRule(permission.Rule) bool { return false }

// mayRun reports whether an event has hooks, as far as that is known without looking at files, and
// unless when nothing is known yet. about is what a matcher is held against; empty: the event has
// no such thing.
func (s *session) mayRun(event, about string, unless bool) bool {
	if st := s.judge.snapshot.Load(); st != nil {
		return len(st.hooks.For(event, about, noRule)) > 0
	}
	return unless
}

// startHooks lets the hooks of an event know.
func (s *session) startHooks(in hook.Input, about string) {
	if s.mayRun(in.Event, about, true) {
		s.Later(func(ctx context.Context) { s.runHooks(ctx, in, about) })
	}
}

// runHooks runs the hooks of an event and returns when they have ended.
func (s *session) runHooks(ctx context.Context, in hook.Input, about string) {
	st := s.judge.policy()
	hooks := st.hooks.For(in.Event, about, noRule)
	if len(hooks) == 0 {
		return
	}
	rights := s.judge.rights(s.judge.basis(), st)
	in.Session, in.Dir, in.Mode = rights.Common.Session, rights.Common.Dir, rights.Common.Mode
	said := rights.Runner.Run(ctx, hooks, in)
	for _, n := range pipeline.Notices(said) {
		s.notify(nil, n)
	}
	for _, reason := range said.Reasons {
		if reason.Reason != "" {
			said.Context = append(said.Context, reason.Reason)
		}
	}
	for _, text := range said.Context {
		s.notify(nil, pipeline.Noticed{Code: "hook_context", Message: text})
	}
}

// runBatchHooks lets the PostToolBatch hooks know of all calls of a turn, before clients learn that
// it has ended.
func (s *session) runBatchHooks(ctx context.Context, t *turn) {
	in := hook.Input{Event: hook.PostToolBatch}
	s.update(func(*state) {
		for _, index := range slices.Sorted(maps.Keys(t.hookCalls)) {
			in.Calls = append(in.Calls, t.hookCalls[index])
		}
	})
	s.runHooks(ctx, in, "")
}

// maxHookCall is how many bytes of an input, and of a result, hooks of a turn's end are told: a
// turn has up to a thousand calls.
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

// endPatience is how long the hooks of a session's end may take together. Claude Code gives them
// the same.
const endPatience = 1500 * time.Millisecond

// runEndHooks lets the hooks of the session's end know, and waits for them for a moment.
func (s *session) runEndHooks(why string) {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	s.runHooks(ctx, hook.Input{Event: hook.SessionEnd, Reason: why}, "other")
}

// maxToldFiles is how many files one notice names.
const maxToldFiles = 100

// fileWatch is a session's, for as long as a client with the capability is attached.
type fileWatch struct {
	session *session
	watch   *workspace.Watch
	looking sync.Mutex // held while changes are looked into and told, so that each is told once

	// Used in the session's update alone.
	waiting map[string]bool            // may have changed, while calls run that may have done it
	told    map[string]workspace.State // as it was when it was told that it has changed
	limited bool                       // it was told that not everything is watched
}

// fileChanges is what a Notice "file_changed" carries for programs.
type fileChanges struct {
	Files []fileChange `json:"files"`
	More  int          `json:"more,omitempty"` // that are not named
}

type fileChange struct {
	Path    string `json:"path"`
	Removed bool   `json:"removed,omitempty"`
}

// reviewFileWatch begins or ends the watching, as the attached streams want. It must not be called
// inside an update.
func (r *requester) reviewFileWatch() {
	var begun, ended *fileWatch
	var err error
	r.s.update(func(its *state) {
		wanted := false
		for st := range its.clients.streams {
			wanted = wanted || st.fileChanges && !its.stopping
		}
		if before := its.clients.watching; before != nil && !wanted {
			ended, its.clients.watching = before, nil
		} else if before == nil && wanted {
			w := &fileWatch{session: r.s, waiting: map[string]bool{}, told: map[string]workspace.State{}}
			if w.watch, err = workspace.NewWatch(w.touched); err == nil {
				begun, its.clients.watching = w, w
			}
		}
	})
	switch {
	case err != nil:
		r.s.noticef("file_changes_limited", "", "Changes of files are not told: this system watches no more (%v).", err)
	case ended != nil:
		ended.watch.Close()
	case begun != nil:
		known := r.s.judge.readState.Paths()
		r.watchAlso(slices.Values(known))
		begun.touched(known) // what has changed while it was not watched
	}
}

// watchAlso watches files that the session has come to know. It must not be called inside an
// update.
func (r *requester) watchAlso(files iter.Seq[string]) {
	w := view(r.s, func(its *state) *fileWatch { return its.clients.watching })
	if w == nil {
		return
	}
	missed := false
	for real := range files {
		missed = !w.watch.Add(real) || missed
	}
	var before bool
	r.s.update(func(*state) { before, w.limited = w.limited, w.limited || missed })
	if missed && !before {
		r.s.noticef("file_changes_limited", "", "Changes of some files are not told: their directory is gone, or too many directories are watched already.")
	}
}

// touched takes files that may have changed. What calls of the session have done is not told of
// while they run: the session does not know yet what it will know then.
func (w *fileWatch) touched(files []string) {
	s := w.session
	s.update(func(its *state) {
		for _, real := range files {
			w.waiting[real] = true
		}
		s.requests.checkFilesLater(its)
	})
}

// checkFilesLater reports changed files, unless calls run.
func (r *requester) checkFilesLater(its *state) {
	w := its.clients.watching
	if w == nil || its.ledger.running > 0 || len(w.waiting) == 0 || its.stopping {
		return
	}
	files := slices.Sorted(maps.Keys(w.waiting))
	clear(w.waiting)
	r.s.work.Go(func() { w.notify(files) })
}

func (w *fileWatch) notify(files []string) {
	w.looking.Lock()
	defer w.looking.Unlock()
	s := w.session
	var changes fileChanges
	for _, real := range files {
		now, changed := s.judge.readState.Now(real)
		var before workspace.State
		var told bool
		s.update(func(*state) {
			before, told = w.told[real]
			if w.told[real] = now; !changed {
				delete(w.told, real)
			}
		})
		if !changed || told && before.Same(now) {
			continue
		}
		if len(changes.Files) == maxToldFiles {
			changes.More++
			continue
		}
		changes.Files = append(changes.Files, fileChange{Path: convert.Clean(real), Removed: now.Inode == 0})
	}
	if len(changes.Files) > 0 {
		s.notify(nil, pipeline.Noticed{Code: "file_changed", Message: changes.String(), Details: changes})
	}
}

// String returns the event as text.
func (c fileChanges) String() string {
	names := convert.Each(c.Files[:min(len(c.Files), 3)], func(f fileChange) string {
		if f.Removed {
			return f.Path + " (removed)"
		}
		return f.Path
	})
	text := strings.Join(names, ", ")
	if more := len(c.Files) - len(names) + c.More; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "Not as this session knows it any more: " + text + "."
}
