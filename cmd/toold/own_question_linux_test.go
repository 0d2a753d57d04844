//go:build !no_mcp

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAttachAnswersForMCP: a question of an MCP client that has no elicitation waits for a terminal that watches the session. What
// the client's own parent has started cannot answer it, and the daemon's log names who tried and who did.
func TestAttachAnswersForMCP(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{args: []string{"--session", "work"}})
	file := filepath.Join(p.root, "new.txt")
	write := func() *mcp.CallToolResult {
		result, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "Write", Arguments: map[string]any{"file_path": file, "content": "x\n"}})
		if err != nil {
			t.Errorf("Write: %v", err)
			return &mcp.CallToolResult{}
		}
		return result
	}
	p.ended(write(), "denied", "toold attach work")
	own := onlyTerminal(t, p.environ, p.root, "attach", "work")
	ended := make(chan *mcp.CallToolResult)
	go func() {
		for {
			if result := write(); !strings.Contains(fmt.Sprint(result.Meta["toold/error"]), "cannot_ask") { // until the terminal is there
				ended <- result
				return
			}
		}
	}()
	own.expect(`Run it\?`)
	own.typed("y\n")
	own.expect("he answer was not taken: .*Answer from a terminal of your own")
	other := apart(t, p.environ, p.root, "attach", "work")
	other.expect(`Run it\?`)
	other.typed("y\n")
	select {
	case result := <-ended:
		p.ended(result, "ok", "new.txt")
	case <-time.After(hangGuard):
		t.Fatalf("the call waits; the daemon's log:\n%s", content(t, filepath.Join(stateIn(p.environ), "toold", "daemon.log")))
	}
	expect(t, "the file", content(t, file), "x\n")
	other.hangsUp()
	own.typed("\x03")
	own.ends(-1)
	var refused, taken map[string]any
	for line := range strings.Lines(content(t, filepath.Join(stateIn(p.environ), "toold", "daemon.log"))) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		switch entry["msg"] {
		case "an answer was refused: own_question":
			refused = entry
		case "an answer":
			taken = entry
		}
	}
	expect(t, "who was refused", fmt.Sprint(refused["pid"]), fmt.Sprint(own.cmd.Process.Pid))
	for _, entry := range []map[string]any{refused, taken} {
		if program, _ := entry["program"].(string); !strings.Contains(filepath.Base(program), "toold") || entry["pid"] == float64(0) {
			t.Errorf("the log says %v", entry)
		}
	}
}

// stateIn is where programs keep their state in an environment.
func stateIn(environ []string) (dir string) {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, "XDG_STATE_HOME="); ok {
			dir = value
		}
	}
	return dir
}
