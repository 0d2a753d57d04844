// A session's options: checked, merged, kept. What they mean is known to those who read them.

package daemon

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/pool"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/text/nearest"
)

// setOptions merges options that checkOptions has passed. They are in force from the next turn,
// permission_mode and settings at once.
func (s *session) setOptions(change *tooldv1.Options) error {
	if change == nil {
		return nil
	}
	var had, wanted *tooldv1.Options
	s.update(func(its *state) { had, wanted = its.options, merged(its.options, change) })
	before := s.daemon.settings.Load(scopeOf(s.meta.Roots, had))
	now := s.daemon.settings.Load(scopeOf(s.meta.Roots, wanted))
	if err := checkSettings(now, change); err != nil {
		return err
	}
	if at := now.SessionHooks; at != nil && s.meta.owner().Remote() {
		return apierror.Preconditionf("hooks_not_remote", "options.settings_json", "%s names hooks, which run as the daemon's user and outside the sandbox. Over TCP a session brings none.", at)
	}
	if err := s.takeOptions(change, before, now); err != nil {
		return err
	}
	if had.GetSettingsJson() != wanted.GetSettingsJson() {
		s.daemon.settings.Forget(scopeOf(s.meta.Roots, had))
	}
	s.asker.rejudge(s.judge.policy())
	return nil
}

// takeOptions keeps options and records when they change the mode.
func (s *session) takeOptions(change *tooldv1.Options, before, now *settings.Settings) error {
	return view(s, func(its *state) error {
		after := merged(its.options, change)
		if proto.Equal(after, its.options) {
			return nil
		}
		kept, err := proto.Marshal(after)
		if err != nil {
			return err
		}
		if over := s.account.Hold(quota.Options, optionBytes(after, its.shell.vars.client)); over != nil {
			return quotaRefusal(over, "options")
		}
		state := journal.Put{Key: keyOptions, Value: kept}
		had, mode := modeOf(its.options, before), modeOf(after, now)
		its.options = after
		if mode == had {
			its.ledger.keep(state)
		} else {
			its.ledger.append(entry(nil, pipeline.Changed{Mode: &mode}, state))
			if mode == permission.BypassPermissions {
				its.ledger.append(entry(nil, pipeline.Noticed{Code: "bypass_mode", Message: s.daemon.bypassWarning()}))
			}
		}
		return nil
	})
}

// settingsChanged lets clients know what a change of the settings files has brought.
func (s *session) settingsChanged(before, now *policySnapshot) {
	for _, warning := range now.warnings {
		if !slices.Contains(before.warnings, warning) {
			s.notify(nil, pipeline.Noticed{Code: "settings_warning", Message: warning.Text})
		}
	}
	s.goUnlessStopping(func(context.Context) {
		s.tools.reconcileServers()
		s.asker.askApproval()
		s.tools.announceTools()
		s.ports.review()
	})
	s.update(func(its *state) {
		if mode := modeOf(its.options, now.settings); mode != modeOf(its.options, before.settings) {
			its.ledger.append(entry(nil, pipeline.Changed{Mode: &mode}))
		}
	})
	s.asker.rejudge(now)
}

// bypassWarning returns what the mode bypassPermissions leaves between a call and the machine.
func (d *Daemon) bypassWarning() string {
	text := "The permission mode bypassPermissions is on: calls run unasked, except where an ask rule or a critical command asks."
	if os.Geteuid() == 0 && !d.Node { // a container has no other user
		text += " The daemon runs as root."
	}
	if confinement, err := d.runner.Confinement(sandbox.Policy{Tier: sandbox.Full}); err != nil || confinement.Tier == sandbox.None {
		text += " Processes are not confined."
	}
	return text
}

// maxNamed is how many tools a client may name.
const maxNamed = 1000

// maxSettings is how many bytes the settings of a session may have. They are kept for as long as it
// is open.
const maxSettings = 256 << 10

// checkOptions refuses what makes no sense. others are tools beside the built-in
// ones that the client brings along.
func (d *Daemon) checkOptions(o *tooldv1.Options, others []string) error {
	invalid := func(field, format string, args ...any) error {
		return apierror.Invalidf("invalid_option", "options."+field, "options.%s %s.", field, fmt.Sprintf(format, args...))
	}
	switch {
	case o == nil:
		return nil
	case o.MaxConcurrency != nil && (o.GetMaxConcurrency() < 1 || o.GetMaxConcurrency() > scheduler.MaxConcurrency):
		return invalid("max_concurrency", "is %d, but must be 1 to %d", o.GetMaxConcurrency(), scheduler.MaxConcurrency)
	}
	if len(o.GetSettingsJson()) > maxSettings {
		return invalid("settings_json", "has %d bytes, and at most %d are taken", len(o.GetSettingsJson()), maxSettings)
	}
	if names := o.GetTools().GetNames(); len(names) > 0 {
		programs := d.settings.Load(settings.Scope{Session: o.GetSettingsJson()}).Programs
		others = append(others, convert.Each(programs, func(p settings.Program) string { return p.Name })...)
		if why := unfitNames(names, d.toolNames(), others); why != "" {
			return invalid("tools", "%s", why)
		}
	}
	var unknown error
	o.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if enum := field.Enum(); enum != nil && enum.Values().ByNumber(value.Enum()) == nil {
			unknown = invalid(string(field.Name()), "has the value %d, which this daemon does not know", value.Enum())
		}
		return unknown == nil
	})
	return unknown
}

// unfitNames returns what is wrong with a list of tools; empty: nothing. Of most names it is not
// known yet whether there will be such a tool: settings name some, servers and other clients bring
// more. others are those that are known. A built-in one that is misspelled is told apart from them
// by how near it is.
func unfitNames(names, builtIn, others []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("names %d tools, and at most %d are taken", len(names), maxNamed)
	}
	for _, name := range names {
		if !pool.IsName(name) {
			return fmt.Sprintf("names %q, which can be no tool: a name has at most 64 letters, digits, _ and -; all tools of an MCP server are mcp__server or mcp__server__*, and there are no other patterns", convert.Short(name))
		}
		if near := misspelled(name, builtIn); near != "" && !slices.Contains(others, name) {
			return fmt.Sprintf("names %q, and probably %s is meant", name, near)
		}
	}
	return ""
}

// misspelled returns the built-in tool that is meant by a name that differs in a letter or two;
// empty: none, or the name is one of theirs. A short name has too many neighbours to be taken for
// one of them.
func misspelled(name string, builtIn []string) (near string) {
	for _, known := range builtIn {
		if name == known {
			return ""
		}
		distance := nearest.Distance(name, known)
		swapped := distance == 2 && sameLetters(name, known)
		if distance == 0 || len(known) > 3 && (distance == 1 || swapped) || len(known) > 5 && distance == 2 {
			near = known
		}
	}
	return near
}

// sameLetters reports whether two words differ in the places of their letters alone.
func sameLetters(a, b string) bool {
	one, other := []byte(strings.ToLower(a)), []byte(strings.ToLower(b))
	slices.Sort(one)
	slices.Sort(other)
	return slices.Equal(one, other)
}

// merged returns base with every field that is set in change.
func merged(base, change *tooldv1.Options) *tooldv1.Options {
	into := proto.CloneOf(base)
	if change.GetTools() != nil {
		into.Tools = nil // a merge would append
	}
	proto.Merge(into, change)
	return into
}
