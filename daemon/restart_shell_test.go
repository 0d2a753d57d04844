package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRestartOfTheShell: directory and exports are those of the session's beginning, also after a restart of the daemon; what runs
// in the background goes on.
func TestRestartOfTheShell(t *testing.T) {
	h := serve(t)
	if err := os.Mkdir(filepath.Join(h.root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := h.join("s", free())
	text := func(id, input string) string {
		result := c.do(id, "Bash", input)
		return strings.TrimSpace(result.GetContent()[0].GetText() + " " + result.GetError().GetCode())
	}
	const look = `{"command": "pwd; echo \"[$X]\""}`
	text("1", `{"command": "cd sub; export X=1"}`)
	if got := text("2", look); !strings.HasSuffix(got, "/sub\n[1]") {
		t.Errorf("before: %q", got)
	}
	task := c.do("3", "Bash", `{"command": "sleep 600", "run_in_background": true}`).GetStructured().GetFields()["task_id"].GetStringValue()
	if got := text("4", `{"command": "", "restart": true}`); !strings.HasPrefix(got, "The next command runs in a new shell") {
		t.Error(got)
	}
	if got := text("5", look); strings.Contains(got, "/sub") || !strings.HasSuffix(got, "[]") {
		t.Errorf("after: %q", got)
	}
	if got := c.do("6", "BashOutput", `{"bash_id": "`+task+`"}`).GetStructured().GetFields()["status"].GetStringValue(); got != "running" {
		t.Errorf("the background task is %q", got)
	}
	if got := text("7", `{"command": "pwd", "restart": true}`); !strings.HasSuffix(got, "invalid_input") {
		t.Errorf("with a command: %q", got)
	}
	h.stop()
	h.start()
	c = h.join("s", free())
	if got := text("8", look); strings.Contains(got, "/sub") || !strings.HasSuffix(got, "[]") {
		t.Errorf("after a restart of the daemon: %q", got)
	}
}
