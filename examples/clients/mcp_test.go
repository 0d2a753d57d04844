// toold as an MCP server for the protocol's own SDK in another language.

package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A sight is what the client printed of one thing that it saw.
type sight struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Names    []string `json:"names"`
	Message  string   `json:"message"`
	Fields   []string `json:"fields"`
	Progress float64  `json:"progress"`
	IsError  bool     `json:"isError"`
	Content  []struct {
		Text string `json:"text"`
	} `json:"content"`
}

func TestNodeMCP(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		lacking(t, "Node")
	}
	if _, err := os.Stat("node/node_modules/@modelcontextprotocol/sdk"); err != nil {
		lacking(t, `the Node client's packages, which "make clients" installs`)
	}
	root := t.TempDir()
	toold := buildToold(t)
	socket := startDaemon(t, toold)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "node/mcp.js", toold, socket, root)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("mcp.js: %v\n%s%s", err, stdout, &stderr)
	}
	seen := map[string][]sight{}
	for lines := bufio.NewScanner(bytes.NewReader(stdout)); lines.Scan(); {
		var s sight
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("the client printed %q: %v", lines.Text(), err)
		}
		seen[s.Kind] = append(seen[s.Kind], s)
	}
	checkMCP(t, seen)
	if text, err := os.ReadFile(filepath.Join(root, "allowed.txt")); string(text) != "written\n" {
		t.Errorf("the file that was allowed holds %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(root, "forbidden.txt")); err == nil {
		t.Error("the file that was not allowed is there")
	}
	if t.Failed() {
		t.Logf("the client printed:\n%s%s", stdout, &stderr)
	}
}

func checkMCP(t *testing.T, seen map[string][]sight) {
	t.Helper()
	if len(seen["tools"]) != 1 || !slices.Contains(seen["tools"][0].Names, "Bash") {
		t.Errorf("the tools are %v", seen["tools"])
	}
	if q := seen["question"]; len(q) < 2 || !strings.Contains(q[0].Message, "+written") || !slices.Contains(q[0].Fields, "remember") {
		t.Errorf("the questions are %+v", q)
	}
	want := []struct {
		name, text string
		wrong      bool
	}{
		{"Write", "", false},
		{"Write", "not this one", true},
		{"Read", "written", false},
		{"Glob", "allowed.txt", false},
		{"Bash", "first\nsecond", false},
		{"Bash", "after", false},
	}
	if len(seen["result"]) != len(want) {
		t.Fatalf("there are %d results, not %d", len(seen["result"]), len(want))
	}
	slices.SortStableFunc(seen["result"][2:4], func(a, b sight) int { return strings.Compare(b.Name, a.Name) })
	for i, w := range want {
		if got := seen["result"][i]; got.Name != w.name || got.IsError != w.wrong || len(got.Content) == 0 || !strings.Contains(got.Content[0].Text, w.text) {
			t.Errorf("result %d is %+v, want %+v", i+1, got, w)
		}
	}
	if failed := seen["failed"]; len(failed) != 1 || failed[0].Name != "Bash" {
		t.Errorf("what was cancelled: %+v", failed)
	}
	last := -1.0
	for _, step := range seen["progress"] {
		if step.Progress <= last {
			t.Errorf("progress went from %v to %v", last, step.Progress)
		}
		last = step.Progress
	}
	if !slices.ContainsFunc(seen["progress"], func(s sight) bool { return s.Message == "first" }) {
		t.Errorf("the progress is %+v", seen["progress"])
	}
}
