package daemon

// A call's way as its session sees it: its turn comes, it starts, it ends. These are the methods that the pipeline
// calls; all records of a call but the first are made here.

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/spool"
	"github.com/toold/toold/tools/workspace"
)

// skip is a call whose turn never came.
type skip struct {
	call  *pipeline.Call
	ended pipeline.Ended
}

// change is what a concurrent call leaves behind in the session, until its batch has ended.
type change struct {
	use     *pipeline.Use
	changes tools.Changes
}

// Begin says that the call's turn has come.
func (s *session) Begin(c *pipeline.Call) *tools.Env {
	s.mu.Lock()
	s.begun++
	s.mu.Unlock()
	return s.Peek(c)
}

// Peek gives the session's state as it is now, for one call.
func (s *session) Peek(c *pipeline.Call) *tools.Env {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec := c.Tool.Spec()
	env := &tools.Env{
		CallID: s.name + "." + c.Key, Dir: s.dir, Environ: s.environ(), Todos: s.todos, Cursors: maps.Clone(s.cursors),
		Spool: s.outputs, Runner: s.daemon.runner, Tasks: s.tasks, MaxChars: spec.MaxResultChars,
	}
	if env.MaxChars == 0 {
		env.MaxChars = pipeline.DefaultMaxChars
	}
	if t := s.turns[c.Use.Turn]; t != nil {
		env.OnTimeout = onTimeoutOf(t.options)
	}
	env.Output = func(out *spool.Output) { s.published(c, out) }
	env.Report = func(step tools.Step) { s.reported(c, step) }
	return env
}

// environ is the client's environment with what calls have exported. mu is held.
func (s *session) environ() (list []string) {
	env := maps.Clone(s.env)
	if len(env) == 0 {
		env = daemonEnviron()
	}
	for _, name := range s.exports.Unset {
		delete(env, name)
	}
	maps.Copy(env, s.exports.Set)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// daemonEnviron is what calls get of the daemon's own environment when the client has sent none.
func daemonEnviron() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains([]string{"PATH", "HOME", "USER", "SHELL", "LANG", "TMPDIR"}, name) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	return env
}

// Workspace is where the session's calls may find files, and what they have seen of them.
func (s *session) Workspace() (*workspace.Workspace, *workspace.Memory) { return s.places, s.memory }

// Mode is the permission mode now.
func (s *session) Mode() permission.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return modeOf(s.options)
}

// Policy is the sibling abort policy of the call's turn.
func (s *session) Policy(c *pipeline.Call) pipeline.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[c.Use.Turn]; t != nil {
		return policyOf(t.options)
	}
	return policyOf(s.options)
}

// Start records that the call begins to act. For a call that can have effects it returns when the record is on disk.
func (s *session) Start(c *pipeline.Call, started pipeline.Started) error {
	e := s.entry(&c.Use, started)
	if !c.ReadOnly() {
		e.Durability = journal.Synced
	}
	s.mu.Lock()
	s.live[c.Key] = newLive(c)
	pending := s.enqueue(e)
	s.mu.Unlock()
	if c.ReadOnly() {
		return nil
	}
	if _, err := pending.Wait(); err != nil {
		return diskFault(err)
	}
	return nil
}

// diskFault puts an error of the journal into words for a call that had no effect yet.
func diskFault(err error) *fault.Error {
	if errors.Is(err, journal.ErrFull) {
		return fault.Failedf("disk_full", "The disk that holds the daemon's journal is full, so the call was not started. Free some space and send it again under a new id.")
	}
	return fault.Failedf("journal_failed", "The daemon could not record the call (%v), so it was not started.", err)
}

// End records the call's result and applies what it leaves behind.
func (s *session) End(c *pipeline.Call, ended pipeline.Ended, learned map[string]workspace.State) {
	if ended.Stack != nil {
		s.daemon.Log.Error("a tool panicked", zap.String("tool", c.Name), zap.String("session", s.name), zap.ByteString("stack", ended.Stack))
	}
	s.memory.Merge(learned)
	s.mu.Lock()
	s.begun--
	ended.Usage.OutputBytes = s.live[c.Key].printed()
	entries := s.resultEntries(c, ended, learned)
	changes := []change{{&c.Use, ended.Changes}}
	if c.Concurrent() {
		s.deferred = append(s.deferred, changes[0])
		changes = nil
		if s.begun == 0 {
			changes, s.deferred = s.deferred, nil
			slices.SortFunc(changes, func(a, b change) int {
				return 2*compare(a.use.Turn, b.use.Turn) + compare(a.use.Index, b.use.Index)
			})
		}
	}
	if e, changed := s.apply(changes); changed {
		entries = append(entries, e)
	}
	pending := s.enqueue(entries...)
	t := s.turns[c.Use.Turn]
	s.mu.Unlock()
	s.keep(pending, entries)
	s.ended(c, t, ended)
}

func compare[N int | uint64](a, b N) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Skipped records the result of a call whose turn never came. It is called on the scheduler's loop and only notes it.
func (s *session) Skipped(c *pipeline.Call, ended pipeline.Ended) {
	s.mu.Lock()
	s.skipped = append(s.skipped, skip{c, ended})
	first := len(s.skipped) == 1
	s.mu.Unlock()
	if first {
		s.work.Go(s.recordSkipped)
	}
}

// recordSkipped records the results of calls whose turn never came, in their order.
func (s *session) recordSkipped() {
	s.skipping.Lock()
	defer s.skipping.Unlock()
	for {
		s.mu.Lock()
		batch := s.skipped
		s.skipped = nil
		var entries []journal.Entry
		for _, skip := range batch {
			entries = append(entries, s.resultEntries(skip.call, skip.ended, nil)...)
		}
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, skip := range batch {
			s.Withdraw(skip.call, "its call will not run")
		}
		s.mu.Lock()
		pending := s.enqueue(entries...)
		s.mu.Unlock()
		s.keep(pending, entries)
		for _, skip := range batch {
			s.mu.Lock()
			t := s.turns[skip.call.Use.Turn]
			s.mu.Unlock()
			s.ended(skip.call, t, skip.ended)
		}
	}
}

// resultEntries makes the record of a result, with the state that changes together with it. mu is held.
func (s *session) resultEntries(c *pipeline.Call, ended pipeline.Ended, learned map[string]workspace.State) []journal.Entry {
	row := s.calls[c.Key]
	row.Open = false
	state := []journal.Put{put(keyCall+c.Key, row)}
	if ended.Outcome == pipeline.Discarded {
		s.forget(c.Key)
		row.ID = "" // free again
		state[0] = put(keyCall+c.Key, row)
	}
	for real, seen := range learned {
		state = append(state, put(keySeen+real, seen))
	}
	e := s.entry(&c.Use, ended, state...)
	if !c.ReadOnly() && s.live[c.Key] != nil {
		e.Durability = journal.Synced
	}
	if t := s.turns[c.Use.Turn]; t != nil {
		return t.ordered.add(c.Index, e)
	}
	return []journal.Entry{e}
}

// keep waits until entries are in the journal, and tries again for as long as the disk is full: a result is never lost.
func (s *session) keep(pending *journal.Pending, entries []journal.Entry) {
	_, err := pending.Wait()
	for errors.Is(err, journal.ErrFull) {
		select {
		case <-time.After(fullRetry):
		case <-s.daemon.atOnce:
			return
		}
		_, err = s.log.Append(entries...)
	}
	if err != nil && !errors.Is(err, journal.ErrClosed) && !errors.Is(err, journal.ErrSealed) {
		s.daemon.Log.Error("a result could not be recorded", zap.String("session", s.name), zap.Error(err))
	}
}

// fullRetry is how long a result waits before it is written to a full disk again.
const fullRetry = 250 * time.Millisecond

// ended takes a call out of its turn, once its result is recorded.
func (s *session) ended(c *pipeline.Call, t *turn, ended pipeline.Ended) {
	s.mu.Lock()
	delete(s.live, c.Key)
	s.openSize -= len(c.Use.Input)
	if t != nil {
		delete(t.open, c.Key)
		t.outcomes[ended.Outcome]++
		t.work += ended.Usage.Ran
		s.finishTurn(t)
	}
	s.used = time.Now()
	s.tell()
	s.mu.Unlock()
	s.poke()
}

// apply puts what calls leave behind into the session's state, and gives the record that tells it. mu is held.
func (s *session) apply(changes []change) (e journal.Entry, changed bool) {
	event := pipeline.Changed{}
	var state []journal.Put
	for _, c := range changes {
		if dir := c.changes.Dir; dir != "" && dir != s.dir {
			s.dir, event.Dir = dir, dir
			state = append(state, put(keyDir, dir))
		}
		if c.changes.Exports != nil {
			set, unset := s.export(c.changes.Exports)
			event.Exported, event.Unexported = append(event.Exported, set...), append(event.Unexported, unset...)
			if len(set)+len(unset) > 0 {
				state = append(state, put(keyExports, s.exports))
			}
		}
		if c.changes.Todos != nil {
			s.todos, event.Todos, event.TodosReplaced = c.changes.Todos, c.changes.Todos, true
			state = append(state, put(keyTodos, s.todos))
		}
		if cursor := c.changes.Cursor; cursor != nil {
			s.cursors[cursor.Task] = cursor.Offset
			state = append(state, put(keyCursor+cursor.Task, cursor.Offset))
		}
	}
	if len(state) == 0 {
		return e, false
	}
	return s.entry(nil, event, state...), true
}

// export takes over the exported environment that a call ended with, and names what is new in it. mu is held.
func (s *session) export(after map[string]string) (set, unset []string) {
	before := map[string]string{}
	for _, pair := range s.environ() {
		name, value, _ := strings.Cut(pair, "=")
		before[name] = value
	}
	for name, value := range after {
		if old, had := before[name]; !had || old != value {
			if s.exports.Set == nil {
				s.exports.Set = map[string]string{}
			}
			s.exports.Set[name] = value
			s.exports.Unset = slices.DeleteFunc(s.exports.Unset, func(n string) bool { return n == name })
			set = append(set, name)
		}
	}
	for name := range before {
		if _, has := after[name]; !has {
			delete(s.exports.Set, name)
			s.exports.Unset = append(s.exports.Unset, name)
			unset = append(unset, name)
		}
	}
	slices.Sort(set)
	slices.Sort(unset)
	return set, unset
}
