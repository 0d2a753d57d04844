// What calls see of their session and what they leave behind in it: working directory, environment, todo list,
// cursors.

package daemon

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
)

// change is what a concurrent call leaves behind in the session, until its batch has ended.
type change struct {
	use     *pipeline.Use
	changes tools.Changes
	given   []string // the environment that the call was given
}

// first reports whether what is mentioned for the first time since the session was made or restored.
func (rec *recorder) first(what string) bool {
	return view(rec.s, func(its *state) bool {
		said := its.shell.mentioned[what]
		its.shell.mentioned[what] = true
		return !said
	})
}

// outputName is what the output of a call is called, and its processes are marked with.
func outputName(session, key string) string { return session + "." + key }

// baseEnviron is the client's environment with what settings say.
func (h *shell) baseEnviron(st *policySnapshot) map[string]string {
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
func (h *shell) environ(st *policySnapshot) []string {
	env := h.baseEnviron(st)
	for _, name := range h.exports.Unset {
		delete(env, name)
	}
	maps.Copy(env, h.exports.Set)
	return listed(env)
}

// listed returns an environment as NAME=value, by name.
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

// apply puts the changes of calls into the session's state. It returns the record of what changed, or nil.
func (rec *recorder) apply(its *state, changes []change) []journal.Entry {
	event := pipeline.Changed{}
	var state []journal.Put
	for _, c := range changes {
		if dir := c.changes.Dir; dir != "" && dir != its.shell.dir {
			rec.s.notifier.startHooks(hook.Input{Event: hook.CwdChanged, OldDir: its.shell.dir, NewDir: dir}, "")
			its.shell.dir, event.Dir = dir, dir
			state = append(state, putState(keyDir, dir))
		}
		if c.changes.Exports != nil {
			set, unset := rec.export(its, c.given, c.changes.Exports)
			event.Exported, event.Unexported = append(event.Exported, set...), append(event.Unexported, unset...)
			if len(set)+len(unset) > 0 {
				state = append(state, putState(keyExports, its.shell.exports))
			}
		}
		if c.changes.Todos != nil {
			its.shell.todos, event.Todos, event.TodosReplaced = c.changes.Todos, c.changes.Todos, true
			state = append(state, putState(keyTodos, its.shell.todos))
		}
		if cursor := c.changes.Cursor; cursor != nil {
			its.shell.cursors = maps.Clone(its.shell.cursors) // a judge may look at the one of before
			its.shell.cursors[cursor.Task] = cursor.Offset
			state = append(state, putState(keyCursor+cursor.Task, cursor.Offset))
		}
		if fresh := rec.s.tools.activate(its, c.changes.Activated); len(fresh) > 0 {
			event.Activated = append(event.Activated, fresh...)
			state = append(state, putState(keyActive, its.toolset.dynamic.active))
		}
	}
	if len(state) == 0 {
		return nil
	}
	return []journal.Entry{entry(nil, event, state...)}
}

// export takes over what a call has changed in the exported environment that it was given, and names that.
func (rec *recorder) export(its *state, given []string, after map[string]string) (set, unset []string) {
	filter := sandbox.Filter{}
	if st := rec.s.judge.snapshot.Load(); st != nil {
		filter = st.confining.Filter
	}
	exports := exports{Set: maps.Clone(its.shell.exports.Set), Unset: slices.Clone(its.shell.exports.Unset)} // a judge may look at those of before
	if exports.Set == nil {
		exports.Set = map[string]string{}
	}
	before := map[string]string{}
	for _, pair := range given {
		name, value, _ := strings.Cut(pair, "=")
		before[name] = value
	}
	for name, value := range after {
		if old, had := before[name]; !had || old != value {
			exports.Set[name] = value
			exports.Unset = slices.DeleteFunc(exports.Unset, func(n string) bool { return n == name })
			set = append(set, name)
		}
	}
	for name := range before {
		if _, has := after[name]; !has && !filter.Withheld(name) { // a command never saw what was withheld from it
			delete(exports.Set, name)
			exports.Unset = append(exports.Unset, name)
			unset = append(unset, name)
		}
	}
	its.shell.exports = exports
	slices.Sort(set)
	slices.Sort(unset)
	return set, unset
}
