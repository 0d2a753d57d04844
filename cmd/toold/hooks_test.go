package main

// What PreToolUse hooks, which are real shell scripts in a trusted workspace, do to a call.

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// hooked are the files of a workspace whose settings have hooks of one event, one script each. The first stands on line
// 3 of .toold/settings.json. more is what every hook says besides, permissions what the rules are.
func hooked(event, permissions, more string, scripts ...string) map[string]string {
	files := map[string]string{}
	var lines []string
	for i, script := range scripts {
		files[fmt.Sprintf("hooks/%d", i+1)] = script + "\n"
		lines = append(lines, fmt.Sprintf(`{"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/hooks/%d"%s}`, i+1, more))
	}
	files[".toold/settings.json"] = fmt.Sprintf(`{"permissions": {%s},
"hooks": {%q: [{"hooks": [
%s
]}]}}`, permissions, event, strings.Join(lines, ",\n"))
	return files
}

// settingsLine is the place of the nth hook, from 1, as messages name it.
func settingsLine(root string, n int) string {
	return fmt.Sprintf("%s/.toold/settings.json:%d", root, n+2)
}

// says makes a script that decides before a call.
func says(fields string) string {
	return fmt.Sprintf("cat <<'END'\n{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", %s}}\nEND", fields)
}

// decides makes a script that only decides.
func decides(decision, reason string) string {
	return says(fmt.Sprintf(`"permissionDecision": %q, "permissionDecisionReason": %q`, decision, reason))
}

// rewrites makes a script that replaces the input, and allows it.
func rewrites(input string) string {
	return says(`"permissionDecision": "allow", "updatedInput": ` + input)
}

// A hookCase is one call under some hooks. WS stands for the workspace, and in texts HOOK1 for the place of the first hook.
type hookCase struct {
	name        string
	event       string // empty: PreToolUse
	permissions string // in the file of the workspace
	scripts     []string
	tool, input string            // empty: Bash, touch made
	answer      tooldv1.Decision  // to the question, if there is one
	story       []string          // of the call, without its id, between accepted and the end of the turn
	texts       []string          // in the result
	lacks       []string          // not in it
	notices     []string          // in those of any code
	made        map[string]string // files that are there afterwards, with their contents
	not         []string          // files that are not
}

const (
	touch    = `{"command":"touch made"}`
	ruleFor  = `"allow": ["Bash(touch *)"]`
	denyRule = `"deny": ["Bash(touch *)"]`
	askRule  = `"allow": ["Bash(touch *)"], "ask": ["Bash(touch made)"]`
)

var (
	ran       = []string{"started", "OK"}
	rewritten = []string{"notice input_rewritten", "started", "OK"}
)

// Decisions: what the hook says, against what the rules say.
var decisionCases = []hookCase{
	{
		name: "allow", scripts: []string{decides("allow", "known")},
		story: ran, made: map[string]string{"made": ""},
	},
	{
		name: "an older approve", scripts: []string{`echo '{"decision": "approve"}'`},
		story: ran, made: map[string]string{"made": ""},
	},
	{
		name: "allow against a deny rule", permissions: denyRule, scripts: []string{decides("allow", "known")},
		story: []string{"DENIED rule_denied"}, texts: []string{"Bash(touch *) in WS/.toold/settings.json:1 denies `touch made`"}, not: []string{"made"},
	},
	{
		name: "not told of what a rule denies", permissions: denyRule, scripts: []string{"touch told"},
		story: []string{"DENIED rule_denied"}, not: []string{"made", "told"},
	},
	{
		name: "allow against an ask rule", permissions: askRule, scripts: []string{decides("allow", "known")}, answer: no,
		story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{"made"},
	},
	{
		name: "allow against a critical command", scripts: []string{decides("allow", "known")}, answer: no,
		input: `{"command":"rm -r ../allow-against-a-critical-command"}`,
		story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"}, made: map[string]string{"hooks/1": decides("allow", "known") + "\n"},
	},
	{
		name: "allow against a protected file", permissions: ruleFor, scripts: []string{decides("allow", "known")}, answer: no,
		input: `{"command":"touch .envrc"}`,
		story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{".envrc"},
	},
	{
		name: "deny", permissions: ruleFor, scripts: []string{decides("deny", "not on Fridays")},
		story: []string{"DENIED hook_denied"}, texts: []string{"HOOK1", "not on Fridays"}, not: []string{"made"},
	},
	{
		name: "an older block", permissions: ruleFor, scripts: []string{`echo '{"decision": "block", "reason": "not on Fridays"}'`},
		story: []string{"DENIED hook_denied"}, texts: []string{"HOOK1", "not on Fridays"}, not: []string{"made"},
	},
	{
		name: "all reasons", permissions: ruleFor,
		scripts: []string{
			decides("deny", "the first is against it"), decides("allow", "the second is for it"), decides("ask", "the third asks"),
			"echo the fourth is against it too >&2; exit 2",
		},
		story: []string{"DENIED hook_denied"},
		texts: []string{"HOOK1", "the first is against it", "HOOK4", "the fourth is against it too"}, not: []string{"made"},
	},
	{
		name: "ask where a rule allows", permissions: ruleFor, scripts: []string{decides("ask", "look at this"), decides("allow", "known")}, answer: yes,
		story: []string{"asks", "withdrawn: answered: allowed", "started", "OK"}, made: map[string]string{"made": ""},
	},
	{
		name: "ask, and no", permissions: ruleFor, scripts: []string{decides("ask", "look at this")}, answer: no,
		story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{"made"},
	},
	{
		name: "nothing", scripts: []string{"true", "echo permissionDecision: allow"}, answer: no,
		story: []string{"asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{"made"},
	},
	{
		name: "exit 2", permissions: ruleFor, scripts: []string{"echo ' on the wrong branch ' >&2; exit 2"},
		story: []string{"DENIED hook_denied"}, texts: []string{"HOOK1", ": on the wrong branch."}, not: []string{"made"},
	},
	{
		name: "exit 2 beats an allow", scripts: []string{decides("allow", "known") + "\necho on the wrong branch >&2; exit 2"},
		story: []string{"DENIED hook_denied"}, texts: []string{"on the wrong branch"}, not: []string{"made"},
	},
	{
		name: "another code with JSON", permissions: ruleFor, scripts: []string{decides("deny", "not on Fridays") + "\nexit 3"},
		story: []string{"notice hook_failed", "DENIED hook_denied"}, texts: []string{"not on Fridays"}, notices: []string{"HOOK1", "exit code 3"}, not: []string{"made"},
	},
	{
		name: "the end of everything", permissions: ruleFor, scripts: []string{`echo '{"continue": false, "stopReason": "the budget is spent", "systemMessage": "spent"}'`},
		story: []string{"notice hook_message", "notice hook_stop", "DENIED hook_denied"}, texts: []string{"the budget is spent"},
		notices: []string{"the budget is spent"}, not: []string{"made"},
	},
	{
		name: "something for the model", permissions: ruleFor, scripts: []string{says(`"additionalContext": "the tests are slow today"`)},
		story: ran, texts: []string{"the tests are slow today"}, made: map[string]string{"made": ""},
	},
}

// Rewrites: what runs is judged by the same rules.
var rewriteCases = []hookCase{
	{
		name: "another input", scripts: []string{rewrites(`{"command": "touch other"}`)},
		story: rewritten, made: map[string]string{"other": ""}, not: []string{"made"},
	},
	{
		name: "another input that nobody allows", scripts: []string{says(`"updatedInput": {"command": "touch other"}`)}, answer: yes,
		story: []string{"notice input_rewritten", "asks", "withdrawn: answered: allowed", "started", "OK"}, made: map[string]string{"other": ""}, not: []string{"made"},
	},
	{
		name: "another input that is denied", permissions: `"deny": ["Bash(mkdir *)"]`, scripts: []string{rewrites(`{"command": "mkdir other"}`)},
		story: []string{"notice input_rewritten", "DENIED rule_denied"}, texts: []string{"Bash(mkdir *)", "`mkdir other`"}, not: []string{"made", "other"},
	},
	{
		name: "another input that an ask rule is about", permissions: `"ask": ["Bash(mkdir *)"]`, scripts: []string{rewrites(`{"command": "mkdir other"}`)}, answer: no,
		story: []string{"notice input_rewritten", "asks", "withdrawn: answered: denied", "DENIED client_denied"}, not: []string{"made", "other"},
	},
	{
		name: "another input that makes no sense", scripts: []string{rewrites(`{"command": 7}`)},
		story: []string{"INVALID invalid_input"}, not: []string{"made"},
	},
	{
		name: "more than its place allows", input: `{"command":"cat hooks/1"}`, scripts: []string{rewrites(`{"command": "touch other"}`)},
		story: []string{"DENIED widened_input"}, not: []string{"other"},
	},
	{
		name: "two fields of two hooks", tool: "Write", input: `{"file_path":"WS/a.txt","content":"as sent"}`,
		scripts: []string{
			rewrites(`{"file_path": "WS/b.txt", "content": "as sent"}`),
			`sed 's/.*"tool_input":\({[^}]*}\).*/\1/; s/as sent/as it should be/; s/.*/{"hookSpecificOutput": {"updatedInput": &}}/'`,
		},
		story: rewritten, made: map[string]string{"b.txt": "as it should be"}, not: []string{"a.txt"},
	},
	{
		name: "one field of two hooks", permissions: ruleFor,
		scripts: []string{rewrites(`{"command": "touch one"}`), "true", rewrites(`{"command": "touch two"}`)},
		story:   []string{"DENIED hook_denied"}, texts: []string{"HOOK1", "HOOK3", `the field "command"`}, not: []string{"made", "one", "two"},
	},
	{
		name: "one field of two hooks that agree", scripts: []string{rewrites(`{"command": "touch one"}`), rewrites(`{"command":"touch \u006fne"}`)},
		story: rewritten, made: map[string]string{"one": ""}, not: []string{"made"},
	},
	{
		name: "a denial leaves the input", permissions: ruleFor, scripts: []string{rewrites(`{"command": "touch one"}`), decides("deny", "never")},
		story: []string{"DENIED hook_denied"}, texts: []string{"never"}, not: []string{"made", "one"},
	},
}

// TestHooksDecide: what comes of a call when hooks have been heard.
func TestHooksDecide(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, c := range slices.Concat(decisionCases, rewriteCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, h)
		})
	}
	t.Run("what is asked", func(t *testing.T) {
		t.Parallel()
		root := h.room(t, "asked", hooked("PreToolUse", "", "", says(`"permissionDecision": "ask", "permissionDecisionReason": "look at this", "updatedInput": {"command": "touch other"}`)))
		c := h.attach(t, in(root, trusted()))
		c.use("u", "Bash", touch)
		q := c.question("u")
		holds(t, "the input", q.GetInputJson(), "touch other")
		holds(t, "the reason", q.GetReason(), settingsLine(root, 1), "look at this")
		if g := q.GetGrounds()[0]; g.GetFile() != root+"/.toold/settings.json" || g.GetLine() != 3 {
			t.Errorf("the grounds: %v", q.GetGrounds())
		}
		c.answer(answer(q, no))
		c.finish("u", no)
	})
}

// check makes the call in a workspace and a session of its own.
func (c *hookCase) check(t *testing.T, h *house) {
	t.Helper()
	if c.tool == "" {
		c.tool, c.input = "Bash", cmp.Or(c.input, touch)
	}
	root := h.room(t, strings.ReplaceAll(strings.ReplaceAll(c.name, ",", ""), " ", "-"), nil)
	for name, content := range hooked(cmp.Or(c.event, "PreToolUse"), c.permissions, "", c.scripts...) {
		put(t, filepath.Join(root, name), strings.ReplaceAll(content, "WS", root))
	}
	talk := h.attach(t, in(root, trusted()))
	talk.use("u", c.tool, strings.ReplaceAll(c.input, "WS", root))
	result := talk.finish("u", c.answer)
	want := []string{"attached", "accepted"}
	want = append(append(want, c.story...), "turn ended")
	told := story(talk.heard)
	for i := range told {
		told[i] = strings.TrimPrefix(told[i], "u ")
	}
	same(t, "the story", told, want...)
	for _, text := range c.texts {
		holds(t, "the result", textIn(result), c.meant(text, root))
	}
	for _, text := range c.lacks {
		if strings.Contains(textIn(result), text) {
			t.Errorf("the result has %q in it:\n%s", text, textIn(result))
		}
	}
	notices := strings.Join(slices.Concat(talk.notices("hook_failed"), talk.notices("hook_note"), talk.notices("hook_stop")), "\n")
	for _, text := range c.notices {
		holds(t, "the notices", notices, c.meant(text, root))
	}
	for name, want := range c.made {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
	for _, name := range c.not {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	nothingOf(t, root)
}

// meant puts in what a text of a case stands for.
func (c *hookCase) meant(text, root string) string {
	for n := range c.scripts {
		text = strings.ReplaceAll(text, fmt.Sprintf("HOOK%d", n+1), settingsLine(root, n+1))
	}
	return strings.ReplaceAll(text, "WS", root)
}

// nothingOf checks that no process is left of the hooks of a workspace.
func nothingOf(t *testing.T, root string) {
	t.Helper()
	if left := processesOf("CLAUDE_PROJECT_DIR=" + root + "\x00"); len(left) > 0 {
		t.Errorf("still running:\n%s", strings.Join(left, "\n"))
	}
}
