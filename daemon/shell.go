package daemon

// What calls see of their session and what they leave behind in it: working directory, environment, todo list, cursors.
// Knows nothing of records' ways.

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/spool"
)

// change is what a concurrent call leaves behind in the session, until its batch has ended.
type change struct {
	use     *pipeline.Use
	changes tools.Changes
	given   []string // the environment that the call was given
}

// Peek gives the session's state as it is now, for one call.
func (s *session) Peek(c *pipeline.Call) *tools.Env {
	st := s.stand()
	env := s.peek(c, st)
	env.Dir, env.Gone = tools.WorkingDir(env.Dir, s.meta.Roots, st.places.Disk)
	return env
}

func (s *session) peek(c *pipeline.Call, st *standing) *tools.Env {
	return view(s, func(its *state) *tools.Env {
		spec := c.Tool.Spec()
		env := &tools.Env{
			CallID: outputName(s.name, c.Key), Dir: its.shell.dir, Environ: its.shell.environ(st), Cursors: maps.Clone(its.shell.cursors),
			Tasks: s.tasks, MaxChars: spec.MaxResultChars, Languages: s.languages, Principal: string(s.meta.owner()),
		}
		env.Reach = tools.Reach{Allowed: st.confining.Network.Allowed, Denied: st.confining.Network.Denied}
		if env.MaxChars == 0 {
			env.MaxChars = pipeline.DefaultMaxChars
		}
		if t := its.ledger.turns[c.Use.Turn]; t != nil {
			env.OnTimeout = onTimeoutOf(t.options)
		}
		if s.outputs != nil { // a likeness, for Explain, may have none
			env.Spool = s.outputs.Limited(st.settings.Limits.OutputBytes)
		}
		env.Deferred = func() []tools.Spec { return s.pool(s.optionsOf(c)).Deferrable() }
		env.Output = func(out *spool.Output) { s.published(c, out) }
		env.Report = func(step tools.Step) { s.reported(c, step) }
		env.First = s.first
		return env
	})
}

// first reports whether something is said for the first time since the session was made or restored.
func (s *session) first(what string) bool {
	return view(s, func(its *state) bool {
		said := its.shell.said[what]
		if its.shell.said == nil {
			its.shell.said = map[string]bool{}
		}
		its.shell.said[what] = true
		return !said
	})
}

// outputName is what the output of a call is called, and its processes are marked with.
func outputName(session, key string) string { return session + "." + key }

// outset is the client's environment with what settings say.
func (h *shell) outset(st *standing) map[string]string {
	env := maps.Clone(h.env)
	if len(env) == 0 {
		env = daemonEnviron()
	}
	for _, v := range st.settings.Env {
		env[v.Name] = v.Value
	}
	return env
}

// environ is the same with what calls have exported.
func (h *shell) environ(st *standing) []string {
	env := h.outset(st)
	for _, name := range h.exports.Unset {
		delete(env, name)
	}
	maps.Copy(env, h.exports.Set)
	return listed(env)
}

// listed gives an environment as NAME=value, by name.
func listed(env map[string]string) (list []string) {
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

// apply puts what calls leave behind into the session's state, and gives the record that tells it, if there is
// anything to tell.
func (s *session) apply(its *state, changes []change) []journal.Entry {
	event := pipeline.Changed{}
	var state []journal.Put
	for _, c := range changes {
		if dir := c.changes.Dir; dir != "" && dir != its.shell.dir {
			s.tellHooks(hook.Input{Event: hook.CwdChanged, OldDir: its.shell.dir, NewDir: dir}, "")
			its.shell.dir, event.Dir = dir, dir
			state = append(state, put(keyDir, dir))
		}
		if c.changes.Exports != nil {
			set, unset := s.export(its, c.given, c.changes.Exports)
			event.Exported, event.Unexported = append(event.Exported, set...), append(event.Unexported, unset...)
			if len(set)+len(unset) > 0 {
				state = append(state, put(keyExports, its.shell.exports))
			}
		}
		if c.changes.Todos != nil {
			its.shell.todos, event.Todos, event.TodosReplaced = c.changes.Todos, c.changes.Todos, true
			state = append(state, put(keyTodos, its.shell.todos))
		}
		if cursor := c.changes.Cursor; cursor != nil {
			its.shell.cursors[cursor.Task] = cursor.Offset
			state = append(state, put(keyCursor+cursor.Task, cursor.Offset))
		}
		if fresh := s.activate(its, c.changes.Activated); len(fresh) > 0 {
			event.Activated = append(event.Activated, fresh...)
			state = append(state, put(keyActive, its.toolset.supply.active))
		}
	}
	if len(state) == 0 {
		return nil
	}
	return []journal.Entry{entry(nil, event, state...)}
}

// export takes over what a call has changed in the exported environment that it was given, and names that.
func (s *session) export(its *state, given []string, after map[string]string) (set, unset []string) {
	filter := sandbox.Filter{}
	if st := s.standing.Load(); st != nil {
		filter = st.confining.Filter
	}
	before := map[string]string{}
	for _, pair := range given {
		name, value, _ := strings.Cut(pair, "=")
		before[name] = value
	}
	for name, value := range after {
		if old, had := before[name]; !had || old != value {
			if its.shell.exports.Set == nil {
				its.shell.exports.Set = map[string]string{}
			}
			its.shell.exports.Set[name] = value
			its.shell.exports.Unset = slices.DeleteFunc(its.shell.exports.Unset, func(n string) bool { return n == name })
			set = append(set, name)
		}
	}
	for name := range before {
		if _, has := after[name]; !has && !filter.Withheld(name) { // a command never saw what was withheld from it
			delete(its.shell.exports.Set, name)
			its.shell.exports.Unset = append(its.shell.exports.Unset, name)
			unset = append(unset, name)
		}
	}
	slices.Sort(set)
	slices.Sort(unset)
	return set, unset
}
