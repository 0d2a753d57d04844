package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// toold runs a command as a script would, and returns what it prints.
func (h *house) toold(t *testing.T, dir string, code int, args ...string) string {
	t.Helper()
	cmd := self(t, t.Context(), h.environ, dir, args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("toold %q: exit code %d, want %d (%v)\n%s", args, got, code, err, out)
	}
	return string(out)
}

// A script answers questions that another client's session asks.
func TestAnswer(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "asks", nil)
	c := h.attach(t, in(root, nil))
	c.bash("a", "echo x > a.txt")
	q := c.question("a")
	holds(t, "the list", h.toold(t, root, cli.ExitOK, "answer"), q.GetQuestionId(), "session asks, call a", "Bash(echo x > a.txt)")
	holds(t, "the list", h.toold(t, root, cli.ExitOK, "answer", "--json"), `{"session_id":"asks","question":{"question_id":"`+q.GetQuestionId(), q.GetInputDigest())
	holds(t, "the refusal", h.toold(t, root, cli.ExitFailed, "answer", "none", "yes"), `the question "none" is not open`, `"toold answer" lists`)
	holds(t, "the refusal", h.toold(t, root, cli.ExitUsage, "answer", "a", "perhaps"), "neither yes nor no", `Run "toold answer --help"`)
	h.apart(t, root, "answer", q.GetQuestionId(), "yes")
	c.until("a OK")

	c.bash("b", "echo x > b.txt")
	c.question("b")
	h.apart(t, root, "answer", "b", "no", "use another file")
	if r := c.until("b DENIED").GetToolResult(); !strings.Contains(textIn(r), "use another file") {
		t.Errorf("the model is not told why: %s", textIn(r))
	}

	c.bash("c", "echo x > c.txt")
	c.question("c")
	h.apart(t, root, "answer", "c", "yes", "--remember", "session")
	c.until("c OK")
	c.bash("d", "echo x > d.txt") // which the rule allows
	c.until("d OK")
	holds(t, "the list", h.toold(t, root, cli.ExitOK, "answer"), "no open questions")
}

// A script stops calls, a turn, background tasks and a session of another client's.
func TestCancelAndClose(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "busy", nil)
	mode := tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS
	c := h.attach(t, in(root, &tooldv1.Options{PermissionMode: &mode}))
	c.bash("a", forever)
	c.bash("b", "touch never")
	c.until("a started")
	holds(t, "the refusal", h.toold(t, root, cli.ExitFailed, "cancel", "none"), `no call or background task "none" is open`)
	holds(t, "the refusal", h.toold(t, root, cli.ExitUsage, "cancel"), "name calls, or choose --turn or --all")
	holds(t, "what is said", h.toold(t, root, cli.ExitOK, "cancel", "b"), "stopped call b in session busy")
	c.until("b CANCELLED")
	holds(t, "what is said", h.toold(t, root, cli.ExitOK, "cancel", "a"), "stopped call a in session busy")
	if r := c.until("a CANCELLED").GetToolResult(); !strings.Contains(textIn(r), cancelReason) {
		t.Errorf("the model is not told why: %s", textIn(r))
	}
	c.endTurn()

	c.bash("c", forever)
	c.bash("d", "touch never")
	c.until("c started")
	holds(t, "what is said", h.toold(t, root, cli.ExitOK, "cancel", "--turn"), "stopped turn in session busy")
	c.until("c CANCELLED")
	c.endTurn()

	c.use("e", "Bash", `{"command":"`+forever+`","run_in_background":true}`)
	c.until("e OK")
	c.bash("f", forever)
	c.until("f started")
	holds(t, "what is said", h.toold(t, root, cli.ExitOK, "cancel", "--all"), "stopped call f in session busy", "stopped background task bash_")
	c.until("f CANCELLED")
	c.endTurn()
	if content(t, filepath.Join(root, "never")) != "" {
		t.Error("what waited has run")
	}

	holds(t, "what is said", h.toold(t, root, cli.ExitOK, "close", "busy"), "closed session busy")
	c.until("closed")
	holds(t, "the refusal", h.toold(t, root, cli.ExitFailed, "close", "busy"), `"toold sessions --all" lists the sessions`)
}

// The log shows what a call was asked to do, without secrets.
func TestLogInput(t *testing.T) {
	h := newHouse(t, nil)
	root := h.room(t, "logged", nil)
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	h.toold(t, root, cli.ExitOK, "call", "Grep", "pattern="+secret, "path=.", "head_limit=3", "--session", "logged")
	out := h.toold(t, root, cli.ExitOK, "log", "--session", "logged", "--input")
	holds(t, "the log", out, `"pattern": "`, `"head_limit": 3`, `"path": "`+root+`"`)
	if strings.Contains(out, secret) {
		t.Errorf("the log has the secret:\n%s", out)
	}
	if out := h.toold(t, root, cli.ExitOK, "log", "--session", "logged"); strings.Contains(out, "head_limit") {
		t.Errorf("the input is shown unasked:\n%s", out)
	}
	call, err := h.link.Sessions.GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "logged"})
	if err != nil || len(call.GetOpenCalls()) > 0 {
		t.Errorf("%v, %v", call, err)
	}
	c := h.watch(t, "logged")
	id := ""
	for id == "" {
		a := c.until("").GetAccepted()
		if id = a.GetToolUseId(); a.GetInputJson() != "" {
			t.Errorf("a watcher that did not ask for it is sent the input %s", a.GetInputJson())
		}
	}
	got, err := h.link.Tools.GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "logged", ToolUseId: id})
	if err != nil || !strings.Contains(got.GetInputJson(), `"head_limit":3`) || strings.Contains(got.GetInputJson(), secret) {
		t.Errorf("GetCall has the input %s (%v)", got.GetInputJson(), err)
	}
}
