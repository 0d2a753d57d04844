// Which tools a client may name as the only ones that it wants.

package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func only(names ...string) *tooldv1.Options {
	return &tooldv1.Options{Tools: &tooldv1.ToolList{Names: names}}
}

// TestOnly: tools of every origin can be named, also those that are still to come, and an unknown one is reported.
func TestOnly(t *testing.T) {
	h := kit(t, 0, "")
	h.offer("s", tooldv1.Role_ROLE_COMPANION, askUser())
	h.join("s", only("Read", "Greet", "mcp__kit__look", "AskUser", "Deploy"))
	list, err := h.tools().ListTools(t.Context(), &tooldv1.ListToolsRequest{SessionId: "s", IncludeUnavailable: true})
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for _, tool := range list.GetTools() {
		if tool.GetUnavailable() == "" {
			has = append(has, tool.GetName())
		}
		if missing := strings.Contains(tool.GetUnavailable(), "there is no tool of that name"); missing != (tool.GetName() == "Deploy") {
			t.Errorf("%s: %q", tool.GetName(), tool.GetUnavailable())
		}
	}
	want(t, has, []string{"Read", "Greet", "mcp__kit__look", "AskUser"})
	c := h.join("s", nil)
	c.use("d", "Deploy", `{}`)
	if text := c.until("d INVALID unknown_tool").GetToolResult().GetContent()[0].GetText(); !strings.Contains(text, "there is no tool of that name") {
		t.Errorf("told %q", text)
	}
	explained, err := h.daemon().Explain(t.Context(), &tooldv1.ExplainRequest{SessionId: "s", ToolUse: &tooldv1.ToolUse{Name: "Greet"}, Options: only("Greet")})
	if err != nil || explained.GetError() != nil {
		t.Errorf("explained %v, %v", explained, err)
	}
	for i, form := range []string{"mcp__kit", "mcp__kit__*"} {
		session := fmt.Sprint("server", i)
		h.join(session, only(form))
		tools := h.offers(session, 0).GetTools()
		for _, tool := range tools {
			if !strings.HasPrefix(tool.GetName(), "mcp__kit__") {
				t.Errorf("%s names %s", form, tool.GetName())
			}
		}
		if len(tools) < 4 {
			t.Errorf("%s names %d tools", form, len(tools))
		}
	}
}

// TestOnlyRefused: what can be no tool, and what is probably a built-in one.
func TestOnlyRefused(t *testing.T) {
	h := kit(t, 0, "")
	for name, told := range map[string]string{
		"Raed": "probably Read", "read": "probably Read", "Writee": "probably Write", "Bsah": "probably Bash", "ToolSerch": "probably ToolSearch",
		"mcp__*": "can be no tool", "mcp__kit*": "can be no tool", "mcp__kit__l*": "can be no tool", "a b": "can be no tool", "": "can be no tool", "*": "can be no tool",
		strings.Repeat("x", 65): "can be no tool",
	} {
		_, err := h.daemon().Explain(t.Context(), &tooldv1.ExplainRequest{ToolUse: &tooldv1.ToolUse{Name: "Greet"}, Options: only("Greet", name)})
		if reasonOf(err) != "invalid_option" || status.Code(err) != codes.InvalidArgument || !strings.Contains(fmt.Sprint(err), told) {
			t.Errorf("%q: %v, want %q", name, err, told)
		}
	}
	for _, name := range []string{"Task", "Ask", "Greet", "Git", "Deploy", "mcp__none", "Reader"} {
		if _, err := h.daemon().Explain(t.Context(), &tooldv1.ExplainRequest{ToolUse: &tooldv1.ToolUse{Name: "Greet"}, Options: only(name)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingDeferred: where nothing could activate a tool, none is deferred.
func TestNothingDeferred(t *testing.T) {
	h := kit(t, 40, `, "permissions": {"deny": ["ToolSearch"]}`)
	h.join("s", nil)
	if list := h.offers("s", tooldv1.ToolFormat_TOOL_FORMAT_MCP); list.GetDeferredPrompt() != "" || !strings.Contains(list.GetDefinitionsJson(), "mcp__kit__tool39") {
		t.Errorf("%.200s, %.200s", list.GetDeferredPrompt(), list.GetDefinitionsJson())
	}
}
