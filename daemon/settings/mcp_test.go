package settings_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/daemon/settings"
)

// servers returns the servers with whether they may be started.
func servers(s *settings.Settings) string {
	var out []string
	for _, m := range s.MCPServers {
		word := map[bool]string{true: "may", false: "may not"}[m.Approved]
		out = append(out, fmt.Sprintf("%s %s %s", m.Name, word, m.Command+m.URL))
	}
	return strings.Join(out, "; ")
}

// What the lines do not show: the values of variables, and numbers.
func TestServerValues(t *testing.T) {
	t.Setenv("TOOLD_TEST_TOKEN", "secret")
	t.Setenv("TOOLD_TEST_EMPTY", "")
	h := newHouse(t)
	h.write("home/settings.json", `{"mcpServers": {
		"a": {"command": "${TOOLD_TEST_TOKEN}x", "args": ["-${TOOLD_TEST_NONE:-a b}", "${TOOLD_TEST_EMPTY:-c}", "$TOOLD_TEST_TOKEN", "${TOOLD_TEST_EMPTY}"],
			"env": {"Z": "${TOOLD_TEST_TOKEN}", "A": "1"}, "timeout": 90000, "cacheTtl": "15m", "idleTimeout": 0, "alwaysLoad": true, "shared": true},
		"c": {"command": "bin/${TOOLD_TEST_NONE:-c}", "idleTimeout": "1h"}, "d": {"command": "~/d", "idleTimeout": 1500},
		"b": {"type": "streamable-http", "url": "http://${TOOLD_TEST_NONE:-127.0.0.1}:8080/", "headers": {"X-Token": "${TOOLD_TEST_TOKEN}"}, "timeout": "5s", "sandbox": false}}}`)
	got := h.load("w")
	if len(got.MCPServers) != 4 || len(got.Warnings) > 0 {
		t.Fatalf("%+v, %q; want four servers", got.MCPServers, got.WarningTexts())
	}
	a, b := got.MCPServers[0], got.MCPServers[1]
	switch {
	case got.MCPServers[2].Command != h.path("home/bin/c") || got.MCPServers[3].Command != h.path("home/d"):
		t.Errorf("%q and %q", got.MCPServers[2].Command, got.MCPServers[3].Command)
	case a.IdleTimeout >= 0 || b.IdleTimeout != 0 || got.MCPServers[2].IdleTimeout != time.Hour || got.MCPServers[3].IdleTimeout != 1500*time.Millisecond:
		t.Errorf("idle timeouts: %+v", got.MCPServers)
	case a.Command != "secretx" || !slices.Equal(a.Args, []string{"-a b", "c", "$TOOLD_TEST_TOKEN", ""}) || !slices.Equal(a.Env, []string{"A=1", "Z=secret"}):
		t.Errorf("%q %q %q: the variables have other values", a.Command, a.Args, a.Env)
	case a.Transport != "stdio" || a.Timeout != 90*time.Second || a.CacheTTL != 15*time.Minute || !a.AlwaysLoad || !a.Shared || a.Confined || !a.Approved || a.Workspace != "":
		t.Errorf("%+v", a)
	case b.Transport != "http" || b.URL != "http://127.0.0.1:8080/" || !maps.Equal(b.Headers, map[string]string{"X-Token": "secret"}) || b.Timeout != 5*time.Second:
		t.Errorf("%+v", b)
	}
	for _, line := range got.Lines() {
		if strings.Contains(line.Value, "secret") {
			t.Errorf("%q is shown to everybody", line.Value)
		}
	}
}

// A server of a .mcp.json is approved by its whole entry, in a workspace that is trusted.
func TestApproval(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "one", "env": {"A": "1", "B": "2"}}}}`)
	check := func(when, want string) {
		t.Helper()
		if got := servers(h.load("w")); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	approve := func() {
		t.Helper()
		m := h.load("w").MCPServers[0]
		if err := h.store.ApproveServer(m.Workspace, m.Name, m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	check("at first", "")
	h.trust("w")
	check("trusted", "db may not one")
	approve()
	check("answered", "db may one")
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"env": {"B": "2", "A": "0", "A": "1"},
		"command": "one"}}}`)
	check("laid out otherwise", "db may one")
	if h.standing("w") != "trusted" {
		t.Errorf("the workspace is %s", h.standing("w"))
	}
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "one", "env": {"A": "1", "B": "3"}}}}`)
	check("one letter changed", "db may not one")
	approve()
	h.trust("w")
	check("answered and trusted again", "db may one")
	h.write("w/.mcp.json", `{"mcpServers": `)
	check("broken", "db may one")
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "one", "env": {"A": "1", "B": "3"}}}}`)
	h.write("w/.toold/settings.local.json", `{"disabledMcpjsonServers": ["db"]}`)
	check("switched off by nobody's word", "")
	os.Remove(h.path("w/.toold/settings.local.json"))
	if err := h.store.Distrust(h.path("w")); err != nil {
		t.Fatal(err)
	}
	h.trust("w")
	check("forgotten and trusted", "db may not one")
}

// A server of a session's own settings gets no variable of the daemon's, runs in the sandbox, and is approved by its whole
// entry: by an answer, or by the user who has the same.
func TestSessionServers(t *testing.T) {
	t.Setenv("TOOLD_TEST_TOKEN", "secret")
	h := newHouse(t)
	h.write("home/settings.json", `{"mcpServers": {"same": {"command": "x", "args": ["${TOOLD_TEST_TOKEN}"]}, "other": {"command": "user's"}}}`)
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "w-db"}}}`)
	scope := settings.Scope{Roots: []string{h.path("w")}, Trusted: true, Session: `{"enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["mine"], "mcpServers": {
		"mine": {"command": "${TOOLD_TEST_TOKEN:-x}", "args": ["${TOOLD_TEST_TOKEN}"], "env": {"A": "${TOOLD_TEST_TOKEN}"}, "sandbox": false},
		"web": {"url": "http://x.test/${TOOLD_TEST_TOKEN}", "headers": {"A": "${TOOLD_TEST_TOKEN}"}},
		"db": {"command": "s-db"}, "other": {"command": "y"}, "same": {"args": ["${TOOLD_TEST_TOKEN}"], "command": "x"}}}`}
	got := h.store.Load(scope)
	want := "db may not s-db; db may w-db; mine may not ${TOOLD_TEST_TOKEN:-x}; other may not y; other may user's; same may x; web may not http://x.test/${TOOLD_TEST_TOKEN}"
	if servers(got) != want {
		t.Errorf("%q, want %q", servers(got), want)
	}
	for _, m := range got.MCPServers {
		if text := fmt.Sprintf("%+v", m); strings.Contains(text, "secret") || m.Origin.File == settings.SessionText && (!m.Confined || m.Written.References != nil) {
			t.Error(text)
		}
		if m.Command != "s-db" {
			continue
		}
		if err := h.store.ApproveServer(scope.Roots[0], m.Approval, m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if warnings := strings.Join(got.WarningTexts(), "\n"); strings.Count(warnings, "the session's own settings get none") != 3 || !strings.Contains(warnings, "mcpServers.mine.sandbox false") {
		t.Errorf("warnings:\n%s", warnings)
	}
	if got := servers(h.store.Load(scope)); !strings.HasPrefix(got, "db may s-db; mine") {
		t.Errorf("answered: %q", got)
	}
	scope.Session = ""
	if got := servers(h.store.Load(scope)); !strings.HasPrefix(got, "db may not w-db") {
		t.Errorf("an answer about the session's server has approved the workspace's: %q", got)
	}
}

// What is written is what a person is shown: the names of what holds secrets, and no value.
func TestWritten(t *testing.T) {
	t.Setenv("TOOLD_TEST_TOKEN", "secret")
	h := newHouse(t)
	h.write("w/.mcp.json", `{"mcpServers": {
		"a": {"command": "${TOOLD_TEST_A:-run}", "args": ["-k", "${TOOLD_TEST_TOKEN}"], "env": {"Z": "literal ${TOOLD_TEST_B}", "A": "1"}},
		"b": {"url": "http://u:p@x.test/${TOOLD_TEST_TOKEN}?k=v", "headers": {"X-B": "${TOOLD_TEST_C} ${TOOLD_TEST_TOKEN}", "X-A": "literal"}}}}`)
	got := h.store.Load(settings.Scope{Roots: []string{h.path("w")}, Trusted: true}).MCPServers
	want := []settings.Written{
		{Command: []string{"${TOOLD_TEST_A:-run}", "-k", "${TOOLD_TEST_TOKEN}"}, Variables: []string{"A", "Z"}, References: []string{"TOOLD_TEST_A", "TOOLD_TEST_B", "TOOLD_TEST_TOKEN"}},
		{URL: "http://...@x.test/${TOOLD_TEST_TOKEN}?...", Headers: []string{"X-A", "X-B"}, References: []string{"TOOLD_TEST_C", "TOOLD_TEST_TOKEN"}},
	}
	for i, w := range want {
		if diff := cmp.Diff(w, got[i].Written); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRateSubjects: tools, whole servers and hosts.
func TestRateSubjects(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", `{"limits": {"rate": {"Bash": "1/s", "mcp__a__*": "2/s", "mcp__b": "3/s", "mcp__c__get_all": "4/s", "API.example.com.": "5/s",
		"mcp__*": "1/s", "mcp__d*": "1/s", "mcp__e__get_*": "1/s", "mcp__f__": "1/s", "mcp__": "1/s", "mcp___g": "1/s", "*": "1/s"}}}`)
	got := h.load("w")
	var subjects []string
	for _, r := range got.Rates {
		subjects = append(subjects, r.Subject)
	}
	if diff := cmp.Diff([]string{"Bash", "api.example.com", "mcp__a", "mcp__b", "mcp__c__get_all"}, subjects); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(strings.Join(got.WarningTexts(), "\n"), "not the name of a tool, mcp__server, mcp__server__*"); n != 7 {
		t.Errorf("%d of 7 are refused: %q", n, got.WarningTexts())
	}
}

// What is approved by its name is so as long as the file is as it was trusted.
func TestApprovalByName(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", `{"enabledMcpjsonServers": ["db"], "mcpServers": {"db": {"command": "user's"}}}`)
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "one"}}}`)
	check := func(when, want string) {
		t.Helper()
		if got := servers(h.load("w")); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("at first", "db may user's")
	h.trust("w")
	check("trusted", "db may one")
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "two"}}}`)
	check("changed", "db may not two; db may user's")
	if _, err := h.store.Remember(h.path("w"), settings.Local, 0, "Bash(rm *)"); err != nil {
		t.Fatal(err)
	}
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "one"}}}`)
	check("as it was, and a rule remembered", "db may one")
	shown := h.load("w")
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "three"}}}`)
	if _, err := h.store.Trust(h.path("w"), shown); err == nil || !strings.Contains(err.Error(), ".mcp.json changed") {
		t.Errorf("trusted with a file that was not shown: %v", err)
	}
	h.write("w/.mcp.json", "junk")
	if _, err := h.trusting("w"); err != nil {
		t.Errorf("a .mcp.json that is junk keeps the workspace from being trusted: %v", err)
	}
}

// An answer of one process is not lost to what another one writes.
func TestApproveSideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.mcp.json", `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}}}`)
	h.trust("w")
	found := h.load("w").MCPServers
	done := make(chan error, len(found))
	for _, m := range found {
		go func() { done <- h.open().ApproveServer(h.path("w"), m.Name, m.Digest) }()
	}
	for range found {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := servers(h.load("w")); got != "a may x; b may x; c may x" {
		t.Error(got)
	}
	if err := h.store.ApproveServer(h.path("nowhere"), "a", "x"); err == nil {
		t.Error("a workspace that is not there")
	}
}

// FuzzServersFile: no bytes of a .mcp.json make Load panic or fail, and nothing that a workspace says runs unconfined or unasked.
func FuzzServersFile(f *testing.F) {
	for _, text := range []string{
		"", "{}", "[]", "null", `{"mcpServers": null}`, `{"mcpServers": {"a": {"command": "x", "sandbox": false, "args": ["${A:-b}", "${A", "$${A}"]}}}`,
		`{"mcpServers": {"a": {"url": "http://x", "headers": {"A": "b"}}, "A": {"type": "sse", "url": "http://[::1]:1/${}"}}}`,
		`{"mcpServers": {"a b": {"command": "x"}, "a.b": {"command": "x"}}, "enableAllProjectMcpServers": true, "inputs": []}`,
	} {
		f.Add(text)
	}
	if err := os.Setenv("A", "secret"); err != nil { // other processes do the fuzzing
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.Unsetenv("A") })
	f.Fuzz(func(t *testing.T, text string) {
		h := newHouse(t)
		h.write("w/.mcp.json", text)
		got := h.store.Load(settings.Scope{Roots: []string{h.path("w")}, Trusted: true})
		for _, m := range got.MCPServers {
			switch {
			case m.Approved || !m.Confined || m.Workspace != h.path("w") || len(m.Digest) != 64:
				t.Errorf("%q gives %+v", text, m)
			case m.Transport == "stdio" && (m.Command == "" || m.URL != ""), m.Transport != "stdio" && (m.URL == "" || m.Command != ""):
				t.Errorf("%q gives %+v", text, m)
			}
		}
		for _, m := range h.store.Load(settings.Scope{Roots: []string{h.path("w")}, Session: text}).MCPServers {
			if m.Approved || !m.Confined || m.Written.References != nil || slices.Contains(m.Args, "secret") || m.Command == "secret" {
				t.Errorf("as a session's, %q gives %+v", text, m)
			}
		}
		if len(got.Broken) > 0 || len(got.Rules)+len(got.Programs)+len(got.Env) > 0 || got.Hooks.All() != nil {
			t.Errorf("%q: more than servers is in force, or the daemon would not start: %v", text, got.Broken)
		}
	})
}
