package settings

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/nearest"
)

// A key is a row of the table of keys. To add a setting, add a row and use the field that it sets.
type key struct {
	name    string // as a path into a settings file
	scope   scope
	setting // how it is read, merged and printed
}

// label returns what the key is called where a workspace's does not count.
func (k *key) label() string {
	name, permissions := strings.CutPrefix(k.name, "permissions.")
	switch {
	case strings.HasPrefix(name, "tools."):
		return keyTools
	case permissions && name == permission.AllowList.String():
		return "allow rules"
	}
	return name
}

// An alias is another name of the key that it names, whose scope and setting it has.
type alias string

func (alias) read(*reader, *key, member) any { panic("BUG: an alias is read as the key that it names") }

func (alias) merge(*merger, *key) {}

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

// table returns the keys, in the order in which settings are merged and printed, with the fields of s that they set, and sets
// those of numbers and durations to what they are without settings.
func table(s *Settings) []key {
	return slices.Concat(permissionKeys(s), sandboxKeys(&s.Sandbox), serverKeys(s), limitKeys(&s.Limits), otherKeys(s))
}

func permissionKeys(s *Settings) []key {
	return []key{
		{"$schema", everywhere, ignored{}},
		{"permissions.defaultMode", trusted, modeOf(&s.Mode)},
		{"permissions." + keyBypass, trusted, choice(func(v value[string]) { s.BypassDisabled = &v.origin }, "disable")},
		{keyBypass, scope{}, alias("permissions." + keyBypass)},
		{"permissions.disableAutoMode", everywhere, ignored{}}, // there is no such mode
		{"permissions.deny", everywhere, rules(permission.DenyList, &s.Rules)},
		{"permissions.ask", everywhere, rules(permission.AskList, &s.Rules)},
		{"permissions.allow", trusted, rules(permission.AllowList, &s.Rules)},
		{"permissions.additionalDirectories", trusted, directories(&s.AdditionalDirectories)},
		{"permissions.publicDirectories", trusted, directories(&s.PublicDirectories)},

		{keyHooks, trusted, hooks{}},
		{"allowedHttpHookUrls", allHooks, hookURLs(&s.AllowedHTTPHookURLs)},
	}
}

func sandboxKeys(b *Sandbox) []key {
	return []key{
		{"sandbox.enabled", everywhere, boundary{true, false, nil, &b.Disabled}},
		{"sandbox.required", everywhere, boundary{true, false, nil, &b.Optional}},
		{"sandbox.failIfUnavailable", scope{}, alias("sandbox.required")}, // Claude Code's name of it
		{"sandbox.autoAllowBashIfSandboxed", everywhere, boundary{false, true, nil, &b.AutoAllow}},
		{"sandbox.allowUnsandboxedCommands", everywhere, boundary{false, false, nil, &b.NoEscape}},
		{"sandbox.sharedTmp", everywhere, boundary{false, true, []level{session}, &b.SharedTmp}},
		{"sandbox.network.allowAllUnixSockets", everywhere, boundary{false, true, nil, &b.AllUnixSockets}},
		{"sandbox.network.forwardPorts", everywhere, forwarding{&b.ForwardPorts}},
		{keyDomainsOnly, managedOnly, boundary{true, true, nil, &b.ManagedDomainsOnly}},
		{"sandbox.network.allowLocalBinding", everywhere, ignored{flag: true}}, // a call has a loopback of its own
		{"sandbox.limits.processes", everywhere, processLimit{1, &b.Limits.Processes, &b.Ceilings.Processes}},
		{"sandbox.limits.memoryMB", everywhere, processLimit{1 << 20, &b.Limits.Memory, &b.Ceilings.Memory}},
		{"sandbox.limits.fileSizeMB", everywhere, processLimit{1 << 20, &b.Limits.FileSize, &b.Ceilings.FileSize}},
		{"sandbox.limits.openFiles", everywhere, processLimit{1, &b.Limits.OpenFiles, &b.Ceilings.OpenFiles}},
		{"sandbox.excludedCommands", loosening, excludedCommands(&b.Excluded)},
		{"sandbox.filesystem.allowWrite", loosening, confined(&b.AllowWrite)},
		{"sandbox.filesystem.denyWrite", everywhere, confined(&b.DenyWrite)},
		{"sandbox.filesystem.denyRead", everywhere, confined(&b.DenyRead)},
		{"sandbox.credentials.files", everywhere, confined(&b.CredentialFiles)},
		{"sandbox.filesystem.allowRead", loosening, opened(b)},
		{"sandbox.network.allowedDomains", loosening, allowedDomains(&b.AllowedDomains)},
		{"sandbox.network.deniedDomains", everywhere, texts(parseDomain, &b.DeniedDomains)},
		{"sandbox.network.allowUnixSockets", loosening, confined(&b.UnixSockets)},
		{"sandbox.credentials.envVars", everywhere, texts(parseCredential, &b.CredentialVars)},
		{"sandbox.environment.keep", loosening, texts(parseKept, &b.KeepVars)},
	}
}

func serverKeys(s *Settings) []key {
	return []key{
		{keyServers, trusted, servers(&s.MCPServers)},
		{keyLanguages, trusted, languages(&s.LSP)},
		{keyPrograms, trusted, programs(&s.Programs)},
		{keyTools, scope{}, alias(keyPrograms)},
		{"env", trusted, environment(&s.Env)},
	}
}

func limitKeys(l *Limits) []key {
	return []key{
		{"limits.max_running_calls", daemonWide, count(1, &l.MaxRunningCalls, max(16, 4*runtime.NumCPU()))},
		{"limits.host_running_calls", daemonWide, count(1, &l.Host.RunningCalls, runtime.GOMAXPROCS(0))},
		{"limits.host_wait", daemonWide, span(&l.Host.Wait, time.Minute)},
		{"limits.host_quick", daemonWide, span(&l.Host.Quick, 2*time.Second)},
		{"limits.host_memory_reserve", daemonWide, count(0, &l.Host.MemoryReserve, 0)},
		{"limits.open_calls", daemonWide, count(1, &l.OpenCalls, 1000)},
		{"limits.sessions", daemonWide, count(1, &l.Sessions, 256)},
		{"limits.message_bytes", daemonWide, count(1<<20, &l.MessageBytes, 16<<20)},
		{"limits.output_bytes", trusted, lowered(count(1, &l.OutputBytes, 1<<30))},
		{"limits.session_output_bytes", daemonWide, count(1<<20, &l.SessionOutput, 4<<30)},
		{"limits.principal_output_bytes", daemonWide, count(1<<20, &l.PrincipalOutput, 8<<30)},
		{"limits.all_output_bytes", daemonWide, count(1<<20, &l.AllOutput, 16<<30)},
		{"limits.drain", daemonWide, span(&l.Drain, 10*time.Second)},
		{"limits.session_idle", daemonWide, span(&l.Idle.Session, 24*time.Hour)},
		{"limits.detached_question", daemonWide, span(&l.DetachedQuestion, time.Hour)},
		{"limits.held_connection", daemonWide, span(&l.HeldConnection, time.Minute)},
		{"limits.held_call", daemonWide, span(&l.HeldCall, 5*time.Minute)},
		{"limits.journal_session_bytes", daemonWide, count(64<<10, &l.JournalSession, 64<<20)},
		{"limits.journal_bytes", daemonWide, count(1<<20, &l.JournalBytes, 1<<30)},
		{"limits.journal_age", daemonWide, span(&l.JournalAge, 30*24*time.Hour)},
		{"limits.session_buffer_bytes", daemonWide, count(1, &l.Buffers.Session, 64<<20)},
		{"limits.principal_buffer_bytes", daemonWide, count(1, &l.Buffers.Principal, 128<<20)},
		{"limits.all_buffer_bytes", daemonWide, count(1, &l.Buffers.All, 256<<20)},
		{"limits.session_option_bytes", daemonWide, count(1, &l.Options.Session, 2<<20)},
		{"limits.principal_option_bytes", daemonWide, count(1, &l.Options.Principal, 64<<20)},
		{"limits.all_option_bytes", daemonWide, count(1, &l.Options.All, 128<<20)},
		{"limits.session_tool_bytes", daemonWide, count(1, &l.ToolDefinitions.Session, 1<<20)},
		{"limits.principal_tool_bytes", daemonWide, count(1, &l.ToolDefinitions.Principal, 16<<20)},
		{"limits.all_tool_bytes", daemonWide, count(1, &l.ToolDefinitions.All, 32<<20)},
		{"limits.checkpoint_bytes", daemonWide, count(0, &l.CheckpointBytes, 1<<30)},
		{"limits.checkpoint_age", daemonWide, span(&l.CheckpointAge, 30*24*time.Hour)},
		{"limits.search_bytes", daemonWide, count(0, &l.SearchBytes, 64<<20)},
		{"caches.unusedDays", daemonWide, integer(1, 3650, &l.CacheDays, 30)},
		{"limits.idle_exit", daemonWide, span(&l.Idle.Exit, 30*time.Minute)},
		{"limits.mcp_idle", daemonWide, span(&l.Idle.MCP, 10*time.Minute)},
	}
}

func otherKeys(s *Settings) []key {
	return []key{
		{keyRate, daemonWide, rates(&s.Rates)},

		{keyNoHooks, allHooks, flag(nil)},
		{keyManagedHooks, managedOnly, flag(nil)},
		{keyManagedRules, managedOnly, flag(nil)},
		{keyImport, tooldFile, flag(nil)},
		{keyHookVariables, allHooks, texts(nil, nil)},
		{"journal.sync", daemonWide, choice(func(v value[string]) { s.Unsynced = v.is == "normal" }, "full", "normal")},
		{"traces.endpoint", daemonWide, collector(&s.Traces.Endpoint)},
		{"traces.content", daemonWide, flag(func(on bool) { s.Traces.Content = on })},
		{"redact", redacting, redactions(&s.Redactions)},
		{"redactHooks", redacting, flag(func(on bool) { s.HooksToldAll = !on })},
		{keyWebSearch, usersFile, webSearch(&s.WebSearch)},
		{keyEnableAll, approving, flag(nil)},
		{keyEnabled, approving, texts(nil, nil)},
		{keyDisabled, everywhere, texts(nil, nil)},
		{"diagnosticsAfterEdit", trusted, flag(func(on bool) { s.DiagnosticsAfterEdit = on })},
		{"tools.preset", trusted, presetOf(&s.Preset)},
		{"tools.deferAbove", trusted, integer(0, math.MaxInt, &s.DeferAbove, 30)},
		{"tools.deferred", trusted, texts(parseDeferred, &s.Deferred)},
		{"deferred", scope{}, alias("tools.deferred")}, // beside tools as a list
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
	if of, is := k.setting.(alias); is {
		r.aliases = append(r.aliases, func() { r.aliased(string(of), k.name, m) })
		return
	}
	r.value(k, k.name, m)
}

func (r *reader) aliased(of, name string, m member) {
	if r.facts.values[of] != nil {
		r.idle(m.line, name, of+" means the same, and the file has it too")
		return
	}
	r.value(&keys[slices.IndexFunc(keys, func(k key) bool { return k.name == of })], name, m)
}

// value reads the value of a key, which the file calls name.
func (r *reader) value(k *key, name string, m member) {
	if !k.scope.counts(r.place) {
		if !m.value.isEmpty() {
			r.idle(m.line, name, strings.ReplaceAll(k.scope.elsewhere, "%s", levelNames[r.place.level]))
		}
		return
	}
	if v := k.read(r, &key{name, k.scope, k.setting}, m); v != nil {
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
