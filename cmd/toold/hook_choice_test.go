package main

// Which hooks run: matchers, rules, trust, and the calls that no hook learns of. Also hooks that are an address.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// choosy are settings whose hooks each report a name of their own.
func choosy(t *testing.T, event string, hooks []choice) string {
	t.Helper()
	var groups []string
	for _, c := range hooks {
		command := fmt.Sprintf(`echo '%s' >"$CLAUDE_PROJECT_DIR"/ear`, c.name)
		text, err := json.Marshal(map[string]any{
			"matcher": c.matcher, "hooks": []map[string]string{{"type": "command", "command": command, "if": c.rule}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.rule == "" {
			text = []byte(strings.Replace(string(text), `,"if":""`, "", 1))
		}
		groups = append(groups, string(text))
	}
	return fmt.Sprintf(`{"hooks": {%q: [%s]}}`, event, strings.Join(groups, ", "))
}

type choice struct{ name, matcher, rule string }

var choices = []choice{
	{"empty", "", ""},
	{"star", "*", ""},
	{"exact", "Bash", ""},
	{"other case", "bash", ""},
	{"part of a name", "Bas", ""},
	{"list", "Edit|Write", ""},
	{"list with commas", "Glob, LS", ""},
	{"expression", "^Ba", ""},
	{"unanchored", "a.h", ""},
	{"alternatives", "(Gl|Gr)(ob|ep)", ""},
	{"rule for rm", "Bash", "Bash(rm *)"},
	{"rule for pwd", "", "Bash(pwd)"},
	{"rule for paths", "Edit|Write|Read", "Edit(*.go)"},
}

// TestMatchers: for each call the hooks that are for it, and no other.
func TestMatchers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "choices", nil)
	put(t, filepath.Join(root, ".toold", "settings.json"), choosy(t, "PreToolUse", choices))
	e := listen(t, root)
	c := h.attach(t, in(root, trusted()))
	bash := []string{"empty", "exact", "expression", "star", "unanchored"}
	for _, x := range []struct {
		tool, input string
		want        []string
	}{
		{"Bash", `{"command":"ls"}`, bash},
		{"Bash", `{"command":"ls && pwd"}`, []string{"empty", "exact", "expression", "rule for pwd", "star", "unanchored"}},
		{"Bash", `{"command":"sudo rm x"}`, []string{"empty", "exact", "expression", "rule for rm", "star", "unanchored"}},
		{"Bash", `{"command":"ls <<E"}`, []string{"empty", "exact", "expression", "rule for pwd", "rule for rm", "star", "unanchored"}}, // it does not parse
		{"Glob", `{"pattern":"*.go"}`, []string{"alternatives", "empty", "list with commas", "star"}},
		{"LS", `{"path":"."}`, []string{"empty", "list with commas", "star"}},
		{"Write", fmt.Sprintf(`{"file_path":"%s/a.go","content":""}`, root), []string{"empty", "list", "rule for paths", "star"}},
		{"Write", fmt.Sprintf(`{"file_path":"%s/a.txt","content":""}`, root), []string{"empty", "list", "star"}},
	} {
		c.use("", x.tool, x.input)
		c.finish("", no)
		same(t, x.tool+" "+x.input, e.all(), x.want...)
	}
}

// TestSessionMatchers: for what a session goes through, a matcher is about how that came.
func TestSessionMatchers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "moods", nil)
	put(t, filepath.Join(root, ".toold", "settings.json"), choosy(t, "Notification", []choice{
		{"prompt", "permission_prompt", ""}, {"idle", "idle_prompt", ""}, {"never, for its rule", "", "Bash(touch *)"},
	}))
	e := listen(t, root)
	c := h.attach(t, in(root, trusted()))
	c.bash("u", "touch made")
	if line := e.line(); line != "prompt" { // while the question is open
		t.Errorf("the hook %q runs", line)
	}
	c.finish("u", no)
	same(t, "what else ran", e.all())
	holds(t, "the warnings", strings.Join(c.attached.GetWarnings(), "\n"), "is not about one call: it never runs")
}

// TestNoHooks: nothing runs for what is not a call, for a call that was never reached, nor in a workspace that is not trusted.
func TestNoHooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	files := everyEvent(`"deny": ["LS"], "allow": ["Bash(touch *)"]`)

	t.Run("unreached", func(t *testing.T) {
		t.Parallel()
		root := h.room(t, "unreached", files)
		h.trust(t, root)
		e := listen(t, root)
		if err := syscall.Mkfifo(filepath.Join(root, "gate"), 0o600); err != nil { // the first call waits here for its sibling
			t.Fatal(err)
		}
		c := h.attach(t, in(root, nil))
		c.use("unknown", "Nope", `{}`)
		c.use("hidden", "LS", `{}`)
		c.use("invalid", "Bash", `{"comand":"ls"}`)
		c.use("broken", "Bash", `{`)
		c.use("first", "Bash", `{"command":"touch first; cat gate; ls none"}`)
		c.use("sibling", "Write", fmt.Sprintf(`{"file_path":"%s/never","content":""}`, root))
		c.until("sibling accepted")
		c.until("first started")
		if err := os.WriteFile(filepath.Join(root, "gate"), []byte("go on\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.finish("first", no)
		var got []string
		for _, event := range c.heard {
			if r := event.GetToolResult(); r != nil {
				got = append(got, r.GetToolUseId()+" "+outcome(r))
			}
		}
		slices.Sort(got)
		same(t, "the results", got, "broken INVALID invalid_input", "first ERROR exit_code", "hidden INVALID unknown_tool",
			"invalid INVALID invalid_input", "sibling ABORTED aborted", "unknown INVALID unknown_tool")
		for x := range e.until("PostToolBatch") {
			if id := x.Told["tool_use_id"]; id != nil && id != "first" {
				t.Errorf("told %v", x.Told)
			}
		}
	})

	t.Run("untrusted", func(t *testing.T) {
		t.Parallel()
		root := h.room(t, "untrusted", files)
		e := listen(t, root)
		c := h.attach(t, in(root, nil))
		c.bash("u", "touch made")
		c.finish("u", no)
		c.run("v", "pwd")
		same(t, "what ran", e.all())
		holds(t, "the warnings", strings.Join(c.attached.GetWarnings(), "\n"), root+" is not trusted", "allow rules and hooks")
	})
}

// A server is where HTTP hooks are sent to.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // path, headers that count, body
}

// serveHooks answers each path as its name says.
func serveHooks(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, fmt.Sprintf("%s %s %s|%s %s", r.Method, r.URL.Path, r.Header.Get("X-Said"), r.Header.Get("Content-Type"), body))
		s.mu.Unlock()
		switch r.URL.Path {
		case "/deny":
			_, _ = io.WriteString(w, `{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "the server is against it"}}`)
		case "/allow":
			_, _ = io.WriteString(w, `{"decision": "approve"}`)
		case "/text":
			_, _ = io.WriteString(w, `approve`)
		case "/redirect":
			http.Redirect(w, r, "/deny", http.StatusTemporaryRedirect)
		case "/hang":
			<-r.Context().Done()
		default:
			http.Error(w, `{"decision": "block"}`, http.StatusTeapot)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestHTTPHooks: an address gets the same event as a program, and what is not a valid answer is a failure like any other.
func TestHTTPHooks(t *testing.T) {
	t.Parallel()
	s := serveHooks(t)
	h := newHouse(t, map[string]string{
		"config/toold/settings.json": fmt.Sprintf(`{"allowedHttpHookUrls": ["%s/*"], "permissions": {"allow": ["Bash(touch *)"]}}`, s.URL),
	})
	other := serveHooks(t)
	ok, denied := []string{"u started", "u OK"}, []string{"u DENIED hook_denied"}
	failing := []string{"notice hook_failed", "u started", "u OK"}
	for _, x := range []struct {
		name, url string
		want      []string
		says      string
	}{
		{"deny", s.URL + "/deny", denied, "the server is against it"},
		{"allow", s.URL + "/allow", ok, ""},
		{"text", s.URL + "/text", failing, "not a JSON object"},
		{"status", s.URL + "/teapot", failing, "the status 418"},
		{"redirect", s.URL + "/redirect", failing, "which is not followed"},
		{"hang", s.URL + "/hang", failing, "did not end within its limit of 300ms"},
		{"elsewhere", other.URL + "/deny", failing, "allowedHttpHookUrls"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			root := h.room(t, "http-"+x.name, map[string]string{".toold/settings.json": fmt.Sprintf(`{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
{"type": "http", "url": %q, "headers": {"X-Said": "$SAID $HOME"}, "allowedEnvVars": ["SAID"], "timeout": 0.3}]}]}}`, x.url)})
			a := in(root, trusted())
			a.Env = map[string]string{"PATH": "/bin:/usr/bin", "SAID": "hello", "HOME": root}
			c := h.attach(t, a)
			result := c.run("u", "touch made")
			same(t, "the story", story(c.heard), append(append([]string{"attached", "u accepted"}, x.want...), "turn ended")...)
			holds(t, "what is said", textIn(result)+strings.Join(c.notices("hook_failed"), "\n"), x.says)
			if x.want[0] == "notice hook_failed" {
				holds(t, "the notice", strings.Join(c.notices("hook_failed"), "\n"), root+"/.toold/settings.json:2")
			}
			if x.name == "allow" {
				s.mu.Lock()
				defer s.mu.Unlock()
				holds(t, "what was asked", strings.Join(s.asked, "\n"), fmt.Sprintf(
					`POST /allow hello $HOME|application/json {"session_id":"http-allow","cwd":%q,"transcript_path":"","permission_mode":"default",`+
						`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch made"},"tool_use_id":"u"}`, root))
			}
		})
	}
	t.Cleanup(func() {
		if len(other.asked) > 0 {
			t.Errorf("asked what was not allowed: %q", other.asked)
		}
	})
}
