// The MCP servers that a workspace names: never started before a client has approved them.

package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestApproval: who attaches is asked, a yes holds for that entry, a changed one is asked for again.
func TestApproval(t *testing.T) {
	h := serve(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.root, "kit"), program, 0o755); err != nil { // where the sandbox lets it be seen
		t.Fatal(err)
	}
	entry := func(fillers int) string {
		return fmt.Sprintf(`{"mcpServers": {"kit": {"command": "./kit", "env": {%q: "%d", "GORACE": "atexit_sleep_ms=0"}}}}`, mcpFillers, fillers)
	}
	h.file(".mcp.json", entry(0))
	trusted := &tooldv1.Options{Trusted: proto.Bool(true)}
	silent := h.converse()
	silent.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Options: trusted})
	if text := silent.until("notice mcp_server_unapproved").GetNotice().GetMessage(); !strings.Contains(text, "enabledMcpjsonServers") {
		t.Errorf("told %q", text)
	}
	c := h.join("s", nil)
	q := c.until(" asks").GetQuestion()
	if !strings.Contains(q.GetInputJson(), "kit") || q.GetToolUseId() != "" || !strings.Contains(q.GetReason(), ".mcp.json") {
		t.Errorf("asked %v", q)
	}
	described, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if open := described.GetOpenQuestions(); err != nil || len(open) != 1 || !proto.Equal(open[0], q) {
		t.Errorf("the open questions are %v (%v), and not\n%v", open, err, q)
	}
	for _, tool := range h.offers("s", 0).GetTools() {
		if strings.HasPrefix(tool.GetName(), "mcp__") {
			t.Fatalf("%s is there before anybody has approved its server", tool.GetName())
		}
	}
	c.cancel()
	c = h.join("s", nil)
	q = c.until(" asks").GetQuestion()
	c.reply(q, tooldv1.Decision_DECISION_ALLOW)
	c.until("notice tools_changed")
	again := h.join("other", trusted)
	if h.offers("other", 0); again == nil {
		t.Fatal("no stream")
	}
	if text := h.offers("other", tooldv1.ToolFormat_TOOL_FORMAT_MCP).GetDefinitionsJson(); !strings.Contains(text, "mcp__kit__look") {
		t.Errorf("an approved server is not there in another session: %s", text)
	}
	h.file(".mcp.json", entry(1))
	third := h.join("third", trusted)
	third.reply(third.until(" asks").GetQuestion(), tooldv1.Decision_DECISION_DENY)
	if text := h.offers("third", tooldv1.ToolFormat_TOOL_FORMAT_MCP).GetDefinitionsJson(); strings.Contains(text, "mcp__kit__tool00") {
		t.Errorf("a server is there that was denied: %s", text)
	}
}

// withSettings attaches with settings of the session's own.
func (h *house) withSettings(session, text string, answers bool) *conversation {
	h.t.Helper()
	c := h.converse()
	c.attach(&tooldv1.Attach{
		SessionId: session, Roots: []string{h.root}, Options: &tooldv1.Options{Trusted: proto.Bool(true), SettingsJson: &text},
		Capabilities: &tooldv1.Capabilities{Answers: answers},
	})
	return c
}

// TestApprovalSecrets: what is asked and told of servers has no value of a variable of the daemon's, and nor has the journal.
func TestApprovalSecrets(t *testing.T) {
	t.Setenv("TOOLD_TEST_SECRET", "the-daemons-secret")
	asked := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path + " " + r.Header.Get("X-Key"):
		default:
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer web.Close()
	h := serve(t)
	h.file(".mcp.json", fmt.Sprintf(`{"mcpServers": {
		"web": {"url": "%s/${TOOLD_TEST_SECRET}", "headers": {"X-Key": "${TOOLD_TEST_SECRET}"}},
		"run": {"command": "false", "args": ["-k", "${TOOLD_TEST_SECRET}"], "env": {"KEY": "${TOOLD_TEST_SECRET}"}}}}`, web.URL))
	c := h.withSettings("s", "{}", true)
	for range 2 {
		q := c.until(" asks").GetQuestion()
		if !strings.Contains(q.GetInputJson(), `"references":["TOOLD_TEST_SECRET"]`) || !strings.Contains(q.GetReason(), "values that the daemon has of TOOLD_TEST_SECRET") {
			t.Errorf("asked %v", q)
		}
		c.reply(q, tooldv1.Decision_DECISION_ALLOW)
	}
	for range 2 {
		c.until("notice mcp_server_failed")
	}
	if got := <-asked; got != "/the-daemons-secret the-daemons-secret" {
		t.Errorf("the server was asked for %q", got)
	}
	for _, event := range append(h.records("s"), c.events...) {
		if strings.Contains(fmt.Sprint(event), "the-daemons-secret") {
			t.Errorf("told %v", event)
		}
	}
	h.stop()
	err := filepath.WalkDir(h.state, func(path string, file os.DirEntry, err error) error {
		if err != nil || !file.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "the-daemons-secret") {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSessionServer: a server of a session's own settings is asked about, gets no variable of the daemon's, and is confined.
func TestSessionServer(t *testing.T) {
	t.Setenv("TOOLD_TEST_SECRET", "the-daemons-secret")
	h := serve(t)
	outside := filepath.Join(h.state, "outside")
	text := fmt.Sprintf(`{"mcpServers": {"x": {"command": "sh", "sandbox": false, "env": {"X": "${TOOLD_TEST_SECRET}"},
		"args": ["-c", "echo \"$X\" \"$0\" >ran; echo >%s", "${TOOLD_TEST_SECRET}"]}}}`, outside)
	silent := h.withSettings("silent", text, false)
	if told := silent.until("notice mcp_server_unapproved").GetNotice().GetMessage(); !strings.Contains(told, "mcpServers of your settings") {
		t.Errorf("told %q", told)
	}
	c := h.withSettings("s", text, true)
	q := c.until(" asks").GetQuestion()
	if !strings.Contains(q.GetTitle(), "options.settings_json") || strings.Contains(q.GetInputJson(), "references") {
		t.Errorf("asked %v", q)
	}
	if _, err := os.Stat(filepath.Join(h.root, "ran")); err == nil {
		t.Error("it ran before anybody has approved it")
	}
	c.reply(q, tooldv1.Decision_DECISION_ALLOW)
	c.until("notice mcp_server_failed") // it speaks no MCP
	got, err := os.ReadFile(filepath.Join(h.root, "ran"))
	if err != nil || string(got) != "${TOOLD_TEST_SECRET} ${TOOLD_TEST_SECRET}\n" {
		t.Errorf("it was given %q, %v", got, err)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("it wrote where the sandbox lets nobody write")
	}
}

// TestApprovalRetracted: nobody is asked for what a rule removes, and a question about what has changed or gone is taken back.
func TestApprovalRetracted(t *testing.T) {
	h := prepare(t)
	h.configure(`{"permissions": {"deny": ["mcp__denied"]}}`)
	h.start()
	change := func(servers string) {
		t.Helper()
		h.file(".mcp.json", `{"mcpServers": {"denied": {"command": "false"}`+servers+`}}`)
		h.offers("s", 0) // looks at the files
	}
	c := h.withSettings("s", "{}", true)
	change(`, "a": {"command": "false"}`)
	first := c.until(" asks").GetQuestion()
	change(`, "a": {"command": "false", "args": ["x"]}`)
	c.until(" withdrawn: its entry has changed")
	second := c.until(" asks").GetQuestion()
	if !strings.Contains(first.GetTitle(), "server a ") || second.GetInputDigest() == first.GetInputDigest() {
		t.Errorf("asked %v, then %v", first, second)
	}
	change("")
	c.until(" withdrawn: its entry has changed")
	change(`, "a": {"command": "false"}`)
	c.until(" asks")
	h.configure(`{"permissions": {"deny": ["mcp__denied", "mcp__a"]}}`)
	h.offers("s", 0)
	c.until(" withdrawn: its entry has changed")
	for _, event := range h.records("s") {
		if strings.Contains(event.GetQuestion().GetTitle(), "denied") {
			t.Errorf("asked %v", event.GetQuestion())
		}
	}
}

// TestUntrustedServers: a workspace that nobody trusts has no servers, and nobody is asked for them.
func TestUntrustedServers(t *testing.T) {
	h := serve(t)
	h.file(".mcp.json", fmt.Sprintf(`{"mcpServers": {"kit": %s}}`, mcpEntry(t, 0)))
	c := h.join("s", nil)
	c.use("r", "Read", `{"file_path":"`+h.root+`/.mcp.json"}`)
	c.until("r OK")
	for _, words := range story(c.events) {
		if strings.Contains(words, "asks") {
			t.Errorf("%v", story(c.events))
		}
	}
}
