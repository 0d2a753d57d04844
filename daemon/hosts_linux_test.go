// Hosts that no setting names: asked about while the connection waits. Each test has a network of its own, in which every
// address leads to the test itself, so that public addresses can be used.

package daemon_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// TestHostAnswers: a yes counts for the call, the session or the user, a no for the call; no host is asked about twice.
func TestHostAnswers(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	c := h.join("s", nil)
	c.connect("once", hostA, hostA, hostB, hostB)
	q := c.asksHost("once", hostA)
	want(t, q.GetFormSchemaJson(), "{}")
	want(t, q.GetSuggestions()[0].GetRule(), "WebFetch(domain:"+hostA+")")
	c.reply(q, allow)
	c.reply(c.asksHost("once", hostB), deny)
	r := c.until("once OK").GetToolResult()
	if got := shownIn(r); !strings.Contains(got, hostA+" 200\n"+hostA+" 200\n"+hostB+" 403\n"+hostB+" 403\n") || !strings.Contains(got, "was asked and did not permit it") {
		t.Errorf("printed %s", got)
	}
	want(t, c.questions(), 2)

	c.connect("again", hostA) // the yes was for one call
	c.reply(c.asksHost("again", hostA), allow, keep(tooldv1.Scope_SCOPE_SESSION))
	want(t, c.printed("again"), []string{hostA + " 200"})
	c.connect("session", hostA)
	want(t, c.printed("session"), []string{hostA + " 200"})

	other := h.join("other", nil) // another session sees nothing of it
	other.connect("1", hostA)
	q = other.asksHost("1", hostA)
	for _, scope := range []tooldv1.Scope{tooldv1.Scope_SCOPE_LOCAL, tooldv1.Scope_SCOPE_PROJECT} {
		answer := &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: allow}
		keep(scope)(answer)
		_, err := h.sessions().Answer(t.Context(), &tooldv1.AnswerRequest{SessionId: "other", Answer: answer})
		refused(t, err, codes.FailedPrecondition, "workspace_opens_no_host")
	}
	other.reply(q, allow, keep(tooldv1.Scope_SCOPE_USER))
	want(t, other.printed("1"), []string{hostA + " 200"})
	third := h.join("third", nil)
	third.connect("1", hostA)
	want(t, third.printed("1"), []string{hostA + " 200"})
	want(t, third.questions(), 0)
}

// TestHostQuestionsAreFew: ten connections to one host are one question, and no more than three are open; the fourth host is
// asked about when there is room.
func TestHostQuestionsAreFew(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	c := h.join("s", nil)
	c.connect("ten", append([]string{"\\\\&"}, slices.Repeat([]string{hostA}, 10)...)...)
	c.reply(c.asksHost("ten", hostA), allow)
	want(t, c.printed("ten"), slices.Repeat([]string{hostA + " 200"}, 10))
	want(t, c.questions(), 1)

	c.connect("four", "\\\\&", hostA, hostB, hostC, hostD)
	var open []*tooldv1.Question
	for len(open) < 3 {
		open = append(open, c.question("four"))
	}
	list, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, len(list.GetOpenQuestions()), 3)
	want(t, c.questions(), 4)
	c.reply(open[0], allow)
	fourth := c.question("four")
	for _, q := range append(open[1:], fourth) {
		c.reply(q, allow)
	}
	want(t, c.printed("four"), []string{hostA + " 200", hostB + " 200", hostC + " 200", hostD + " 200"})
}

// TestHostOfAnotherCall: what was allowed for one call is not for another that runs at the same time.
func TestHostOfAnotherCall(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	c := h.join("s", nil)
	c.use("b", "Bash", `{"command": "bash net.sh `+hostA+`; read -r line <gate; bash net.sh `+hostA+`", "run_in_background": true}`)
	if err := syscall.Mkfifo(filepath.Join(h.root, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	task := c.until("b OK").GetToolResult().GetStructured().AsMap()["task_id"]
	q := c.question("") // a background task asks without a call
	want(t, q.GetConnection().GetHost(), hostA)
	if !strings.Contains(q.GetTitle(), "net.sh") {
		t.Errorf("title %q, want the command", q.GetTitle())
	}
	c.reply(q, allow)
	c.connect("a", hostA)
	c.reply(c.asksHost("a", hostA), deny)
	want(t, c.printed("a"), []string{hostA + " 403"})
	if err := os.WriteFile(filepath.Join(h.root, "gate"), []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
	c.until("notice task_ended") // and was not asked again
	c.use("o", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))
	want(t, c.printed("o"), []string{hostA + " 200", hostA + " 200"})
}

// TestHostsByMode: modes and deny rules apply, and what no yes could open is not asked about.
func TestHostsByMode(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, `, "sandbox": {"network": {"deniedDomains": ["`+hostB+`"]}}`)
	modes := tooldv1.PermissionMode_name
	for _, tt := range []struct {
		mode  tooldv1.PermissionMode
		host  string
		asks  bool
		wants string
	}{
		{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, hostA, true, "200"},
		{tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS, hostA, true, "200"},
		{tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK, hostA, false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, hostA, false, "200"},
		{tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, hostB, false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS, "10.1.2.3", false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, hostB, false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, "10.1.2.3", false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, "127.0.0.1", false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, "169.254.169.254", false, "403"},
		{tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT, "localhost", false, "403"},
	} {
		name := fmt.Sprint(modes[int32(tt.mode)], " ", tt.host)
		c := h.join(strings.NewReplacer(" ", "-", "_", "-", ".", "-").Replace(name), &tooldv1.Options{PermissionMode: tt.mode.Enum()})
		c.connect("1", tt.host)
		if tt.asks {
			c.reply(c.asksHost("1", tt.host), allow)
		}
		if got := shownIn(c.until("1 OK").GetToolResult()); !strings.Contains(got, tt.host+" "+tt.wants+"\n") {
			t.Errorf("%s: printed %s", name, got)
		}
		if want := map[bool]int{true: 1}[tt.asks]; c.questions() != want {
			t.Errorf("%s: asked %d times", name, c.questions())
		}
	}
}

// TestHostsDecidedMeanwhile: an open question is withdrawn when settings or mode decide it, and the connection goes on by that.
func TestHostsDecidedMeanwhile(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	c := h.join("s", nil)
	for _, tt := range []struct{ id, settings, want string }{
		{"allowed", `"sandbox": {"network": {"allowedDomains": ["` + hostA + `"]}}`, "200"},
		{"denied", `"permissions": {"deny": ["WebFetch(domain:` + hostA + `)"]}`, "403"},
	} {
		c.connect(tt.id, hostA)
		c.asksHost(tt.id, hostA)
		c = h.join("s", &tooldv1.Options{SettingsJson: proto.String("{" + tt.settings + "}")})
		want(t, c.printed(tt.id), []string{hostA + " " + tt.want})
		c = h.join("s", &tooldv1.Options{SettingsJson: proto.String("{}")})
	}
}

// TestHostDeniedAfterAYes: a deny rule that comes after a yes for the call counts for the call's next connection.
func TestHostDeniedAfterAYes(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	for _, gate := range []string{"first", "second"} {
		if err := syscall.Mkfifo(filepath.Join(h.root, gate), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.file("net.sh", connectScript+"read -r line <first; one $1; read -r line <second; one $1\n")
	c := h.join("s", nil)
	c.connect("1", hostA)
	c.reply(c.asksHost("1", hostA), allow)
	next := func(gate, options string) {
		f, err := os.OpenFile(filepath.Join(h.root, gate), os.O_WRONLY, 0) // opens when the connection before is over
		if err != nil {
			t.Fatal(err)
		}
		c = h.join("s", &tooldv1.Options{SettingsJson: proto.String(options)})
		_, _ = io.WriteString(f, "on\n")
		f.Close()
	}
	next("first", `{"permissions": {"defaultMode": "dontAsk"}}`) // nothing has to be asked about again
	next("second", `{"permissions": {"deny": ["WebFetch(domain:`+hostA+`)"]}}`)
	want(t, c.printed("1"), []string{hostA + " 200", hostA + " 200", hostA + " 403"})
}

// TestLateYes: a connection is not held for ever, and a yes that comes too late for it counts for the next one; time that
// connections were held is no time that the call ran.
func TestLateYes(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, `, "limits": {"held_connection": 0.05}`)
	if err := syscall.Mkfifo(filepath.Join(h.root, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.file("net.sh", connectScript+"read -r line <gate; one $1\n")
	c := h.join("s", nil)
	c.connect("1", hostA)
	q := c.asksHost("1", hostA)
	gate := filepath.Join(h.root, "gate")
	f, err := os.OpenFile(gate, os.O_WRONLY, 0) // opens when the first connection was refused
	if err != nil {
		t.Fatal(err)
	}
	c.reply(q, allow)
	c.until("1 withdrawn")
	_, _ = io.WriteString(f, "on\n")
	f.Close()
	want(t, c.printed("1"), []string{hostA + " 200", hostA + " 403"})
	want(t, c.questions(), 1)
}

// TestHeldTimeIsAsked: while a connection is held the call waits for an answer, and does not run.
func TestHeldTimeIsAsked(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, `, "limits": {"held_connection": 0.3}`)
	c := h.join("s", nil)
	c.connect("1", hostA)
	c.asksHost("1", hostA)
	r := c.until("1 OK").GetToolResult()
	if !strings.Contains(shownIn(r), hostA+" 403") || r.GetUsage().GetAsked().AsDuration() <= 0 {
		t.Errorf("usage %v, printed %s", r.GetUsage(), shownIn(r))
	}
}

// TestNobodyAsksForHosts: where no client can answer, the connection is refused at once, with the setting.
func TestNobodyAsksForHosts(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}})
	c.connect("1", hostA)
	if got := shownIn(c.until("1 OK").GetToolResult()); !strings.Contains(got, hostA+" 403") || !strings.Contains(got, `"allowedDomains":["`+hostA+`"]}}} to `+h.settings) {
		t.Errorf("printed %s", got)
	}
	c.connect("ten", slices.Repeat([]string{hostA}, 11)...)
	c.until("ten ERROR host_refused")
}

// TestClientGoneWhileHeld: the question waits for the client, who may answer it when it is back; a cancelled call takes it
// along.
func TestClientGoneWhileHeld(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	c := h.join("s", nil)
	c.connect("1", hostA)
	c.asksHost("1", hostA)
	c.cancel()
	_ = c.closed()
	c = h.join("s", nil)
	c.reply(c.asksHost("1", hostA), allow)
	want(t, c.printed("1"), []string{hostA + " 200"})
	c.connect("2", hostA)
	q := c.asksHost("2", hostA)
	c.cancelCall("2")
	c.until("2 withdrawn")
	c.until("2 CANCELLED")
	_, err := h.sessions().Answer(context.Background(), &tooldv1.AnswerRequest{SessionId: "s", Answer: &tooldv1.Answer{
		QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: allow,
	}})
	refused(t, err, codes.FailedPrecondition, "question_closed")
}

// TestInstallFromAllowedHost: one yes to the question about its registry lets npm install a package.
func TestInstallFromAllowedHost(t *testing.T) {
	if exec.Command("npm", "--version").Run() != nil {
		ownspace.Lacks(t, "install npm")
	}
	if !ownspace.InNetwork(t) {
		return
	}
	t.Setenv("HOME", t.TempDir())
	h := wired(t, "")
	registry := serveRegistry(t)
	c := h.join("s", nil)
	c.use("1", "Bash", fmt.Sprintf(`{"command": "npm install --no-audit --no-fund --registry http://%s greeter && cat node_modules/greeter/package.json", "timeout": 60000}`, registry))
	c.reply(c.question("1"), allow) // to run
	q := c.question("1")
	if to := q.GetConnection(); to.GetHost() != hostA || !strings.HasSuffix(registry, fmt.Sprint(":", to.GetPort())) || !strings.HasPrefix(to.GetProgram(), "npm") {
		t.Errorf("asks about %v", to)
	}
	c.reply(q, allow)
	r := c.until("1 OK").GetToolResult()
	if !strings.Contains(shownIn(r), `"name": "greeter"`) {
		t.Errorf("printed %s", shownIn(r))
	}
	want(t, c.questions(), 2)
}

// TestKilledWhileHeld: after kill -9 the call that was asked about has its one result, and nobody is asked any more.
func TestKilledWhileHeld(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	h.stop()
	kill := h.spawn()
	c := h.join("s", nil)
	c.connect("1", hostA)
	c.asksHost("1", hostA)
	kill()
	h.start()
	c = h.join("s", nil)
	want(t, outcomes(resultsOf(h.records("s"))), map[string]string{"1": "INTERRUPTED interrupted"})
	list, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, len(list.GetOpenQuestions()), 0)
	c.connect("2", hostA) // and again in the new daemon
	c.reply(c.asksHost("2", hostA), allow)
	want(t, c.printed("2"), []string{hostA + " 200"})
}

// TestBackgroundTaskAsks: who attaches later is asked about a background task's host too, once more, and not any more when the
// task has ended.
func TestBackgroundTaskAsks(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	h := wired(t, "")
	first := h.join("s", nil)
	run := func(c *conversation, id string) any {
		c.use(id, "Bash", `{"command": "bash net.sh `+hostA+`", "run_in_background": true}`)
		return c.until(id + " OK").GetToolResult().GetStructured().AsMap()["task_id"]
	}
	task := run(first, "1")
	before := first.question("")
	c := h.join("s", nil)
	q := c.question("")
	for q.GetQuestionId() == before.GetQuestionId() { // which was withdrawn
		q = c.question("")
	}
	c.reply(before, allow)
	c.until("notice question_closed")
	c.reply(q, allow)
	c.until("notice task_ended")
	c.use("o", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))
	want(t, c.printed("o"), []string{hostA + " 200"})

	task = run(c, "2")
	before = c.question("")
	watch, err := h.sessions().Watch(t.Context(), &tooldv1.WatchRequest{SessionId: "s", Answers: true}) // as "toold attach" does
	if err != nil {
		t.Fatal(err)
	}
	for {
		response, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if again := response.GetEvent().GetQuestion(); again != nil && again.GetQuestionId() != before.GetQuestionId() {
			break
		}
	}
	c.use("k", "KillShell", fmt.Sprintf(`{"shell_id": %q}`, task))
	c.until(" withdrawn: the background task that asked has ended")
	list, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, len(list.GetOpenQuestions()), 0)
}
