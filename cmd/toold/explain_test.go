package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/cmd/toold/internal/callargs"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/golden"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestReadCall(t *testing.T) {
	t.Setenv("HOME", "/home/x")
	for _, c := range []struct{ text, name, input string }{
		{"Bash(git push --force)", "Bash", `{"command":"git push --force"}`},
		{"Bash(echo $(date) > \"a\n\")", "Bash", `{"command":"echo $(date) \u003e \"a\n\""}`},
		{" Read(a/../b.txt) ", "Read", `{"file_path":"/w/b.txt"}`},
		{"Read(/etc/hosts)", "Read", `{"file_path":"/etc/hosts"}`},
		{"Read(~/x)", "Read", `{"file_path":"/home/x/x"}`},
		{"LS(.)", "LS", `{"path":"/w"}`},
		{"Edit(b)", "Edit", `{"file_path":"/w/b","old_string":"old","new_string":"new"}`},
		{"Grep(%s)", "Grep", `{"pattern":"%s"}`},
		{"Bash()", "Bash", `{"command":""}`},
		{"TodoWrite", "TodoWrite", `{}`},
		{`{"name":"LS","input":{"path":"x"}}`, "LS", `{"path":"x"}`},
		{`[{"type":"tool_use","id":"a","name":"LS","input":{}}]`, "LS", `{}`},
	} {
		u, err := callargs.Parse(c.text, "/w")
		if err != nil || u.Name != c.name || u.Input != strings.ReplaceAll(c.input, "\n", `\n`) {
			t.Errorf("readCall(%s) = %s %s, %v; want %s %s", c.text, u.Name, u.Input, err, c.name, c.input)
		}
	}
	for text, want := range map[string]string{
		"":                              "is not a call",
		"git push":                      "is not a call",
		"Bash(ls":                       "is not a call",
		"Bash(ls) x":                    "is not a call",
		"mcp__x__y(z)":                  "give the tool use as JSON",
		`{"name":`:                      "cannot be read",
		`{"name":"A"}` + `{"name":"B"}`: "one call is explained at a time",
		`{"type":"text","text":"x"}`:    "0 tool uses",
	} {
		_, err := callargs.Parse(text, "/w")
		var e *cli.Error
		if !errors.As(err, &e) || e.Code != cli.ExitUsage || !strings.Contains(e.Text, want) {
			t.Errorf("readCall(%s): %v, want a misuse with %q", text, err, want)
		}
	}
}

// FuzzReadCall: nothing that is written makes a panic, and a command in parentheses arrives as it was written.
func FuzzReadCall(f *testing.F) {
	for _, seed := range []string{"Bash(ls)", "Bash(a\x00) )", "Read(~/\x00)", "Grep(%s)", "X(", `{"name":"Bash"}`, "Edit()", "WebFetch(\xff)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := callargs.Parse(text, "/w")
		command, plain := strings.CutPrefix(strings.TrimSpace(text), "Bash(")
		if err != nil || !plain || !utf8.ValidString(text) {
			return
		}
		var input struct{ Command string }
		if err := json.Unmarshal([]byte(u.Input), &input); err != nil || input.Command+")" != command {
			t.Errorf("%q gives %s (%v)", text, u.Input, err)
		}
	})
}

func TestExplanations(t *testing.T) {
	for name, e := range map[string]*tooldv1.ExplainResponse{
		"explain-ask.txt": {
			Valid: true, Level: tooldv1.Level_LEVEL_DANGEROUS, Decision: tooldv1.Decision_DECISION_ASK,
			PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT,
			Effects:        []string{"runs npm run test \x1b[2Junit", "reads /w"},
			Reasons:        []string{"The PreToolUse hook in /w/s.json:9 is asked first; what it will say is not known.", "Something asks.", "The mode says: ask."},
			Grounds: []*tooldv1.Ground{
				{Text: "Something asks.", Rule: "Bash(npm *)", List: "ask", File: "/w/.toold/settings.json", Line: 4, Part: "npm run test"},
			},
			Suggestions: []*tooldv1.Suggestion{{Rule: "Bash(npm run test *)", List: "allow"}, {Rule: "Strange(x)", List: "allow"}},
		},
		"explain-deny.txt": {
			Valid: true, Level: tooldv1.Level_LEVEL_FORBIDDEN, Decision: tooldv1.Decision_DECISION_DENY,
			PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_PLAN, ReadOnly: true,
			Reasons: []string{"The rule Read(.env) in /w/.toold/settings.json:4 denies `/w/.env`."},
			Grounds: []*tooldv1.Ground{
				{
					Code: "rule", Text: "The rule Read(.env) in /w/.toold/settings.json:4 denies `/w/.env`.", Rule: "Read(.env)", List: "deny",
					File: "/w/.toold/settings.json", Line: 4, Part: "/w/.env",
				},
			},
		},
		"explain-allow.txt": {
			Valid: true, Level: tooldv1.Level_LEVEL_SAFE, Decision: tooldv1.Decision_DECISION_ALLOW, ReadOnly: true, Concurrent: true,
			PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, Reasons: []string{"It is read-only."},
		},
		"explain-invalid.txt": {
			Decision: tooldv1.Decision_DECISION_DENY, Error: &tooldv1.Error{Code: "invalid_input", Message: "x"},
			Reasons: []string{"The input is not what it should be:\n- missing property"},
		},
	} {
		golden.Check(t, name, explanationText("Bash npm run test unit", e, terminal.Ink{}))
	}
}
