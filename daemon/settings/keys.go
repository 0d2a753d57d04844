package settings

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/nearest"
)

// A key is a row of the table of keys. To add a setting, add a row and use the field that it sets.
type key struct {
	name    string // as a path into a settings file
	scope   scope
	setting        // how it is read, merged and printed
	label   string // what it is called where a workspace's does not count; empty: its name
	alias   string // the key that it is another name of, whose scope and setting it has
}

// A setting is a kind of value.
type setting interface {
	// read returns the value of one file, and reports what is wrong with it. nil: there is none.
	read(r *reader, k *key, m member) any
	// merge sets the result to what the values of all files come to, and adds the lines that show it.
	merge(m *merger, k *key)
}

// A scope is whose files a key counts in.
type scope struct {
	levels    []level
	untrusted bool   // a workspace's counts although the workspace is not trusted
	unshared  bool   // of workspaces, only files that are not shared
	notClaude bool   // not in files of Claude Code's
	elsewhere string // why it has no effect in other files; %s: whose the file is
}

var (
	// trusted: every file's counts, a workspace's if it is trusted.
	trusted = scope{levels: []level{managed, session, workspace, user}}
	// everywhere: every file's counts, also in a workspace that is not trusted.
	everywhere  = scope{levels: []level{managed, session, workspace, user}, untrusted: true}
	managedOnly = scope{levels: []level{managed}, elsewhere: "it counts only in a managed file"}
	daemonWide  = scope{levels: []level{managed, user}, elsewhere: "it is the whole daemon's, which a %s does not set"}
	usersFile   = scope{levels: []level{managed, user}, elsewhere: "it counts only in the user's file and in a managed file"}
	tooldFile   = scope{levels: []level{managed, user}, notClaude: true, elsewhere: "it counts only in the user's toold file and in a managed file"}
	allHooks    = scope{levels: []level{managed, session, user}, elsewhere: "a workspace decides nothing about the hooks of others"}
	redacting   = scope{levels: []level{managed, session, user}, elsewhere: "a workspace could hide from hooks what they are to look at"}
	loosening   = scope{levels: []level{managed, session, user}, elsewhere: onlyStricter}
	approving   = scope{levels: []level{managed, session, workspace, user}, unshared: true, elsewhere: "what a workspace shares does not approve its own servers"}
)

// counts reports whether the key counts in a file, if the file's workspace is trusted.
func (s *scope) counts(p place) bool {
	shared := p.level == workspace && !strings.HasSuffix(p.file, ".local.json")
	return slices.Contains(s.levels, p.level) && !(s.unshared && shared) && !(s.notClaude && p.claude)
}

// The names of keys that are spoken of in several places.
const (
	keyBypass        = "disableBypassPermissionsMode"
	keyNoHooks       = "disableAllHooks"
	keyManagedHooks  = "allowManagedHooksOnly"
	keyManagedRules  = "allowManagedPermissionRulesOnly"
	keyHookVariables = "httpHookAllowedEnvVars"
	keyImport        = "importClaudeSettings"
	keyDomainsOnly   = "sandbox.network.allowManagedDomainsOnly"
	keyHooks         = "hooks"
	keyServers       = "mcpServers"
	keyEnableAll     = "enableAllProjectMcpServers"
	keyEnabled       = "enabledMcpjsonServers"
	keyDisabled      = "disabledMcpjsonServers"
	keyLanguages     = "lsp"
	keyTools         = "tools"
	keyPrograms      = "tools.programs"
	keyRate          = "limits.rate"
	keyWebSearch     = "webSearch"
)

// keys is the table for reading files.
var keys = table(new(Settings))

// table returns the keys, in the order in which settings are merged and printed, with the fields of s that they set.
func table(s *Settings) []key {
	return slices.Concat(permissionKeys(s), sandboxKeys(&s.Sandbox), serverKeys(s), limitKeys(&s.Limits), otherKeys(s))
}

func permissionKeys(s *Settings) []key {
	return []key{
		{name: "$schema", scope: everywhere, setting: ignored{}},
		{name: "permissions.defaultMode", scope: trusted, setting: modeOf(&s.Mode), label: "defaultMode"},
		{name: "permissions." + keyBypass, scope: trusted, label: keyBypass, setting: choice(func(v value[string]) { s.BypassDisabled = &v.origin }, "disable")},
		{name: keyBypass, alias: "permissions." + keyBypass},
		{name: "permissions.disableAutoMode", scope: everywhere, setting: ignored{}}, // there is no such mode
		{name: "permissions.deny", scope: everywhere, setting: rules(permission.DenyList, &s.Rules)},
		{name: "permissions.ask", scope: everywhere, setting: rules(permission.AskList, &s.Rules)},
		{name: "permissions.allow", scope: trusted, setting: rules(permission.AllowList, &s.Rules), label: "allow rules"},
		{name: "permissions.additionalDirectories", scope: trusted, label: "additionalDirectories", setting: directories(&s.AdditionalDirectories)},
		{name: "permissions.publicDirectories", scope: trusted, label: "publicDirectories", setting: directories(&s.PublicDirectories)},

		{name: keyHooks, scope: trusted, setting: hooks{}},
		{name: "allowedHttpHookUrls", scope: allHooks, setting: hookURLs(&s.AllowedHTTPHookURLs)},
	}
}

func sandboxKeys(b *Sandbox) []key {
	return []key{
		{name: "sandbox.enabled", scope: everywhere, setting: boundary{true, false, nil, &b.Disabled}},
		{name: "sandbox.required", scope: everywhere, setting: boundary{true, false, nil, &b.Optional}},
		{name: "sandbox.failIfUnavailable", alias: "sandbox.required"}, // Claude Code's name of it
		{name: "sandbox.autoAllowBashIfSandboxed", scope: everywhere, setting: boundary{false, true, nil, &b.AutoAllow}},
		{name: "sandbox.allowUnsandboxedCommands", scope: everywhere, setting: boundary{false, false, nil, &b.NoEscape}},
		{name: "sandbox.sharedTmp", scope: everywhere, setting: boundary{false, true, []level{session}, &b.SharedTmp}},
		{name: "sandbox.network.allowAllUnixSockets", scope: everywhere, setting: boundary{false, true, nil, &b.AllUnixSockets}},
		{name: keyDomainsOnly, scope: managedOnly, setting: boundary{true, true, nil, &b.ManagedDomainsOnly}},
		{name: "sandbox.network.allowLocalBinding", scope: everywhere, setting: ignored{flag: true}}, // a call has a loopback of its own
		{name: "sandbox.limits.processes", scope: everywhere, setting: processLimit{1, &b.Limits.Processes, &b.Ceilings.Processes}},
		{name: "sandbox.limits.memoryMB", scope: everywhere, setting: processLimit{1 << 20, &b.Limits.Memory, &b.Ceilings.Memory}},
		{name: "sandbox.limits.fileSizeMB", scope: everywhere, setting: processLimit{1 << 20, &b.Limits.FileSize, &b.Ceilings.FileSize}},
		{name: "sandbox.limits.openFiles", scope: everywhere, setting: processLimit{1, &b.Limits.OpenFiles, &b.Ceilings.OpenFiles}},
		{name: "sandbox.excludedCommands", scope: loosening, setting: excludedCommands(&b.Excluded)},
		{name: "sandbox.filesystem.allowWrite", scope: loosening, setting: confined(&b.AllowWrite)},
		{name: "sandbox.filesystem.denyWrite", scope: everywhere, setting: confined(&b.DenyWrite)},
		{name: "sandbox.filesystem.denyRead", scope: everywhere, setting: confined(&b.DenyRead)},
		{name: "sandbox.credentials.files", scope: everywhere, setting: confined(&b.CredentialFiles)},
		{name: "sandbox.filesystem.allowRead", scope: loosening, setting: opened(b)},
		{name: "sandbox.network.allowedDomains", scope: loosening, setting: allowedDomains(&b.AllowedDomains)},
		{name: "sandbox.network.deniedDomains", scope: everywhere, setting: names(parseDomain, &b.DeniedDomains)},
		{name: "sandbox.network.allowUnixSockets", scope: loosening, setting: confined(&b.UnixSockets)},
		{name: "sandbox.credentials.envVars", scope: everywhere, setting: names(parseCredential, &b.CredentialVars)},
		{name: "sandbox.environment.keep", scope: loosening, setting: names(parseKept, &b.KeepVars)},
	}
}

func serverKeys(s *Settings) []key {
	return []key{
		{name: keyServers, scope: trusted, setting: servers(&s.MCPServers)},
		{name: keyLanguages, scope: trusted, setting: languages(&s.LSP)},
		{name: keyPrograms, scope: trusted, setting: programs(&s.Programs), label: keyTools},
		{name: keyTools, alias: keyPrograms},
		{name: "env", scope: trusted, setting: environment(&s.Env)},
	}
}

func limitKeys(l *Limits) []key {
	return []key{
		{name: "limits.max_running_calls", scope: daemonWide, setting: count(1, &l.MaxRunningCalls)},
		{name: "limits.open_calls", scope: daemonWide, setting: count(1, &l.OpenCalls)},
		{name: "limits.sessions", scope: daemonWide, setting: count(1, &l.Sessions)},
		{name: "limits.message_bytes", scope: daemonWide, setting: count(1<<20, &l.MessageBytes)},
		{name: "limits.output_bytes", scope: trusted, setting: lowered(count(1, &l.OutputBytes))},
		{name: "limits.session_output_bytes", scope: daemonWide, setting: count(1<<20, &l.SessionOutput)},
		{name: "limits.all_output_bytes", scope: daemonWide, setting: count(1<<20, &l.AllOutput)},
		{name: "limits.drain", scope: daemonWide, setting: span(&l.Drain)},
		{name: "limits.session_idle", scope: daemonWide, setting: span(&l.SessionIdle)},
		{name: "limits.detached_question", scope: daemonWide, setting: span(&l.DetachedQuestion)},
		{name: "limits.journal_session_bytes", scope: daemonWide, setting: count(64<<10, &l.JournalSession)},
		{name: "limits.journal_bytes", scope: daemonWide, setting: count(1<<20, &l.JournalBytes)},
		{name: "limits.journal_age", scope: daemonWide, setting: span(&l.JournalAge)},
		{name: "limits.session_buffer_bytes", scope: daemonWide, setting: count(1, &l.Buffers.Session)},
		{name: "limits.principal_buffer_bytes", scope: daemonWide, setting: count(1, &l.Buffers.Principal)},
		{name: "limits.all_buffer_bytes", scope: daemonWide, setting: count(1, &l.Buffers.All)},
		{name: "limits.session_option_bytes", scope: daemonWide, setting: count(1, &l.Options.Session)},
		{name: "limits.principal_option_bytes", scope: daemonWide, setting: count(1, &l.Options.Principal)},
		{name: "limits.all_option_bytes", scope: daemonWide, setting: count(1, &l.Options.All)},
		{name: "limits.session_tool_bytes", scope: daemonWide, setting: count(1, &l.ToolDefinitions.Session)},
		{name: "limits.principal_tool_bytes", scope: daemonWide, setting: count(1, &l.ToolDefinitions.Principal)},
		{name: "limits.all_tool_bytes", scope: daemonWide, setting: count(1, &l.ToolDefinitions.All)},
		{name: "limits.checkpoint_bytes", scope: daemonWide, setting: count(0, &l.CheckpointBytes)},
		{name: "limits.checkpoint_age", scope: daemonWide, setting: span(&l.CheckpointAge)},
		{name: "limits.idle_exit", scope: daemonWide, setting: span(&l.IdleExit)},
	}
}

func otherKeys(s *Settings) []key {
	return []key{
		{name: keyRate, scope: daemonWide, setting: rates(&s.Rates)},

		{name: keyNoHooks, scope: allHooks, setting: flag(nil)},
		{name: keyManagedHooks, scope: managedOnly, setting: flag(nil)},
		{name: keyManagedRules, scope: managedOnly, setting: flag(nil)},
		{name: keyImport, scope: tooldFile, setting: flag(nil)},
		{name: keyHookVariables, scope: allHooks, setting: names(nil, nil)},
		{name: "journal.sync", scope: daemonWide, setting: choice(func(v value[string]) { s.Unsynced = v.is == "normal" }, "full", "normal")},
		{name: "caches.unusedDays", scope: daemonWide, setting: integer(1, 3650, &s.Limits.CacheDays)},
		{name: "redact", scope: redacting, setting: redactions(&s.Redactions)},
		{name: "redactHooks", scope: redacting, setting: flag(func(on bool) { s.HooksToldAll = !on })},
		{name: keyWebSearch, scope: usersFile, setting: webSearch(&s.WebSearch)},
		{name: keyEnableAll, scope: approving, setting: flag(nil)},
		{name: keyEnabled, scope: approving, setting: names(nil, nil)},
		{name: keyDisabled, scope: everywhere, setting: names(nil, nil)},
		{name: "diagnosticsAfterEdit", scope: trusted, setting: flag(func(on bool) { s.DiagnosticsAfterEdit = on })},
		{name: "tools.preset", scope: trusted, setting: presetOf(&s.Preset), label: keyTools},
		{name: "tools.deferAbove", scope: trusted, setting: integer(0, math.MaxInt, &s.DeferAbove), label: keyTools},
	}
}

// sections holds the names that mean something in each object that keys stand in, by the object's name with a dot behind it.
// A name without a key is that of an object in it.
var sections = func() map[string]map[string]*key {
	all := map[string]map[string]*key{}
	for i := range keys {
		within, rest := "", keys[i].name
		for more := true; more; {
			var name string
			name, rest, more = strings.Cut(rest, ".")
			if all[within] == nil {
				all[within] = map[string]*key{}
			}
			if !more {
				all[within][name] = &keys[i]
			} else if _, known := all[within][name]; !known {
				all[within][name] = nil
			}
			within += name + "."
		}
	}
	return all
}()

// section reads an object that keys stand in. name is the object's, with a dot behind it.
func (r *reader) section(name string, n *node) {
	for _, m := range r.members(n, name) {
		k, known := sections[name][m.key]
		inner := name + m.key + "."
		switch isSection := known && sections[inner] != nil; {
		case k != nil && (!isSection || m.value.kind != object):
			r.key(k, m)
		case isSection:
			r.section(inner, &m.value)
		default:
			r.unknown(m, name, slices.Collect(maps.Keys(sections[name])))
		}
	}
}

// key reads the value of a key, if the key counts in this file. That of an alias is read when the whole file has been.
func (r *reader) key(k *key, m member) {
	if k.alias != "" {
		r.aliases = append(r.aliases, func() { r.aliased(k, m) })
		return
	}
	r.value(k, k, m)
}

func (r *reader) aliased(k *key, m member) {
	if r.facts.values[k.alias] != nil {
		r.idle(m.line, k.name, k.alias+" means the same, and the file has it too")
		return
	}
	of := &keys[slices.IndexFunc(keys, func(o key) bool { return o.name == k.alias })]
	r.value(of, &key{name: k.name, scope: of.scope, setting: of.setting}, m)
}

// value reads the value of a key, which the file calls by the name of another one.
func (r *reader) value(k, as *key, m member) {
	if !k.scope.counts(r.place) {
		if !m.value.isEmpty() {
			r.idle(m.line, as.name, strings.ReplaceAll(k.scope.elsewhere, "%s", levelNames[r.place.level]))
		}
		return
	}
	if v := as.read(r, as, m); v != nil {
		r.facts.values[k.name] = v
	}
}

// meant returns the known name that was probably meant; empty: none is near.
func meant(word string, known []string) string {
	best, least := "", max(1, len(word)/4)+1
	for _, name := range slices.Sorted(slices.Values(known)) {
		if len(word) > 2*len(name) {
			continue // so that a huge word costs nothing
		}
		if d := nearest.Distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}
