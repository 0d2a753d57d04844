//go:build !no_mcp

package main

// Which tools a client of toold mcp sees, when they come from elsewhere and when they change.

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// names lists the tools.
func (p *mcpPeer) names() (names []string) {
	p.t.Helper()
	list, err := p.ListTools(p.t.Context(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestMCPListChanged: a client is told that the session's tools are others now.
func TestMCPListChanged(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 1)
	p := meetMCP(t, peerOptions{client: mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	}})
	if names := p.names(); !slices.Contains(names, "LS") {
		t.Errorf("the tools are %v", names)
	}
	put(t, filepath.Join(filepath.Dir(p.root), "config", "toold", "settings.json"), `{"permissions": {"deny": ["LS"]}}`)
	p.ended(p.call("Glob", map[string]any{"pattern": "*"}), "ok", "")
	<-changed
	if names := p.names(); slices.Contains(names, "LS") {
		t.Errorf("the tools are %v, with one that a rule denies", names)
	}
}

// TestMCPDeferred: what other clients know by its name alone is listed whole, and can be called at once. The tools are
// those of a second daemon, of which the first is an MCP client.
func TestMCPDeferred(t *testing.T) {
	t.Parallel()
	environ, ws := home(t)
	dir := filepath.Dir(ws)
	other := filepath.Join(dir, "other", "toold.sock")
	if out, err := self(t, t.Context(), environ, ws, "start", "--socket", other).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := self(t, context.Background(), environ, ws, "stop", "--now", "--socket", other).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	settings, err := json.Marshal(map[string]any{
		"tools":       map[string]any{"deferAbove": 1},
		"permissions": map[string]any{"allow": []string{"mcp__inner__LS"}},
		"mcpServers":  map[string]any{"inner": map[string]any{"command": self(t, t.Context(), nil, "").Path, "args": []string{"mcp", "--socket", other, "--root", ws}, "env": env}},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "config", "toold", "settings.json"), string(settings))
	put(t, filepath.Join(ws, "seen"), "")
	p := joinMCP(t, environ, ws, peerOptions{})
	list, err := p.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "mcp__inner__LS" })
	if at < 0 || list.Tools[at].Description == "" || !strings.Contains(marshalled(t, list.Tools[at].InputSchema), "path") {
		t.Fatalf("the tools are %v", p.names())
	}
	p.ended(p.call("mcp__inner__LS", map[string]any{"path": "."}), "ok", "seen")
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
