package daemon

// What a session's calls are judged by: settings, remembered rules, hooks and mode, as they are at this moment. What
// follows from them is the permission package's.

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/workspace"
)

// standing is what follows from one state of the settings and of the rules that the session remembers. It is made anew
// when either has changed.
type standing struct {
	settings   *settings.Settings
	remembered int // how many rules
	rules      *permission.Rules
	anchors    permission.Anchors
	hooks      *hook.Set
	places     *workspace.Workspace
	warnings   []string
}

// remembered is a rule that an answer has brought, for this session alone.
type remembered struct {
	List permission.List `json:"list"`
	Rule string          `json:"rule"`
}

// rememberedOrigin is where such a rule stands, for people.
const rememberedOrigin = "an answer in this session"

// stand gives the session's standing. It looks at the settings files each time, so that a saved change is in force for
// whatever comes next. mu is not held.
func (s *session) stand() *standing {
	s.mu.Lock()
	scope := scopeOf(s.meta.Roots, s.options)
	kept := slices.Clone(s.remembered)
	s.mu.Unlock()
	now := s.daemon.settings.Load(scope)
	if st := s.standing.Load(); st != nil && st.settings == now && st.remembered == len(kept) {
		return st
	}
	readable := []string{}
	if s.outputs != nil {
		readable = append(readable, s.outputs.Path())
	}
	st := s.daemon.standing(now, kept, s.places, readable)
	s.standing.Store(st)
	return st
}

// scopeOf is whom settings are asked for.
func scopeOf(roots []string, o *tooldv1.Options) settings.Scope {
	return settings.Scope{Roots: roots, Session: o.GetSettingsJson(), Trusted: o.GetTrusted()}
}

// known gives the standing as it was when somebody last looked at the files.
func (s *session) known() *standing {
	if st := s.standing.Load(); st != nil {
		return st
	}
	return s.stand()
}

// standing works out what settings and remembered rules come to.
func (d *Daemon) standing(now *settings.Settings, kept []remembered, base *workspace.Workspace, readable []string) *standing {
	st := &standing{settings: now, remembered: len(kept), warnings: slices.Clone(now.Warnings)}
	var extra, public []string
	for _, dir := range now.AdditionalDirectories {
		extra = append(extra, dir.Path)
	}
	for _, dir := range now.PublicDirectories {
		public = append(public, dir.Path)
	}
	places, err := base.Admit(workspace.Places{Public: public, Readable: append(readable, extra...), Hidden: []string{d.StateDir}})
	if err != nil { // the state directory is gone: nothing can be told apart from it any more
		st.warnings = append(st.warnings, err.Error())
		places = base
	}
	st.places = places
	st.anchors = permission.Anchors{Home: d.home, Roots: base.Roots(), Others: extra}
	rules := slices.Clone(now.Rules)
	for _, r := range kept {
		if rule, err := permission.ParseRule(r.List, r.Rule, permission.Origin{File: rememberedOrigin, Base: base.Roots()[0]}); err == nil {
			rules = append(rules, rule)
		}
	}
	st.rules = permission.Compile(rules, st.anchors)
	for _, rule := range rules {
		if rule.Stranger(d.toolNames()) {
			st.warnings = append(st.warnings, fmt.Sprintf("%s: the rule %q is about a tool that this daemon does not know", rule.Origin, rule.Text))
		}
	}
	if now.Mode != nil && now.Mode.Mode == permission.BypassPermissions && now.BypassDisabled == nil {
		st.warnings = append(st.warnings, d.bypassWarning())
	}
	st.hooks, _ = hook.Compile(now.Hooks) // what is wrong with them the settings warn of
	return st
}

// modeOf is the permission mode that is in force: what the client has chosen, else what the settings say.
func modeOf(o *tooldv1.Options, now *settings.Settings) permission.Mode {
	mode := permission.Default
	switch {
	case o.GetPermissionMode() != tooldv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED:
		mode = permission.Mode(o.GetPermissionMode() - 1)
	case now.Mode != nil:
		mode = now.Mode.Mode
	}
	if mode == permission.BypassPermissions && now.BypassDisabled != nil {
		return permission.Default
	}
	return mode
}

// checkSettings refuses settings of the session that cannot be read, and a mode that the administrator or the user has
// switched off.
func checkSettings(now *settings.Settings, o *tooldv1.Options) error {
	for _, err := range now.Broken {
		var broken *settings.FileError
		if errors.As(err, &broken) && broken.File == settings.SessionText {
			return refuse(codes.InvalidArgument, "invalid_settings", "%v.", err).at("options.settings_json")
		}
	}
	if at := now.BypassDisabled; at != nil && o.GetPermissionMode() == tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS {
		return refuse(codes.FailedPrecondition, "bypass_disabled",
			"The mode bypassPermissions is switched off by disableBypassPermissionsMode in %s. Choose another permission_mode.", at).at("options.permission_mode")
	}
	return nil
}

// Rights is what calls are judged by now.
func (s *session) Rights(*pipeline.Call) pipeline.Rights {
	st := s.stand()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rights(st)
}

// rights puts a standing and the session's mode together. mu is held.
func (s *session) rights(st *standing) pipeline.Rights {
	mode := modeOf(s.options, st.settings)
	return pipeline.Rights{
		Policy: permission.Policy{Rules: st.rules, Mode: mode}, Anchors: st.anchors, Hooks: st.hooks,
		Runner: hook.Runner{
			Processes: s.daemon.runner, ProjectDir: s.meta.Roots[0], Dir: s.dir, Environ: s.environ(),
			AllowedURLs: st.settings.AllowedHTTPHookURLs,
		},
		Common: hook.Input{Session: s.name, Dir: s.dir, Mode: mode.String()},
	}
}

// rejudge settles the open questions that rules, settings or mode decide by now. mu is held.
func (s *session) rejudge(st *standing) {
	policy := s.rights(st).Policy
	for _, a := range s.asked {
		if a.done {
			continue
		}
		switch v := permission.Decide(a.question.Facts, policy); v.Decision {
		case permission.Allow:
			s.settle(a, "it is allowed now")
		case permission.Deny:
			s.withdraw(a, pipeline.Denial(v), "it is denied now")
		}
	}
}
