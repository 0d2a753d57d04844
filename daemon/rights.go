// What a session's calls are judged by: settings, remembered rules, hooks and mode, as they are at this moment. What
// follows from them is the permission package's.

package daemon

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/toold/toold/daemon/convert"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
)

// policy is what follows from one state of the settings and of the rules that the session remembers. It is made again
// when either has changed.
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
	others, public := convert.Each(now.AdditionalDirectories, pathOf), convert.Each(now.PublicDirectories, pathOf)
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
			warn(settings.Wrong, socket.Origin, "sandbox.network.allowUnixSockets: a single socket (%s) cannot be opened on Linux; none is. allowAllUnixSockets opens all.", socket.Path)
		}
	}
	st.hooks = now.Hooks
	return st
}

// leads returns where links lead, as they are now, from all that path rules are relative to and all that is guarded.
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

// modeOf is the permission mode that is in force: what the client has chosen, else what the settings say.
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

// modesOpen returns the modes that a change of the user's settings file could choose for a session: none, if the client or a
// file that counts for more has chosen one.
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

// checkSettings refuses settings of the session that cannot be read, and a mode that the administrator or the user has
// switched off.
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
