package main

// A workspace with the settings file that users of Claude Code have, as it is.

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const claudeSettings = `{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "model": "opus",
  "includeCoAuthoredBy": false,
  "permissions": {
    "allow": [
      "Bash(npm run test:*)",
      "Bash(touch:*)",
      "Edit(src/**)",
      "WebFetch(domain:docs.example.com)"
    ],
    "ask": ["Bash(git push:*)", "Bash(touch important*)"],
    "deny": ["Bash(curl:*)", "Read(./.env)", "Read(./secrets/**)", "WebSearch"]
  },
  "env": {"GREETING": "hello"},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [
        {"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh", "timeout": 30}
      ]}
    ],
    "PostToolUse": [
      {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "sh .claude/hooks/format.sh"}]}
    ],
    "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "date"}]}],
    "Stop": [{"matcher": "", "hooks": [{"type": "prompt", "prompt": "Is it done?"}]}]
  },
  "statusLine": {"type": "command", "command": "~/.claude/statusline.sh"},
  "enabledPlugins": {"formatter@tools": true}
}
`

var claudeRoom = map[string]string{
	".claude/settings.json": claudeSettings,
	".claude/hooks/guard.sh": `if grep -q '"command":"[^"]*git commit'; then
	echo 'Run the tests before you commit.' >&2
	exit 2
fi
`,
	".claude/hooks/format.sh": `sed 's/.*"file_path":"\([^"]*\)".*/\1/' | while read -r file; do
	tr -d '\r' <"$file" >.formatted && cat .formatted >"$file" && rm .formatted
	echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "It was formatted."}}'
done
`,
	".env": "SECRET=1\n", "secrets/key": "x\n",
}

// A claudeStep is what a session over such a workspace may do, in one of its states.
type claudeStep struct {
	touch, curl, commit, greeting, write string // how the calls end, and what GREETING is
	warnings                             []string
}

// TestClaudeSettings: before trust such a file denies and asks; with it, everything in it works; and a change of the file
// takes all of that away again. One session lives through it.
func TestClaudeSettings(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	root := h.room(t, "claude", claudeRoom)
	file := filepath.Join(root, ".claude", "settings.json")
	c := h.attach(t, in(root, nil))
	asked := "asked DENIED client_denied"

	c.claude("unread", claudeStep{touch: asked, curl: asked, commit: asked, greeting: "[]", write: asked})

	put(t, h.user(), `{"importClaudeSettings": true}`)
	c.claude("untrusted", claudeStep{
		touch: asked, curl: "DENIED rule_denied", commit: asked, greeting: "[]", write: asked,
		warnings: []string{root + " is not trusted", "does not count (allow rules, hooks and env)", "toold trust " + root},
	})
	c.claudeRules("untrusted", file)

	h.trust(t, root)
	c.claude("trusted", claudeStep{touch: "OK", curl: "DENIED rule_denied", commit: "DENIED hook_denied", greeting: "[hello]", write: "OK"})
	c.claudeRules("trusted", file)
	if got := content(t, filepath.Join(root, "src", "trusted.txt")); got != "a\nb\n" {
		t.Errorf("the hook has left %q", got)
	}

	put(t, file, strings.Replace(claudeSettings, `"hello"`, `"good evening"`, 1))
	changed := root + " has changed since it was trusted (.claude/settings.json)"
	c.claude("changed", claudeStep{
		touch: asked, curl: "DENIED rule_denied", commit: asked, greeting: "[]", write: asked, warnings: []string{changed},
	})
	holds(t, "what the session hears", strings.Join(c.notices("settings_warning"), "\n"), changed)
}

// claude makes the calls of a step.
func (c *talk) claude(name string, want claudeStep) {
	c.t.Helper()
	end := func(id, tool, input string) string {
		c.use(name+id, tool, input)
		from := len(c.heard)
		got := outcome(c.finish(name+id, no))
		for _, event := range c.heard[from:] {
			if event.GetQuestion() != nil {
				got = "asked " + got
			}
		}
		return got
	}
	root := c.attached.GetRoots()[0]
	same(c.t, name,
		[]string{
			"touch " + end("touch", "Bash", `{"command":"touch `+name+`"}`),
			"curl " + end("curl", "Bash", `{"command":"curl localhost:1"}`),
			"commit " + end("commit", "Bash", `{"command":"git commit -m x"}`),
			"greeting " + strings.TrimSpace(textIn(c.run(name+"greeting", `touch greeting; echo "[$GREETING]"`))),
			"write " + end("write", "Write", fmt.Sprintf(`{"file_path":"%s/src/%s.txt","content":"a\r\nb\r\n"}`, root, name)),
		},
		"touch "+want.touch, "curl "+want.curl, "commit "+want.commit, "greeting "+want.greeting, "write "+want.write)
	fresh := in(root, nil)
	fresh.SessionId = "beside-" + name
	warnings := strings.Join(c.house.attach(c.t, fresh).attached.GetWarnings(), "\n")
	holds(c.t, "the warnings", warnings, want.warnings...)
	if len(want.warnings) == 0 && strings.Contains(warnings, "trust") {
		c.t.Errorf("%s: warned of %s", name, warnings)
	}
}

// claudeRules checks what holds with and without trust: what is denied, and what is asked about.
func (c *talk) claudeRules(name, file string) {
	c.t.Helper()
	root := c.attached.GetRoots()[0]
	c.use(name+"env", "Read", fmt.Sprintf(`{"file_path":"%s/.env"}`, root))
	holds(c.t, "the denial", textIn(c.finish(name+"env", no)), "Read(./.env) in "+file+":13")
	holds(c.t, "the denial", textIn(c.run(name+"secrets", "cat secrets/key")), "Read(./secrets/**) in "+file+":13")
	c.bash(name+"important", "touch important.txt")
	q := c.question(name + "important")
	holds(c.t, "the question", q.GetReason(), "Bash(touch important*) in "+file+":12")
	c.answer(answer(q, no))
	c.finish(name+"important", no)
}
