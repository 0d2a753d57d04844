package main

// Each event that runs hooks: when it does, and what hooks are told.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An ear is a pipe in a workspace that hooks write lines to.
type ear struct {
	t     *testing.T
	pipe  *os.File
	lines *bufio.Reader
}

// report is a script that passes on what a hook is told.
const report = `told=$(cat); printf '{"claude": "%s", "toold": "%s", "told": %s}\n' "$CLAUDE_PROJECT_DIR" "$TOOLD_PROJECT_DIR" "$told" >"$TOOLD_PROJECT_DIR"/ear`

// listen makes the pipe.
func listen(t *testing.T, root string) *ear {
	t.Helper()
	path := filepath.Join(root, "ear")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0) // so that neither side waits for the other
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	if err := pipe.SetReadDeadline(time.Now().Add(hangGuard)); err != nil {
		t.Fatal(err)
	}
	return &ear{t, pipe, bufio.NewReader(pipe)}
}

// line waits for the next line.
func (e *ear) line() string {
	e.t.Helper()
	line, err := e.lines.ReadString('\n')
	if err != nil {
		e.t.Fatalf("nothing is told: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// all returns the lines that were written so far, sorted.
func (e *ear) all() (lines []string) {
	e.t.Helper()
	const end = "that is all"
	if _, err := e.pipe.WriteString(end + "\n"); err != nil {
		e.t.Fatal(err)
	}
	for {
		line := e.line()
		if line == end {
			slices.Sort(lines)
			return lines
		}
		lines = append(lines, line)
	}
}

// A tale is one event as a hook heard of it.
type tale struct {
	Claude, Toold string
	Told          map[string]any
}

// tale waits for the next event.
func (e *ear) tale() (x tale) {
	e.t.Helper()
	if line := e.line(); json.Unmarshal([]byte(line), &x) != nil {
		e.t.Fatalf("told %q, which is no JSON", line)
	}
	return x
}

// tales waits for that many events, which come in any order.
func (e *ear) tales(n int) map[string]tale {
	e.t.Helper()
	found := map[string]tale{}
	for range n {
		x := e.tale()
		name, _ := x.Told["hook_event_name"].(string)
		if _, twice := found[name]; twice {
			e.t.Errorf("%s is told twice: %v", name, x.Told)
		}
		found[name] = x
	}
	return found
}

// durations differ from run to run.
var duration = regexp.MustCompile(`"duration_ms":[0-9]+`)

// told checks everything that a hook was told, as JSON with sorted keys; of a response only what is named.
func (x tale) told(t *testing.T, want string) {
	t.Helper()
	response, _ := x.Told["tool_response"].(map[string]any)
	for name := range response {
		if name != "exit_code" && name != "files" {
			delete(response, name)
		}
	}
	got, err := json.Marshal(x.Told)
	if err != nil {
		t.Fatal(err)
	}
	if got := duration.ReplaceAllString(string(got), `"duration_ms":0`); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
}

// everyEvent are settings that report all events.
func everyEvent(permissions string) map[string]string {
	var groups []string
	for _, event := range []string{
		"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied", "SessionStart", "SessionEnd",
		"CwdChanged", "Notification",
		"UserPromptSubmit", "Stop", // never fire
	} {
		groups = append(groups, fmt.Sprintf(`%q: [{"hooks": [{"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/report"}]}]`, event))
	}
	return map[string]string{
		"report": report, "sub/a.txt": "",
		".toold/settings.json": fmt.Sprintf(`{"permissions": {%s}, "hooks": {%s}}`, permissions, strings.Join(groups, ", ")),
	}
}

// A life is a session from its begin to its end, with a listener for the events that its hooks get.
type life struct {
	h    *house
	root string
	e    *ear
	c    *talk
}

// What hooks are told in front of what is their own, and behind it.
const (
	everyHook = `,"permission_mode":"default","session_id":"events"`
	hookEnd   = `,"transcript_path":""}`
)

func (l life) begin() string { return fmt.Sprintf(`{"cwd":%q,"hook_event_name":`, l.root) }

// TestEveryEvent: one session with everything that can happen in it.
func TestEveryEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "events", everyEvent(`"deny": ["Bash(curl *)"]`))
	l := life{h: h, root: root, e: listen(t, root)}
	h.trust(t, root)
	l.c = h.attach(t, in(root, nil))
	start := l.e.tale()
	start.told(t, l.begin()+`"SessionStart"`+everyHook+`,"source":"startup"`+hookEnd)
	if start.Claude != root || start.Toold != root {
		t.Errorf("CLAUDE_PROJECT_DIR is %q and TOOLD_PROJECT_DIR %q, want %q", start.Claude, start.Toold, root)
	}
	l.reads(t)
	l.fails(t)
	l.isNotAllowed(t)
	l.isDenied(t)
	l.moves(t)
	l.isClosed(t)
	nothingOf(t, root)
}

// reads: a call that only reads is told before and after it, and at the turn's end, and its path in full.
func (l life) reads(t *testing.T) {
	t.Helper()
	l.c.use("g", "Glob", `{"pattern":"*.txt","path":"sub"}`)
	l.c.finish("g", no)
	found := l.e.tales(3)
	input := fmt.Sprintf(`"tool_input":{"path":"%s/sub","pattern":"*.txt"},"tool_name":"Glob"`, l.root)
	found["PreToolUse"].told(t, l.begin()+`"PreToolUse"`+everyHook+`,`+input+`,"tool_use_id":"g"`+hookEnd)
	found["PostToolUse"].told(t, fmt.Sprintf(`{"cwd":%q,"duration_ms":0,"hook_event_name":"PostToolUse"`, l.root)+everyHook+`,`+input+
		fmt.Sprintf(`,"tool_response":{"files":["%s/sub/a.txt"]},"tool_use_id":"g"`, l.root)+hookEnd)
	batch, err := json.Marshal(found["PostToolBatch"].Told["tool_calls"])
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "the batch", string(batch), `"tool_name":"Glob"`, `"tool_use_id":"g"`, l.root+"/sub/a.txt")
}

// fails: a call that was executed in vain.
func (l life) fails(t *testing.T) {
	t.Helper()
	l.c.bash("f", "ls none")
	l.c.finish("f", no)
	found := l.e.tales(3)
	failure := found["PostToolUseFailure"]
	text, _ := failure.Told["error"].(string)
	holds(t, "the error", text, "Exit code 2\n", "none")
	failure.Told["error"] = ""
	failure.told(t, fmt.Sprintf(`{"cwd":%q,"duration_ms":0,"error":"","hook_event_name":"PostToolUseFailure","is_interrupt":false`, l.root)+everyHook+
		`,"tool_input":{"command":"ls none"},"tool_name":"Bash","tool_use_id":"f"`+hookEnd)
}

// isNotAllowed: a call that asks, and the client answers no.
func (l life) isNotAllowed(t *testing.T) {
	t.Helper()
	l.c.bash("q", "npm test x")
	l.c.finish("q", no)
	found := l.e.tales(5)
	input := `"tool_input":{"command":"npm test x"},"tool_name":"Bash","tool_use_id":"q"`
	found["PermissionRequest"].told(t, l.begin()+`"PermissionRequest","permission_mode":"default","permission_suggestions":`+
		`[{"behavior":"allow","destination":"localSettings","rules":[{"ruleContent":"npm test *","toolName":"Bash"}],"type":"addRules"}],"session_id":"events",`+input+hookEnd)
	found["Notification"].told(t, l.begin()+`"Notification","message":"Bash(npm test x) needs your permission.","notification_type":"permission_prompt"`+everyHook+hookEnd)
	found["PermissionDenied"].told(t, l.begin()+`"PermissionDenied","permission_mode":"default","reason":"The user did not allow this call.","session_id":"events",`+input+hookEnd)
}

// isDenied: a call that a rule denies.
func (l life) isDenied(t *testing.T) {
	t.Helper()
	l.c.bash("d", "curl example.com")
	l.c.finish("d", no)
	for x := range l.e.until("PermissionDenied") {
		if reason, _ := x.Told["reason"].(string); x.Told["hook_event_name"] == "PermissionDenied" {
			holds(t, "the reason", reason, "Bash(curl *)")
		}
	}
}

// moves: into another directory, which is where hooks are then; the project stays what it is.
func (l life) moves(t *testing.T) {
	t.Helper()
	l.c.run("c", "cd sub")
	for x := range l.e.until("CwdChanged") {
		if x.Told["hook_event_name"] == "CwdChanged" {
			x.told(t, fmt.Sprintf(`{"cwd":"%s/sub","hook_event_name":"CwdChanged","new_cwd":"%[1]s/sub","old_cwd":%[1]q`, l.root)+everyHook+hookEnd)
		}
	}
	l.c.run("p", "pwd")
	for x := range l.e.until("PostToolUse") {
		if x.Told["tool_use_id"] == "p" && (x.Told["cwd"] != l.root+"/sub" || x.Claude != l.root) {
			t.Errorf("told %v for the project %s, want it to happen in sub", x.Told, x.Claude)
		}
	}
}

// isClosed: the end.
func (l life) isClosed(t *testing.T) {
	t.Helper()
	if _, err := l.h.link.Sessions.CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "events"}); err != nil {
		t.Fatal(err)
	}
	for x := range l.e.until("SessionEnd") {
		if x.Told["hook_event_name"] == "SessionEnd" {
			x.told(t, fmt.Sprintf(`{"cwd":"%s/sub","hook_event_name":"SessionEnd"`, l.root)+`,"permission_mode":"default","reason":"a client closed it","session_id":"events"`+hookEnd)
		}
	}
}

// until returns events up to one of that name.
func (e *ear) until(name string) func(yield func(tale) bool) {
	return func(yield func(tale) bool) {
		for {
			x := e.tale()
			if !yield(x) || x.Told["hook_event_name"] == name {
				return
			}
		}
	}
}

// TestSessionStartKnowsItsOptions: the first hook of a session is judged by what the client has attached with, each time.
// The call waits for it, and its own hook fails when it has waited in vain.
func TestSessionStartKnowsItsOptions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	options := trusted()
	options.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_PLAN.Enum()
	for i := 0; i < 10 && !t.Failed(); i++ {
		root := h.room(t, fmt.Sprintf("begins-%d", i), map[string]string{".toold/settings.json": `{"hooks": {
			"SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "cat >begun.new; mv begun.new begun"}]}],
			"PreToolUse": [{"hooks": [{"type": "command", "timeout": 5, "command": "until [ -e begun ]; do :; done"}]}]}}`})
		c := h.attach(t, in(root, options))
		c.run("u", "pwd")
		same(t, "the story", story(c.heard), "attached", "u accepted", "u started", "u OK", "turn ended")
		holds(t, "what SessionStart is told", content(t, filepath.Join(root, "begun")), `"source":"startup"`, `"permission_mode":"plan"`)
	}
}
