// What the calls of a session are judged by, and what they find when they begin: settings,
// remembered rules, hooks and mode, as they are at this moment. Nothing here changes a session or
// is recorded, so a session that is only imagined, as Explain does, has a judge like any other.
// What follows from all that is the permission package's.

package daemon

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/settings"
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
	changed   func(before, now *policySnapshot)
	snapshot  atomic.Pointer[policySnapshot] // as it was last worked out; nil: not yet
	following atomic.Pointer[scopedSettings] // nil: settings were not asked for yet
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
	ports     func(*background.Task) []tools.Port // nil: no task is there
	languages *language.Set
}

// A basis is the part of a session's state that its calls are judged by. What it refers to is not
// changed.
type basis struct {
	options    *tooldv1.Options
	remembered []remembered
	dynamic    *dynamicTools
	shell      shell // only its directory, variables and cursors
}

// basis returns what the session's calls are judged by.
func (its *state) basis() basis {
	from := &its.shell
	return basis{
		options: its.options, remembered: slices.Clip(its.questions.remembered), dynamic: its.toolset.dynamic,
		shell: shell{dir: from.dir, vars: from.vars, cursors: from.cursors},
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

// policy returns what follows from settings and remembered rules. It looks at the settings files
// each time, so that a saved change is in force for whatever comes next.
func (j *judge) policy() *policySnapshot {
	b := j.basis()
	caching, owner, listening := b.shell.vars.caching, j.meta.owner(), len(j.daemon.endpoints.listening())
	now := j.settings(b.options)
	if st := j.snapshot.Load(); st != nil && st.whole && st.settings == now && st.remembered == len(b.remembered) &&
		st.listening == listening && maps.Equal(st.caching, caching) {
		return st
	}
	confining := j.daemon.confining(now, j.places.Roots(), owner, caching)
	extra := workspace.Places{Lent: j.daemon.sessions.lends(j.name, owner, j.places.Roots()), Readable: convert.Each(now.AdditionalDirectories, textOf)}
	if j.outputs != "" {
		extra.Readable = append(extra.Readable, j.outputs)
		confining.Shown = append(confining.Shown, j.outputs)
	}
	// What settings and roots open to processes or hide from them is the machine's, whatever is the
	// session's own around it.
	extra.Opened = slices.Concat(j.places.Roots(), extra.Readable, confining.Write, confining.Keep, confining.Shown, confining.Hidden)
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

// latest returns the snapshot that a call's rights were last taken from, or a newer one, without a
// look at the settings files.
func (j *judge) latest() *policySnapshot {
	if st := j.snapshot.Load(); st != nil {
		return st
	}
	return j.policy()
}

// A scopedSettings is the settings of the session's scope under some options.
type scopedSettings struct {
	*settings.Followed
	options *tooldv1.Options
}

// settings returns the settings that are in force now.
func (j *judge) settings(options *tooldv1.Options) *settings.Settings {
	f := j.following.Load()
	if f == nil || f.options != options {
		f = &scopedSettings{j.daemon.settings.Follow(scopeOf(j.meta.Roots, options)), options}
		j.following.Store(f)
	}
	return f.Load()
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
	var diagnosed func(real string) bool
	if st.settings.DiagnosticsAfterEdit {
		diagnosed = j.languages.Runs
	}
	return pipeline.Rights{
		UserFile: j.daemon.user.advised, Modes: modesOpen(b.options, st.settings, j.daemon.user.settings),
		Policy:    permission.Policy{Rules: st.rules, Mode: mode, Escape: st.escape},
		Confining: st.confining, Anchors: st.anchors, Places: st.places, ReadState: j.readState, Hooks: st.hooks,
		Diagnosed: diagnosed,
		Runner: hook.Runner{
			Processes: j.daemon.runner, ProjectDir: j.meta.Roots[0], Dir: st.places.Disk(b.shell.dir),
			Environ:     b.shell.vars.under(st.settings).base, // no call steers what judges it
			AllowedURLs: st.settings.AllowedHTTPHookURLs,
			Filter:      st.settings.Sandbox.Filter(), Patterns: patterns, ManagedPatterns: managed, Plain: st.settings.HooksToldAll,
		},
		Common: hook.Input{Session: j.name, Dir: b.shell.dir, Mode: mode.String()},
	}
}

// Peek returns the session's state as it is now, for one call, and what the call is judged by.
func (j *judge) Peek(c *pipeline.Call) (*tools.Env, pipeline.Rights) {
	st := j.policy()
	b := j.basis()
	env := &tools.Env{
		CallID: outputName(j.name, c.Key), Environ: b.shell.vars.under(st.settings).calls, Cursors: b.shell.cursors,
		Tasks: j.tasks, Ports: j.ports, MaxChars: c.Tool.Spec().MaxResultChars, Languages: j.languages, Principal: string(j.meta.owner()),
		Index: j.daemon.reclaimer.searches.Of(string(j.meta.owner())), Memory: j.daemon.sessions.memories.Of(string(j.meta.owner()), j.meta.Roots[0]),
		Reach: tools.Reach{Allowed: st.confining.Network.Allowed, Denied: st.confining.Network.Denied},
	}
	if env.MaxChars == 0 {
		env.MaxChars = pipeline.DefaultMaxChars
	}
	env.Dir, env.Gone = tools.WorkingDir(b.shell.dir, j.meta.Roots, st.places.Disk)
	return env, j.rights(b, st)
}

// policy is what follows from one state of the settings and of the rules that the session
// remembers. It is made again when either has changed.
type policySnapshot struct {
	settings   *settings.Settings
	remembered int // how many rules
	rules      *permission.Rules
	anchors    permission.Anchors
	hooks      *hook.Set
	places     *workspace.Workspace
	listening  int               // on how many sockets, which are no process's business
	caching    map[string]string // the client's variables that say where caches are
	confining  pipeline.Confining
	escape     permission.Escape
	programs   []tools.Tool
	warnings   []settings.Warning
	whole      bool // nothing of it could not be made
}

// remembered is a rule that an answer has brought, for this session alone.
type remembered struct {
	List permission.List `json:"list"`
	Rule string          `json:"rule"`
}

// rememberedOrigin is where such a rule stands, for people.
const rememberedOrigin = "an answer in this session"

// scopeOf is whom settings are asked for.
func scopeOf(roots []string, o *tooldv1.Options) settings.Scope {
	return settings.Scope{Roots: roots, Session: o.GetSettingsJson(), Trusted: o.GetTrusted()}
}

// newPolicySnapshot combines settings and remembered rules. extra are the places beside the roots.
func (d *Daemon) newPolicySnapshot(now *settings.Settings, kept []remembered, base *workspace.Workspace, extra workspace.Places) *policySnapshot {
	st := &policySnapshot{settings: now, remembered: len(kept), warnings: slices.Clone(now.Warnings)}
	others, public := convert.Each(now.AdditionalDirectories, textOf), convert.Each(now.PublicDirectories, textOf)
	if now.PublicDirectories != nil && public == nil {
		public = []string{} // none
	}
	extra.Public, extra.Hidden = public, []string{d.StateDir}
	places, err := base.Admit(extra)
	rules := slices.Clone(now.Rules)
	if err != nil { // the state directory is gone: what belongs to the daemon cannot be told from the rest any more
		nothing, _ := permission.ParseRule(permission.DenyList, "*", permission.Origin{File: "toold, because " + err.Error()})
		places, rules = base, append(rules, nothing)
	}
	st.places = places
	st.anchors = permission.Anchors{Home: d.user.home, Roots: base.Roots(), Others: others, Guarded: d.user.guarded, Programs: d.programPlaces(base.Roots())}
	st.anchors.Leads = leads(base, st.anchors, rules)
	for _, r := range kept {
		if rule, err := permission.ParseRule(r.List, r.Rule, permission.Origin{File: rememberedOrigin, Base: base.Roots()[0]}); err == nil {
			rules = append(rules, rule)
		}
	}
	st.rules, st.escape = permission.Compile(rules, st.anchors), escapeOf(now, st.anchors)
	warn := func(code settings.WarningCode, at permission.Origin, format string, args ...any) {
		st.warnings = append(st.warnings, settings.Warning{Code: code, File: at.File, Line: at.Line, Text: at.String() + ": " + fmt.Sprintf(format, args...)})
	}
	st.makePrograms()
	known := append(d.toolNames(), convert.Each(st.programs, nameOf)...)
	for _, rule := range rules {
		if rule.IsUnknownTool(known) {
			warn(settings.UnknownTool, rule.Origin, "the rule %q is about a tool that this daemon does not know", rule.Text)
			st.warnings[len(st.warnings)-1].Tool = rule.Tool()
		}
	}
	if now.Mode != nil && now.Mode.Mode == permission.BypassPermissions {
		if at := now.BypassDisabled; at != nil {
			warn(settings.Wrong, now.Mode.Origin, "the mode bypassPermissions has no effect: it is switched off in %s", at)
		} else {
			st.warnings = append(st.warnings, settings.Warning{Code: settings.NoSandbox, File: now.Mode.Origin.File, Line: now.Mode.Origin.Line, Text: d.bypassWarning()})
		}
	}
	if at := now.Sandbox.Disabled; at != nil {
		warn(settings.NoSandbox, *at, "sandbox.enabled switches the sandbox off: processes can do what the daemon's user can")
	}
	for _, socket := range now.Sandbox.UnixSockets {
		if now.Sandbox.AllUnixSockets == nil && runtime.GOOS == "linux" {
			warn(settings.Wrong, socket.Origin, "sandbox.network.allowUnixSockets: a single socket (%s) cannot be opened on Linux; none is. allowAllUnixSockets opens all.", socket.Text)
		}
	}
	st.hooks = now.Hooks
	return st
}

// leads returns where links lead, as they are now, from all that path rules are relative to and all
// that is guarded.
func leads(places *workspace.Workspace, a permission.Anchors, rules []permission.Rule) map[string]string {
	names := slices.Concat([]string{a.Home}, a.Others, a.Guarded, a.Programs)
	for i := range rules {
		names = append(names, rules[i].Origin.Base)
	}
	found := map[string]string{}
	for _, name := range names {
		if _, known := found[name]; known || name == "" {
			continue
		}
		if to, err := places.Resolve("/", name); err == nil {
			found[name] = to.Real
		}
	}
	return found
}

// modeOf is the permission mode that is in force: what the client has chosen, else what the
// settings say.
func modeOf(o *tooldv1.Options, now *settings.Settings) permission.Mode {
	mode, chosen := convert.ModeIn(o)
	if !chosen && now.Mode != nil {
		mode = now.Mode.Mode
	}
	if mode == permission.BypassPermissions && now.BypassDisabled != nil {
		return permission.Default
	}
	return mode
}

// modesOpen returns the modes that a change of the user's settings file could choose for a session:
// none, if the client or a file that counts for more has chosen one.
func modesOpen(o *tooldv1.Options, now *settings.Settings, userFile string) (modes []permission.Mode) {
	if _, chosen := convert.ModeIn(o); chosen || now.Mode != nil && now.Mode.Origin.File != userFile {
		return nil
	}
	if modeOf(o, now) != permission.Default {
		modes = append(modes, permission.Default)
	}
	if now.BypassDisabled == nil {
		modes = append(modes, permission.BypassPermissions)
	}
	return modes
}

// checkSettings refuses settings of the session that cannot be read, and a mode that the
// administrator or the user has switched off.
func checkSettings(now *settings.Settings, o *tooldv1.Options) error {
	for _, err := range now.Broken {
		if broken, is := errors.AsType[*settings.FileError](err); is && broken.File == settings.SessionText {
			return apierror.Invalidf("invalid_settings", "options.settings_json", "%v.", err)
		}
	}
	if at := now.BypassDisabled; at != nil && o.GetPermissionMode() == tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS {
		return apierror.Preconditionf("bypass_disabled", "options.permission_mode", "The mode bypassPermissions is switched off by disableBypassPermissionsMode in %s. Choose another permission_mode.", at)
	}
	return nil
}
