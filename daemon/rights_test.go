package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestCriticalByEnvironment: what the call's variables hold counts when it is looked for critical commands. Nothing is run.
func TestCriticalByEnvironment(t *testing.T) {
	h := serve(t)
	for command, want := range map[string]tooldv1.Decision{
		"rm -rf $Y": tooldv1.Decision_DECISION_ASK, "rm -rf $N": tooldv1.Decision_DECISION_ALLOW,
	} {
		got, err := tooldv1.NewDaemonServiceClient(h.conn).Explain(t.Context(), &tooldv1.ExplainRequest{
			ToolUse: &tooldv1.ToolUse{Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"command": "` + command + `"}`}},
			Options: &tooldv1.Options{
				PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum(), SettingsJson: new(`{"env": {"Y": "/usr", "N": "new"}}`),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.GetDecision() != want {
			t.Errorf("%s: %s %q, want %s", command, got.GetDecision(), got.GetReasons(), want)
		}
	}
}

// TestLinkedPlaces: where home is a link, and the user's settings file is one into the workspace, rules and protection are
// about what they lead to as well.
func TestLinkedPlaces(t *testing.T) {
	h := prepare(t)
	place := t.TempDir()
	home := filepath.Join(t.TempDir(), "home")
	h.root = filepath.Join(place, "work")
	settings := filepath.Join(h.root, "dotfiles.json")
	for name, content := range map[string]string{
		filepath.Join(h.root, "x"): "{}", filepath.Join(place, ".ssh", "id"): "secret", filepath.Join(place, "notes", "a"): "note",
		settings: `{"permissions": {"deny": ["Read(~/.ssh/**)"], "allow": ["Read(~/notes/**)"]}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{home: place, h.settings: settings} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	h.start()
	for _, c := range []struct {
		tool, input string
		mode        tooldv1.PermissionMode
		want        tooldv1.Decision
		first       string // what the first reason begins with
	}{
		{"Bash", `{"command": "cat ../.ssh/id"}`, tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, tooldv1.Decision_DECISION_DENY, "The rule Read(~/.ssh/**)"},
		{"Read", `{"file_path": "` + home + `/.ssh/id"}`, tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, tooldv1.Decision_DECISION_DENY, "The rule Read(~/.ssh/**)"},
		{"Read", `{"file_path": "` + home + `/notes/a"}`, tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, tooldv1.Decision_DECISION_ALLOW, "The rule Read(~/notes/**)"},
		{"Bash", `{"command": "mv x dotfiles.json"}`, tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS, tooldv1.Decision_DECISION_ASK, "It would change " + settings},
		{"Bash", `{"command": "mv x dotfiles.json"}`, tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK, tooldv1.Decision_DECISION_DENY, "The permission mode dontAsk"},
		{"Bash", `{"command": "mv x y"}`, tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS, tooldv1.Decision_DECISION_ALLOW, "The permission mode acceptEdits"},
	} {
		got, err := tooldv1.NewDaemonServiceClient(h.conn).Explain(t.Context(), &tooldv1.ExplainRequest{
			ToolUse: &tooldv1.ToolUse{Name: c.tool, Arguments: &tooldv1.ToolUse_InputJson{InputJson: c.input}}, Options: &tooldv1.Options{PermissionMode: c.mode.Enum()},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.GetDecision() != c.want || len(got.GetReasons()) == 0 || !strings.HasPrefix(got.GetReasons()[0], c.first) {
			t.Errorf("%s %s in %s: %s %q, want %s with %q first", c.tool, c.input, c.mode, got.GetDecision(), got.GetReasons(), c.want, c.first)
		}
	}
}
