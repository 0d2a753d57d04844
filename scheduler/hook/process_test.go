package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/tools/exec/sandbox"
)

func TestInput(t *testing.T) {
	r := newRunner(t)
	raw := json.RawMessage(`{"command":"a && b <c","n":12345678901234567890}`)
	tests := []struct {
		name string
		in   hook.Input
		want string
	}{
		{
			"before",
			hook.Input{Session: "s", Dir: "/w", Mode: "default", Event: hook.PreToolUse, Tool: "Bash", ToolInput: raw, ToolUse: "u"},
			`{"session_id":"s","cwd":"/w","transcript_path":"","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash",` +
				`"tool_input":{"command":"a && b <c","n":12345678901234567890},"tool_use_id":"u"}`,
		},
		{
			"after",
			hook.Input{Event: hook.PostToolUse, Tool: "Bash", ToolInput: raw, Response: json.RawMessage(`{"stdout":"x"}`), DurationMS: ptr(int64(0))},
			`{"session_id":"","cwd":"","transcript_path":"","hook_event_name":"PostToolUse","tool_name":"Bash",` +
				`"tool_input":{"command":"a && b <c","n":12345678901234567890},"tool_response":{"stdout":"x"},"duration_ms":0}`,
		},
		{
			"failure",
			hook.Input{Event: hook.PostToolUseFailure, Error: "Exit code 1", Interrupt: ptr(false)},
			`{"session_id":"","cwd":"","transcript_path":"","hook_event_name":"PostToolUseFailure","error":"Exit code 1","is_interrupt":false}`,
		},
		{
			"request",
			hook.Input{Event: hook.PermissionRequest, Suggestions: []hook.Suggestion{hook.Suggest("Bash(npm test (x) *)"), hook.Suggest("WebSearch")}},
			`{"session_id":"","cwd":"","transcript_path":"","hook_event_name":"PermissionRequest","permission_suggestions":[` +
				`{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"npm test (x) *"}],"behavior":"allow","destination":"localSettings"},` +
				`{"type":"addRules","rules":[{"toolName":"WebSearch"}],"behavior":"allow","destination":"localSettings"}]}`,
		},
		{
			"batch",
			hook.Input{Event: hook.PostToolBatch, Calls: []hook.Call{{Tool: "LS", Input: raw, ToolUse: "u", Response: json.RawMessage(`"x"`)}}},
			`{"session_id":"","cwd":"","transcript_path":"","hook_event_name":"PostToolBatch","tool_calls":[` +
				`{"tool_name":"LS","tool_input":{"command":"a && b <c","n":12345678901234567890},"tool_use_id":"u","tool_response":"x"}]}`,
		},
	}
	for _, tt := range tests {
		if got := r.Run(t.Context(), scripts(tt.in.Event, "cat >told"), tt.in); len(got.Failures) != 0 {
			t.Errorf("%s: %q", tt.name, got.Failures)
		}
		told, err := os.ReadFile(filepath.Join(r.Dir, "told"))
		if err != nil || string(told) != tt.want+"\n" {
			t.Errorf("%s: the hook was told (%v)\n%s, want\n%s", tt.name, err, told, tt.want)
		}
	}
}

// What cannot be told is a failure like any other.
func TestInputThatIsNoJSON(t *testing.T) {
	hooks := scripts(hook.PreToolUse, "true")
	hooks[0].Block = true
	got := hook.Runner{}.Run(t.Context(), hooks, hook.Input{Event: hook.PreToolUse, ToolInput: json.RawMessage(`{`)})
	if got.Decision != hook.Deny || len(got.Failures) != 1 || !strings.Contains(got.Failures[0], "could not receive the event") {
		t.Errorf("it comes to %+v", got)
	}
}

func TestSurroundings(t *testing.T) {
	r := newRunner(t)
	r.ProjectDir = "/the project"
	r.Environ = append(os.Environ(), "PLAIN=yes", "LD_PRELOAD=/evil.so", "BASH_ENV=/evil.sh", "A_TOKEN=secret", "CLAUDE_PROJECT_DIR=/else")
	script := `[ "$(pwd -P)" = "` + r.Dir + `" ] || echo "in $(pwd)"
[ "$CLAUDE_PROJECT_DIR,$TOOLD_PROJECT_DIR,$PLAIN" = "/the project,/the project,yes" ] || env
[ -z "$LD_PRELOAD$BASH_ENV$A_TOKEN" ] || env
(: </dev/tty) 2>/dev/null && echo "a terminal"
read -r pid _ _ _ group session _ </proc/self/stat; [ "$session" = $$ ] || echo "in the session $session"`
	if got := r.Run(t.Context(), scripts(hook.PreToolUse, "{ "+script+"\n} >&2; exit 2"), input(hook.PreToolUse)); len(got.Reasons) != 1 || got.Reasons[0].Reason != "" {
		t.Errorf("the hook found\n%+v", got)
	}
}

func TestExecForm(t *testing.T) {
	r := newRunner(t)
	r.ProjectDir = t.TempDir()
	t.Chdir(r.Dir)
	bin := t.TempDir()
	absent := filepath.Join(bin, "absent")
	r.Environ = append(os.Environ(), "PATH=.:"+bin+":"+absent+":/bin:/usr/bin")
	print := "#!/bin/sh\necho \"$0\" \"$@\" >&2\nexit 2\n"
	writeScript(t, bin, "in-path", print)
	writeScript(t, r.Dir, "in-dir", print)
	writeScript(t, r.Dir, "in-project", "#!/bin/sh\necho the wrong one >&2\nexit 2\n")
	writeScript(t, r.ProjectDir, "in-project", print)
	if err := os.WriteFile(filepath.Join(bin, "plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		command      string
		args         []string
		deny, failed string
	}{
		{"in-path", []string{"a b", "$HOME", "*", "${TOOLD_PROJECT_DIR}/x;${HOME}"}, bin + "/in-path a b $HOME * " + r.ProjectDir + "/x;${HOME}", ""},
		{"${CLAUDE_PROJECT_DIR}/in-project", []string{}, r.ProjectDir + "/in-project", ""},
		{"./in-project", []string{"x"}, r.ProjectDir + "/in-project x", ""},
		{"./in-dir", []string{}, "", "could not be started: fork/exec " + r.ProjectDir + "/in-dir: no such file or directory"},
		{"in-dir", []string{}, "", `could not be started: the program "in-dir" is not in PATH`},
		{"plain", []string{}, "", `could not be started: the program "plain" is not in PATH`},
		{absent + "/guard", []string{}, "", "could not be started: fork/exec " + absent + "/guard: no such file or directory"},
		{bin + "/plain", []string{}, "", "could not be started: fork/exec " + bin + "/plain: permission denied"},
	}
	for _, tt := range tests {
		h := &hook.Hook{Event: hook.PreToolUse, Command: tt.command, Args: tt.args, Origin: at(1)}
		got := r.Run(t.Context(), []*hook.Hook{h}, input(hook.PreToolUse))
		if tt.deny != "" && (len(got.Reasons) != 1 || got.Reasons[0].Reason != tt.deny) {
			t.Errorf("%s %q: %+v, want %q", tt.command, tt.args, got, tt.deny)
		}
		if tt.failed != "" && (len(got.Failures) != 1 || !strings.Contains(got.Failures[0], tt.failed)) {
			t.Errorf("%s %q: %+v, want %q", tt.command, tt.args, got, tt.failed)
		}
	}
}

// tree is a script that starts children in several ways, notes their numbers in the file pids, and stays.
const tree = `echo $$ >pids
sleep 1000 & echo $! >>pids
setsid sleep 1000 & echo $! >>pids
(trap '' HUP; sleep 1000) & echo $! >>pids
`

func TestLimit(t *testing.T) {
	r := newRunner(t)
	hooks := scripts(hook.PreToolUse, `echo '{"decision": "approve"}'; `+tree+"wait", `echo '{"decision": "block", "reason": "no"}'; exec sleep 1000`, "true")
	hooks[0].Timeout, hooks[0].Block, hooks[1].Timeout = 300*time.Millisecond, true, 300*time.Millisecond
	got := r.Run(t.Context(), hooks, input(hook.PreToolUse))
	if len(got.Failures) != 2 || !strings.HasSuffix(got.Failures[0], "did not end within its limit of 300ms and was stopped.") {
		t.Errorf("failures %q", got.Failures)
	}
	if len(got.Reasons) == 0 || got.Reasons[0] != reason(hook.Deny, "It did not end within its limit of 300ms and was stopped; the call may not go on without it.", 1) {
		t.Errorf("reasons %+v", got.Reasons)
	}
	path := filepath.Join(r.Dir, "pids")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return // the machine is so slow that the hook did not come to anything
	}
	for _, pid := range pidsIn(t, path) {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
}

func TestCancel(t *testing.T) {
	r := newRunner(t)
	ready := filepath.Join(r.Dir, "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan hook.Result)
	go func() { done <- r.Run(ctx, scripts(hook.PreToolUse, tree+"echo >ready; wait"), input(hook.PreToolUse)) }()
	oneLine(t, ready)
	cancel(errors.New("the client has changed its mind"))
	got := <-done
	if len(got.Failures) != 1 || !strings.HasSuffix(got.Failures[0], "was stopped with its call: the client has changed its mind.") {
		t.Errorf("failures %q", got.Failures)
	}
	pids := pidsIn(t, filepath.Join(r.Dir, "pids"))
	if len(pids) != 4 || slices.ContainsFunc(pids, alive) {
		t.Errorf("of the processes %v some are alive", pids)
	}
	got = r.Run(ctx, scripts(hook.PreToolUse, "touch started"), input(hook.PreToolUse))
	if _, err := os.Stat(filepath.Join(r.Dir, "started")); !errors.Is(err, os.ErrNotExist) || len(got.Failures) != 1 ||
		!strings.Contains(got.Failures[0], "was not started: the client has changed its mind") {
		t.Errorf("after the end a hook was started (%v): %+v", err, got)
	}
}

func TestNothingIsLeft(t *testing.T) {
	r := newRunner(t)
	got := r.Run(t.Context(), scripts(hook.PreToolUse, `setsid sh -c 'echo $$ >pids; exec sleep 1000' & until [ -s pids ]; do :; done; `+says(`{"decision": "approve"}`, 0)), input(hook.PreToolUse))
	if got.Decision != hook.Allow || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], `left 1 processes running ("sleep 1000" is one)`) {
		t.Errorf("it comes to %+v", got)
	}
	if pids := pidsIn(t, filepath.Join(r.Dir, "pids")); len(pids) != 1 || alive(pids[0]) {
		t.Errorf("of the processes %v some are alive", pids)
	}
}

func TestInputThatIsNotRead(t *testing.T) {
	r := newRunner(t)
	in := input(hook.PreToolUse)
	in.ToolInput = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	got := r.Run(t.Context(), scripts(hook.PreToolUse, "true", "exec <&-; true", "head -c 1 >/dev/null", "wc -c >&2; exit 2"), in)
	if len(got.Failures) != 0 || len(got.Reasons) != 1 || len(got.Reasons[0].Reason) != len("1048700") {
		t.Errorf("it comes to %+v", got)
	}
}

// What a hook prints too much costs no memory and no answer.
func TestMuchOutput(t *testing.T) {
	r := newRunner(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := r.Run(t.Context(), scripts(hook.PreToolUse, `head -c 33554432 /dev/zero | tr '\0' x; head -c 33554432 /dev/zero | tr '\0' y >&2`), input(hook.PreToolUse))
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("64 MiB of output took %d bytes of memory", grown)
	}
	if len(got.Failures) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "printed more than 1048576 bytes; the rest was dropped") {
		t.Errorf("it comes to %+v", got)
	}
}

func TestCannotStart(t *testing.T) {
	processes, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := processes.Close(); err != nil {
		t.Fatal(err)
	}
	got := hook.Runner{Processes: processes, Dir: "/"}.Run(t.Context(), scripts(hook.PreToolUse, "true"), input(hook.PreToolUse))
	if len(got.Failures) != 1 || !strings.Contains(got.Failures[0], "could not be started: the daemon is shutting down") {
		t.Errorf("it comes to %+v", got)
	}
}
