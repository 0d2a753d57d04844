package settings_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if got := h.load("w"); got.Limits != settings.Default() || len(got.Warnings)+len(got.Broken) > 0 {
		t.Errorf("without files %+v, want the defaults and no warnings", got)
	}
	h.write("home/settings.json", `{"limits": {"drain": "250ms", "session_idle": 60, "open_calls": 5, "detached_question": 0, "held_connection": 7, "held_call": "2m", "idle_exit": "1h", "mcp_idle": "3m",
		"message_bytes": 2000000, "output_bytes": 3000000, "session_output_bytes": 9000000, "principal_output_bytes": 19000000, "all_output_bytes": 99000000, "sessions": 4, "max_running_calls": 6,
		"journal_session_bytes": 70000, "journal_bytes": 8000000, "journal_age": "72h",
		"session_buffer_bytes": 1, "principal_buffer_bytes": 2, "all_buffer_bytes": 3, "session_option_bytes": 4, "principal_option_bytes": 5,
		"all_option_bytes": 6, "session_tool_bytes": 7, "principal_tool_bytes": 8, "all_tool_bytes": 9,
		"checkpoint_bytes": 0, "checkpoint_age": "24h", "search_bytes": 10, "host_running_calls": 3, "host_wait": "2m", "host_quick": "5s", "host_memory_reserve": 11}, "caches": {"unusedDays": 7}, "journal": {"sync": "normal"}}`)
	want := settings.Limits{
		MaxRunningCalls: 6, OpenCalls: 5, Sessions: 4, MessageBytes: 2000000, OutputBytes: 3000000, SessionOutput: 9000000, PrincipalOutput: 19000000, AllOutput: 99000000,
		Drain: 250 * time.Millisecond, DetachedQuestion: 0, HeldConnection: 7 * time.Second, HeldCall: 2 * time.Minute, Idle: settings.IdleLimits{Session: time.Minute, Exit: time.Hour, MCP: 3 * time.Minute},
		JournalSession: 70000, JournalBytes: 8000000, JournalAge: 72 * time.Hour,
		Buffers: settings.HeldBytes{Session: 1, Principal: 2, All: 3}, Options: settings.HeldBytes{Session: 4, Principal: 5, All: 6},
		ToolDefinitions: settings.HeldBytes{Session: 7, Principal: 8, All: 9},
		CheckpointBytes: 0, CheckpointAge: 24 * time.Hour, SearchBytes: 10, CacheDays: 7,
		Host: settings.HostLimits{RunningCalls: 3, Wait: 2 * time.Minute, Quick: 5 * time.Second, MemoryReserve: 11},
	}
	if got := h.load("w"); got.Limits != want || !got.Unsynced || len(got.Warnings) > 0 {
		t.Errorf("got %+v, unsynced %v, %q, want %+v, unsynced", got.Limits, got.Unsynced, got.WarningTexts(), want)
	}
}

// TestJournalSync: the administrator's and the user's word count, and sense alone.
func TestJournalSync(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file, text string
		unsynced   bool
		warnings   int
	}{
		{"home/settings.json", `{"journal": {"sync": "full"}}`, false, 0},
		{"etc/settings.json", `{"journal": {"sync": "normal"}}`, true, 0},
		{"home/settings.json", `{"journal": {"sync": "never", "snyc": "full"}}`, false, 2},
		{"w/.toold/settings.json", `{"journal": {"sync": "normal"}}`, false, 1},
	} {
		h := newHouse(t)
		h.write(test.file, test.text)
		if got := h.load("w"); got.Unsynced != test.unsynced || len(got.Warnings) != test.warnings {
			t.Errorf("%s in %s: unsynced %v, %q; want %v and %d warnings", test.text, test.file, got.Unsynced, got.WarningTexts(), test.unsynced, test.warnings)
		}
	}
}

// What the lines do not show.
func TestValues(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("etc/settings.json", `{"permissions": {"deny": ["Bash(rm *)"]},
		"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": "http://x.test", "headers": {"A": "b"}, "allowedEnvVars": ["X", "Y"]}]}]}}`)
	h.write("home/settings.json", `{"httpHookAllowedEnvVars": ["Y"], "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "args": []}]}]}}`)
	h.write("w/.toold/settings.json", `{"permissions": {"deny": ["Bash(mv *)"]}, "env": {"A": "b"}}`)
	got := h.load("w")
	for i, want := range []permission.Origin{
		{File: h.path("etc/settings.json"), Line: 1, Base: h.path("etc"), Managed: true},
		{File: h.path("w/.toold/settings.json"), Line: 1, Base: h.path("w")},
	} {
		if got.Rules[i].Origin != want {
			t.Errorf("origin %+v, want %+v", got.Rules[i].Origin, want)
		}
	}
	hooks := got.Hooks.All()
	if hook := hooks[0]; hook.Headers["A"] != "b" || !slices.Equal(hook.AllowedEnvVars, []string{"Y"}) || !hook.Block {
		t.Errorf("%+v, want the header and the variable Y alone, and that it blocks", hook)
	}
	if hook := hooks[1]; hook.Args == nil || hook.Block || hook.Timeout != 0 || hook.Origin.Base != h.path("home") {
		t.Errorf("%+v, want a program without arguments that does not block", hook)
	}
	if !slices.Equal(got.Untrusted, []string{h.path("w")}) {
		t.Errorf("untrusted %q, want w", got.Untrusted)
	}
	if got.AllowedHTTPHookURLs != nil || got.PublicDirectories != nil || got.Mode != nil {
		t.Errorf("%+v, want nil for what no file sets", got)
	}
	h.write("home/settings.json", `{"allowedHttpHookUrls": [], "permissions": {"publicDirectories": []}}`)
	if got := h.load("w"); got.AllowedHTTPHookURLs == nil || got.PublicDirectories == nil {
		t.Error("lists without entries look like none")
	}
}

func TestDefaultSources(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("XDG_CONFIG_HOME", "/home/u/c")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	want := settings.Sources{
		ManagedDir: "/etc/toold", User: "/home/u/c/toold/settings.json", TrustFile: "/home/u/c/toold/trust.json", Home: "/home/u", ClaudeDir: "/home/u/.claude",
	}
	if got := settings.DefaultSources("/home/u/c/toold/settings.json"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "/else")
	relative := settings.DefaultSources("x.json")
	if !filepath.IsAbs(relative.User) || filepath.Dir(relative.User) != filepath.Dir(relative.TrustFile) || relative.ClaudeDir != "/else" {
		t.Errorf("got %+v, want absolute paths beside each other, and /else", relative)
	}
	if none := settings.DefaultSources(""); none.User != "" || none.TrustFile != "" {
		t.Errorf("got %+v, want no file of the user's", none)
	}
}

// TestOtherNames: a key counts under its other name too, unless the file has a value under the first one.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	for text, warnings := range map[string]int{
		`{"disableBypassPermissionsMode": "disable"}`:                                                                      0,
		`{"permissions": {"disableBypassPermissionsMode": "disable"}}`:                                                     0,
		`{"permissions": {"disableBypassPermissionsMode": "disable"}, "disableBypassPermissionsMode": "disable"}`:          1,
		`{"disableBypassPermissionsMode": "disable", "permissions": {"disableBypassPermissionsMode": true}}`:               1,
		`{"disableBypassPermissionsMode": "disable", "sandbox.required": false, "permissions.disableAutoMode": "disable"}`: 2,
	} {
		h := newHouse(t)
		h.write("home/settings.json", text)
		if got := h.load("w"); got.BypassDisabled == nil || got.Sandbox.Optional != nil || len(got.Warnings) != warnings {
			t.Errorf("%s: disabled at %v, optional at %v, %q; want %d warnings", text, got.BypassDisabled, got.Sandbox.Optional, got.WarningTexts(), warnings)
		}
	}
}
