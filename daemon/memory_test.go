package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestMemory: notes outlive their session and the daemon, are of one user and root, and undo leaves them as they are.
func TestMemory(t *testing.T) {
	h := serve(t)
	remember := func(c *conversation, id, input string) string {
		result := c.do(id, "Memory", input)
		return fmt.Sprintf("%s %s%s", result.GetOutcome(), result.GetContent()[0].GetText(), result.GetError().GetCode())
	}
	c := h.join("s", free())
	if got := remember(c, "1", `{"command": "create", "path": "/memories/a", "file_text": "note"}`); got != "OUTCOME_OK File created successfully at: /memories/a" {
		t.Error(got)
	}
	if got := h.checkpoints("s"); len(got) > 0 {
		t.Errorf("there are checkpoints: %v", got)
	}
	if found, err := filepath.Glob(filepath.Join(h.state, "memory", "*", "memories", "a")); len(found) != 1 || err != nil {
		t.Errorf("below the state directory there is %v, %v", found, err)
	}
	h.stop()
	h.start()
	const view = `{"command": "view", "path": "/memories/a"}`
	if got := remember(h.join("t", free()), "2", view); !strings.HasSuffix(got, "\tnote") {
		t.Errorf("another session, after a restart: %s", got)
	}
	other := h.converse()
	other.attach(&tooldv1.Attach{SessionId: "u", Roots: []string{t.TempDir(), h.root}, Options: free()})
	if got := remember(other, "3", view); !strings.Contains(got, "memory_not_found") {
		t.Errorf("a session with another first root: %s", got)
	}
}

// TestMemoryRules: a view is free, a change asks, and a deny rule is about what lies below a directory too.
func TestMemoryRules(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	c.do("1", "Memory", `{"command": "create", "path": "/memories/d/a.secret", "file_text": "x"}`)
	for _, test := range []struct{ settings, input, want string }{
		{`{}`, `{"command": "view", "path": "/memories/d/a.secret"}`, "DECISION_ALLOW LEVEL_SAFE read_only"},
		{`{}`, `{"command": "delete", "path": "/memories/d"}`, "DECISION_ASK LEVEL_CONFIRM no_rule_memory no_rule_memory"},
		{`{"permissions": {"defaultMode": "acceptEdits"}}`, `{"command": "delete", "path": "/memories/d"}`, "DECISION_ALLOW LEVEL_CONFIRM accept_edits"},
		{`{"permissions": {"allow": ["Memory(d/**)"]}}`, `{"command": "delete", "path": "/memories/d"}`, "DECISION_ALLOW LEVEL_CONFIRM rule rule"},
		{`{"permissions": {"allow": ["Memory"]}}`, `{"command": "create", "path": "/memories/x", "file_text": ""}`, "DECISION_ALLOW LEVEL_CONFIRM rule"},
		{`{"permissions": {"deny": ["Memory(*.secret)"]}}`, `{"command": "view", "path": "/memories/d"}`, "DECISION_ALLOW LEVEL_SAFE read_only"},
		{`{"permissions": {"deny": ["Memory(*.secret)"]}}`, `{"command": "view", "path": "/memories/d/a.secret"}`, "DECISION_DENY LEVEL_FORBIDDEN rule"},
		{`{"permissions": {"deny": ["Memory(*.secret)"]}}`, `{"command": "delete", "path": "/memories/d"}`, "DECISION_DENY LEVEL_FORBIDDEN rule"},
		{`{"permissions": {"deny": ["Memory(*.secret)"]}}`, `{"command": "rename", "old_path": "/memories/d", "new_path": "/memories/e"}`, "DECISION_DENY LEVEL_FORBIDDEN rule"},
		{`{"permissions": {"defaultMode": "plan"}}`, `{"command": "create", "path": "/memories/x", "file_text": ""}`, "DECISION_DENY LEVEL_CONFIRM no_rule_memory"},
	} {
		if err := os.WriteFile(h.settings, []byte(test.settings), 0o600); err != nil {
			t.Fatal(err)
		}
		use := &tooldv1.ToolUse{Name: "Memory", Arguments: &tooldv1.ToolUse_InputJson{InputJson: test.input}}
		got, err := h.daemon().Explain(t.Context(), &tooldv1.ExplainRequest{ToolUse: use})
		if err != nil {
			t.Fatal(err)
		}
		said := got.GetDecision().String() + " " + got.GetLevel().String()
		for _, g := range got.GetGrounds() {
			said += " " + g.GetCode()
		}
		if said != test.want {
			t.Errorf("%s %s\n got  %s\n want %s", test.settings, test.input, said, test.want)
		}
	}
}
