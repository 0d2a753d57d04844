package main

// What hooks make of a result, and of the request for permission.

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// after makes a script that says something of a call that has ended.
func after(event, fields string) string {
	return fmt.Sprintf("cat <<'END'\n{\"hookSpecificOutput\": {\"hookEventName\": %q, %s}}\nEND", event, fields)
}

// requests makes a script that decides in place of the client that would be asked.
func requests(decision string) string {
	return after("PermissionRequest", `"decision": {`+decision+`}`)
}

const (
	echoes = `{"command":"echo the output"}`
	fails  = `{"command":"echo the output; ls none"}`
)

var resultCases = []hookCase{
	{
		name: "context", event: "PostToolUse", input: echoes, scripts: []string{after("PostToolUse", `"additionalContext": "and one thing more"`)},
		story: ran, texts: []string{"the output\n\nand one thing more"},
	},
	{
		name: "output", event: "PostToolUse", input: echoes, scripts: []string{after("PostToolUse", `"updatedToolOutput": "nothing to see"`)},
		story: ran, texts: []string{"nothing to see"}, lacks: []string{"the output"},
	},
	{
		name: "output that is no text", event: "PostToolUse", input: echoes, scripts: []string{after("PostToolUse", `"updatedToolOutput": {"a": [1]}`)},
		story: ran, texts: []string{`{"a": [1]}`}, lacks: []string{"the output"},
	},
	{
		name: "two outputs", event: "PostToolUse", input: echoes,
		scripts: []string{after("PostToolUse", `"updatedToolOutput": "first"`), after("PostToolUse", `"updatedToolOutput": "second"`)},
		story:   []string{"started", "notice hook_note", "OK"}, texts: []string{"second"}, lacks: []string{"first"}, notices: []string{"HOOK1"},
	},
	{
		name: "objection", event: "PostToolUse", input: echoes, scripts: []string{"echo that was not formatted >&2; exit 2"},
		story: ran, texts: []string{"the output", "that was not formatted"},
	},
	{
		name: "older objection", event: "PostToolUse", input: echoes, scripts: []string{`echo '{"decision": "block", "reason": "that was not formatted"}'`},
		story: ran, texts: []string{"the output", "that was not formatted"},
	},
	{
		name: "failing", event: "PostToolUse", input: echoes, scripts: []string{"exit 1"},
		story: []string{"started", "notice hook_failed", "OK"}, texts: []string{"the output"}, notices: []string{"HOOK1"},
	},
	{
		name: "not for a failure", event: "PostToolUse", input: fails, scripts: []string{"touch made"},
		story: []string{"started", "ERROR exit_code"}, not: []string{"made"},
	},
	{
		name: "not for a denial", event: "PostToolUse", permissions: denyRule, scripts: []string{"touch told"},
		story: []string{"DENIED rule_denied"}, not: []string{"told"},
	},
	{
		name: "context of a failure", event: "PostToolUseFailure", input: fails,
		scripts: []string{after("PostToolUseFailure", `"additionalContext": "there never was one"`)},
		story:   []string{"started", "ERROR exit_code"}, texts: []string{"the output", "there never was one"},
	},
	{
		name: "objection to a failure", event: "PostToolUseFailure", input: fails, scripts: []string{"echo look again >&2; exit 2"},
		story: []string{"started", "ERROR exit_code"}, texts: []string{"the output", "look again"},
	},
	{
		name: "not for a success", event: "PostToolUseFailure", input: echoes, scripts: []string{"touch told"},
		story: ran, not: []string{"told"},
	},
}

var requestCases = []hookCase{
	{
		name: "request allowed", event: "PermissionRequest", scripts: []string{requests(`"behavior": "allow"`)},
		story: ran, made: map[string]string{"made": ""},
	},
	{
		name: "request denied", event: "PermissionRequest", scripts: []string{requests(`"behavior": "deny", "message": "not on Fridays"`), requests(`"behavior": "allow"`)},
		story: []string{"DENIED hook_denied"}, texts: []string{"HOOK1", "not on Fridays"}, not: []string{"made"},
	},
	{
		name: "request against an ask rule", event: "PermissionRequest", permissions: askRule, scripts: []string{requests(`"behavior": "allow"`)}, answer: no,
		story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{"made"},
	},
	{
		name: "request for a critical command", event: "PermissionRequest", scripts: []string{requests(`"behavior": "allow"`)}, answer: no,
		input: `{"command":"rm -r WS"}`, story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"},
	},
	{
		name: "request with another input", event: "PermissionRequest", scripts: []string{requests(`"behavior": "allow", "updatedInput": {"command": "touch other"}`)},
		story: rewritten, made: map[string]string{"other": ""}, not: []string{"made"},
	},
	{
		name: "request with an input that is denied", event: "PermissionRequest", permissions: `"deny": ["Bash(mkdir *)"]`,
		scripts: []string{requests(`"behavior": "allow", "updatedInput": {"command": "mkdir other"}`)},
		story:   []string{"notice input_rewritten", "DENIED rule_denied"}, not: []string{"made", "other"},
	},
	{
		name: "request with an input that is asked about", event: "PermissionRequest", permissions: `"ask": ["Bash(mkdir *)"]`, answer: no,
		scripts: []string{requests(`"behavior": "allow", "updatedInput": {"command": "mkdir other"}`)},
		story:   []string{"notice input_rewritten", "asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{"made", "other"},
	},
	{
		name: "request blocked", event: "PermissionRequest", scripts: []string{"echo not on Fridays >&2; exit 2"},
		story: []string{"DENIED hook_denied"}, texts: []string{"HOOK1", "not on Fridays"}, not: []string{"made"},
	},
	{
		name: "request of which nothing is said", event: "PermissionRequest", scripts: []string{"true"}, answer: yes,
		story: []string{"asks", "withdrawn: answered: allowed", "started", "OK"}, made: map[string]string{"made": ""},
	},
	{
		name: "no request", event: "PermissionRequest", permissions: ruleFor, scripts: []string{"touch told"},
		story: ran, made: map[string]string{"made": ""}, not: []string{"told"},
	},
}

// TestHooksAfterwards: what hooks answer once a call has ended, and before a client is asked.
func TestHooksAfterwards(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, c := range slices.Concat(resultCases, requestCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, h)
		})
	}
}

// TestGuardedOutput: output that a hook which must not fail has not checked is not sent to the model, whatever another hook
// makes of it. The call has had its effect all the same.
func TestGuardedOutput(t *testing.T) {
	t.Parallel()
	plain, administered := newHouse(t, nil), newHouse(t, map[string]string{"managed/settings.json": "{}"})
	for name, guard := range map[string]string{
		"crash":           `"type": "command", "command": "cat >&2; kill -SEGV $$"`,
		"hang":            `"type": "command", "command": "sleep 1000", "timeout": 1`,
		"missing program": `"type": "command", "command": "no-such-program-anywhere", "args": []`,
		"no answer":       `"type": "command", "command": "echo '{'"`,
		"another type":    `"type": "prompt", "prompt": "is there a secret?"`,
		"wrong arguments": `"type": "command", "command": "true", "args": "-x"`,
	} {
		replaces := after("PostToolUse", `"updatedToolOutput": "nothing to see"`)
		file := func(more string) string {
			return fmt.Sprintf(`{"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{%s%s}, {"type": "command", "command": %q}]}]}}`, guard, more, replaces)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := plain.room(t, "block "+name, map[string]string{".toold/settings.json": file(`, "onFailure": "block"`)})
			a := in(root, trusted())
			a.SessionId = "block-" + strings.ReplaceAll(name, " ", "-")
			checkWithheld(t, plain.attach(t, a), root)
			root = plain.room(t, "continue "+name, map[string]string{".toold/settings.json": file("")})
			a = in(root, trusted())
			a.SessionId = "continue-" + strings.ReplaceAll(name, " ", "-")
			if text := textIn(plain.attach(t, a).run("u", "echo the secret")); text != "nothing to see" {
				t.Errorf("with a hook that may fail the result is %q", text)
			}
		})
	}
	root := administered.room(t, "managed", nil)
	put(t, filepath.Join(administered.dir, "managed", "settings.json"), `{"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "exit 1"}]}]}}`)
	checkWithheld(t, administered.attach(t, in(root, nil)), root)
}

// checkWithheld runs a command whose output a hook holds back.
func checkWithheld(t *testing.T, c *talk, root string) {
	t.Helper()
	result := c.run("u", "echo the secret | tee made")
	if outcome(result) != "OK" || strings.Contains(result.String(), "the secret") {
		t.Errorf("it ends as %s", result)
	}
	holds(t, "the result", textIn(result), "The call has succeeded", "Its output is withheld, because the PostToolUse hook", "settings.json:1) has failed")
	if made := content(t, filepath.Join(root, "made")); made != "the secret\n" {
		t.Errorf("the command has written %q", made)
	}
	if len(c.notices("hook_failed")) != 1 {
		t.Errorf("notices of hooks that have failed: %q", c.notices("hook_failed"))
	}
}

// TestGuardOfFailures: where a hook can change nothing of the output, its failure is all that the model is told of.
func TestGuardOfFailures(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "failures", hooked("PostToolUseFailure", "", `, "onFailure": "block"`, "exit 1"))
	result := h.attach(t, in(root, trusted())).run("u", "echo the output; ls none")
	holds(t, "the result", textIn(result), "the output", settingsLine(root, 1)+") ended with exit code 1")
}

// TestReplacedOutputIsCapped: what a hook puts in place of an output stands in the result no longer than the output could.
func TestReplacedOutputIsCapped(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "long", hooked("PostToolUse", "", "",
		`printf '{"hookSpecificOutput": {"updatedToolOutput": "'; head -c 200000 /dev/zero | tr '\0' x; echo '"}}'`))
	result := h.attach(t, in(root, trusted())).run("u", "pwd")
	if n := len(textIn(result)); n > 31_000 || !strings.Contains(textIn(result), "x") || result.GetSpill().GetPath() == "" {
		t.Errorf("the result has %d characters and the rest is in %q, want about 30000 and a file", n, result.GetSpill().GetPath())
	}
}
