// What the calls of a session are judged by, and what they find when they begin. Nothing here changes a session or is recorded,
// so a session that is only imagined, as Explain does, has a judge like any other.

package daemon

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/toold/toold/daemon/convert"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/fs/workspace"
)

// A judge is what a session's calls are judged by. It is safe for concurrent use.
type judge struct {
	scope
	// basis returns what counts of the session's state at present. It takes the session's lock.
	basis func() basis
	// changed is called after other settings or rules are in force than before.
	changed  func(before, now *policySnapshot)
	snapshot atomic.Pointer[policySnapshot] // as it was last worked out; nil: not yet
}

// A scope is the part of a judge that never changes.
type scope struct {
	daemon    *Daemon
	name      string // of the session
	meta      meta
	places    *workspace.Workspace // with the roots only; a policySnapshot has what settings add
	readState *workspace.ReadState // of what calls have seen of files
	outputs   string               // the folder that holds what calls have printed; empty: there is none
	temporary string               // the folder that holds the session's directories for temporary files
	tasks     *background.Set
	languages *language.Set
}

// A basis is the part of a session's state that its calls are judged by. What it refers to is not changed.
type basis struct {
	options    *tooldv1.Options
	remembered []remembered
	dynamic    *dynamicTools
	shell      shell // only its directory, environment, exports and cursors
}

// basis returns what the session's calls are judged by.
func (its *state) basis() basis {
	from := &its.shell
	return basis{
		options: its.options, remembered: slices.Clip(its.questions.remembered), dynamic: its.toolset.dynamic,
		shell: shell{dir: from.dir, env: from.env, exports: from.exports, cursors: from.cursors},
	}
}

// with returns a judge of the same session as it would be under other options.
func (j *judge) with(change *tooldv1.Options) *judge {
	b := j.basis()
	b.options = merged(b.options, change)
	return j.scope.judge(b)
}

// judge returns a judge of what does not change.
func (sc scope) judge(b basis) *judge {
	return &judge{scope: sc, basis: func() basis { return b }, changed: func(_, _ *policySnapshot) {}}
}

// policy returns what follows from settings and remembered rules. It looks at the settings files each time, so that a saved
// change is in force for whatever comes next.
func (j *judge) policy() *policySnapshot {
	b := j.basis()
	caching, owner, listening := cacheVariables(b.shell.env), j.meta.owner(), len(j.daemon.endpoints.listening())
	now := j.daemon.settings.Load(scopeOf(j.meta.Roots, b.options))
	if st := j.snapshot.Load(); st != nil && st.whole && st.settings == now && st.remembered == len(b.remembered) &&
		st.listening == listening && maps.Equal(st.caching, caching) {
		return st
	}
	confining := j.daemon.confining(now, j.places.Roots(), owner, caching)
	extra := workspace.Places{Lent: j.daemon.sessions.lends(j.name, owner, j.places.Roots()), Readable: convert.Each(now.AdditionalDirectories, pathOf)}
	if j.outputs != "" {
		extra.Readable = append(extra.Readable, j.outputs)
		confining.Shown = append(confining.Shown, j.outputs)
	}
	extra.Opened = openedTo(confining, j.places, extra.Readable)
	temporary, whole := j.temporaries(now, extra.Opened)
	extra.Temporary = temporary
	st := j.daemon.newPolicySnapshot(now, b.remembered, j.places, extra)
	st.whole, st.listening, st.confining, st.caching = whole, listening, confining, caching
	st.confining.Temps = st.places.Temporary()
	st.confining.Session = j.name
	st.confining.Network.Allowed = append(st.confining.Network.Allowed, reachedBy(b.remembered, now)...)
	if before := j.snapshot.Swap(st); before != nil {
		j.changed(before, st)
	}
	return st
}

// Rights returns what calls are judged by now.
func (j *judge) Rights(*pipeline.Call) pipeline.Rights {
	st := j.policy() // first: what changes while settings are loaded counts
	return j.rights(j.basis(), st)
}

// rights returns what a policy snapshot and the session's mode come to.
func (j *judge) rights(b basis, st *policySnapshot) pipeline.Rights {
	mode := modeOf(b.options, st.settings)
	patterns, managed := st.settings.Patterns()
	return pipeline.Rights{
		UserFile: j.daemon.user.settings, Modes: modesOpen(b.options, st.settings, j.daemon.user.settings),
		Policy:    permission.Policy{Rules: st.rules, Mode: mode, Escape: st.escape},
		Confining: st.confining, Anchors: st.anchors, Places: st.places, ReadState: j.readState, Hooks: st.hooks,
		Runner: hook.Runner{
			Processes: j.daemon.runner, ProjectDir: j.meta.Roots[0], Dir: st.places.Disk(b.shell.dir),
			Environ:     listed(b.shell.baseEnviron(st)), // no call steers what judges it
			AllowedURLs: st.settings.AllowedHTTPHookURLs,
			Filter:      st.settings.Sandbox.Filter(), Patterns: patterns, ManagedPatterns: managed, Plain: st.settings.HooksToldAll,
		},
		Common: hook.Input{Session: j.name, Dir: b.shell.dir, Mode: mode.String()},
	}
}

// Peek returns the session's state as it is now, for one call.
func (j *judge) Peek(c *pipeline.Call) *tools.Env {
	st := j.policy()
	b := j.basis()
	env := &tools.Env{
		CallID: outputName(j.name, c.Key), Environ: b.shell.environ(st), Cursors: b.shell.cursors,
		Tasks: j.tasks, MaxChars: c.Tool.Spec().MaxResultChars, Languages: j.languages, Principal: string(j.meta.owner()),
		Reach: tools.Reach{Allowed: st.confining.Network.Allowed, Denied: st.confining.Network.Denied},
	}
	if env.MaxChars == 0 {
		env.MaxChars = pipeline.DefaultMaxChars
	}
	env.Dir, env.Gone = tools.WorkingDir(b.shell.dir, j.meta.Roots, st.places.Disk)
	return env
}
