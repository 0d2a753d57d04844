package daemon_test

// The MCP servers that a workspace names: never started before somebody has said so.

import (
	"fmt"
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
		return fmt.Sprintf(`{"mcpServers": {"kit": {"command": "./kit", "env": {%q: "%d"}}}}`, mcpFillers, fillers)
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
