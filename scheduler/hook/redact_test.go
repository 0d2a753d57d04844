package hook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/tools/exec/sandbox"
)

// Made up, and put together so that nothing that looks for secrets finds it.
var secretToken = "gh" + "p_" + strings.Repeat("a1B2c3", 6)

// Hooks are told of no secret, by its form, by the session's environment or by the settings, in no field of an event.
func TestHooksAreToldNoSecrets(t *testing.T) {
	r := newRunner(t)
	r.Environ = append(os.Environ(), "MY_TOKEN=value-1-of-mine", "INNER=value-2-of-mine", "KEPT_TOKEN=value-3-of-mine")
	r.Filter = sandbox.Filter{Withhold: []string{"INNER"}, Keep: []string{"KEPT_TOKEN"}}
	r.Patterns = []*regexp.Regexp{regexp.MustCompile(`ACME-\d+`)}
	text := secretToken + " value-1-of-mine value-2-of-mine value-3-of-mine ACME-17 plain"
	body := json.RawMessage(`{"command":"` + text + `","file_path":"/w/x"}`)
	in := hook.Input{
		Session: "s", Dir: "/w", Event: hook.PostToolUse, Tool: "Bash", ToolInput: body, Response: body, Error: text, Reason: text, Message: text,
		Calls: []hook.Call{{Tool: "Bash", Input: body, Response: body}}, Suggestions: []hook.Suggestion{hook.Suggest("Bash(" + text + ")")},
	}
	script := `cat >told; env | grep -c "^MY_TOKEN\|^INNER" >withheld; env | grep -c "^KEPT_TOKEN" >kept`
	tell := func() string {
		if got := r.Run(t.Context(), scripts(hook.PostToolUse, script), in); len(got.Failures) != 0 {
			t.Fatal(got.Failures)
		}
		told, err := os.ReadFile(filepath.Join(r.Dir, "told"))
		if err != nil {
			t.Fatal(err)
		}
		return string(told)
	}
	want := "[redacted: github token] [redacted: value] [redacted: value] [redacted: value] [redacted: pattern] plain"
	if told := tell(); strings.Count(told, want) != 8 || strings.Contains(told, "-of-mine") || strings.Contains(told, secretToken) || !json.Valid([]byte(told)) {
		t.Errorf("hooks are told %s, want 8 times %s", told, want)
	}
	for name, want := range map[string]string{"withheld": "0\n", "kept": "1\n"} {
		if got, err := os.ReadFile(filepath.Join(r.Dir, name)); err != nil || string(got) != want {
			t.Errorf("the environment has %q of what is %s, want %q (%v)", got, name, want, err)
		}
	}
	if string(in.ToolInput) != string(body) || in.Calls[0].Tool != "Bash" || string(in.Calls[0].Input) != string(body) || !strings.Contains(in.Suggestions[0].Rules[0].Content, secretToken) {
		t.Errorf("the event itself was changed: %+v", in)
	}
	r.ManagedPatterns = []*regexp.Regexp{regexp.MustCompile("plain")}
	managed := scripts(hook.PostToolUse, "cat >told")
	managed[0].Origin.Managed = true
	r.Run(t.Context(), managed, in)
	want = "[redacted: github token] value-1-of-mine value-2-of-mine value-3-of-mine ACME-17 [redacted: pattern]"
	if told, err := os.ReadFile(filepath.Join(r.Dir, "told")); err != nil || strings.Count(string(told), want) != 8 {
		t.Errorf("the administrator's hook is told %s, want 8 times %s (%v)", told, want, err)
	}
	r.Plain = true
	if told := tell(); strings.Count(told, text) != 8 {
		t.Errorf("with Plain hooks are told %s", told)
	}
}

// What stands behind a mark comes back with the field, and no mark is written in its place.
func TestRewrittenSecrets(t *testing.T) {
	given := `{"command":"run ` + secretToken + `","description":"d","note":"see [redacted: jwt]"}`
	const failure = "the mark would be written in its place"
	for _, test := range []struct {
		name, event, answer string
		want                string // the input; empty: unchanged
		failure             string
		decision            hook.Decision
	}{
		{"untouched", hook.PreToolUse, `"permissionDecision":"allow","updatedInput":{"command":"run [redacted: github token]","description":"d","note":"see [redacted: jwt]"}`, "", "", hook.Allow},
		{
			"beside it", hook.PreToolUse, `"permissionDecision":"allow","updatedInput":{"command":"run [redacted: github token]","description":"e","note":"see [redacted: jwt]"}`,
			`{"command":"run ` + secretToken + `","description":"e","note":"see [redacted: jwt]"}`, "", hook.Allow,
		},
		{"in it", hook.PreToolUse, `"permissionDecision":"allow","updatedInput":{"command":"sudo run [redacted: github token]","description":"d"}`, "", failure, hook.None},
		{"elsewhere", hook.PreToolUse, `"permissionDecision":"allow","updatedInput":{"command":"true","description":"[redacted: github token]"}`, "", failure, hook.None},
		{"and denied", hook.PreToolUse, `"permissionDecision":"deny","updatedInput":{"command":"sudo run [redacted: github token]"}`, "", failure, hook.Deny},
		{
			"a mark of its own", hook.PreToolUse, `"updatedInput":{"command":"run [redacted: github token]","description":"d","note":"still [redacted: jwt]"}`,
			`{"command":"run ` + secretToken + `","description":"d","note":"still [redacted: jwt]"}`, "", hook.None,
		},
		{"replaced", hook.PreToolUse, `"updatedInput":{"command":"true","description":"d","note":"see [redacted: jwt]"}`, `{"command":"true","description":"d","note":"see [redacted: jwt]"}`, "", hook.None},
		{"of a request", hook.PermissionRequest, `"decision":{"behavior":"allow","updatedInput":{"command":"x [redacted: github token]"}}`, "", failure, hook.None},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRunner(t)
			hooks := scripts(test.event, "cat <<'EOF'\n"+`{"hookSpecificOutput":{"hookEventName":"`+test.event+`",`+test.answer+"}}\nEOF")
			got := r.Run(t.Context(), hooks, hook.Input{Event: test.event, Tool: "Bash", ToolInput: json.RawMessage(given)})
			if string(got.Input) != test.want || got.Decision != test.decision || (len(got.Failures) > 0) != (test.failure != "") || !strings.Contains(strings.Join(got.Failures, ""), test.failure) {
				t.Errorf("it comes to %v, %s, %q\nwant %v, %s, %q", got.Decision, got.Input, got.Failures, test.decision, test.want, test.failure)
			}
			hooks[0].Block = true
			if got := r.Run(t.Context(), hooks, hook.Input{Event: test.event, Tool: "Bash", ToolInput: json.RawMessage(given)}); test.failure != "" && got.Decision != hook.Deny {
				t.Errorf("a guard that fails comes to %v", got.Decision)
			}
		})
	}
}
