//go:build !no_mcp

package main

// toold mcp, driven by the client of the official SDK over the pipe of a real process with a real daemon behind it.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An mcpPeer is a client, the server that it has started, and what that said beside the protocol.
type mcpPeer struct {
	*mcp.ClientSession
	t       *testing.T
	root    string
	environ []string
	client  *mcp.Client
	cmd     *exec.Cmd
	stderr  bytes.Buffer // to be read when the process has ended
}

// peerOptions are what a client can do.
type peerOptions struct {
	client mcp.ClientOptions
	roots  []string
	args   []string
}

// meetMCP starts a server in a workspace of its own, and a client of it.
func meetMCP(t *testing.T, o peerOptions) *mcpPeer {
	t.Helper()
	environ, ws := home(t)
	return joinMCP(t, environ, ws, o)
}

func joinMCP(t *testing.T, environ []string, ws string, o peerOptions) *mcpPeer {
	t.Helper()
	p := &mcpPeer{t: t, root: ws, environ: environ}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	p.cmd = self(t, ctx, environ, ws, append([]string{"mcp", "-v"}, o.args...)...)
	p.cmd.Stderr = &p.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &o.client)
	for _, root := range o.roots {
		client.AddRoots(&mcp.Root{URI: root})
	}
	p.client = client
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: p.cmd}, nil)
	if err != nil {
		t.Fatalf("%v; the server said:\n%s", err, &p.stderr)
	}
	p.ClientSession = session
	t.Cleanup(func() {
		_ = session.Close() // it may have been closed, or killed
		if t.Failed() {
			t.Logf("the server said:\n%s", &p.stderr)
		}
	})
	return p
}

// call makes one call and returns its result.
func (p *mcpPeer) call(name string, input map[string]any) *mcp.CallToolResult {
	p.t.Helper()
	result, err := p.CallTool(p.t.Context(), &mcp.CallToolParams{Name: name, Arguments: input})
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return result
}

func textOf(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, block := range result.Content {
		if text, is := block.(*mcp.TextContent); is {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// ended wants a result of that outcome.
func (p *mcpPeer) ended(result *mcp.CallToolResult, outcome, text string) {
	p.t.Helper()
	if got := result.Meta["toold/outcome"]; got != outcome || result.IsError != (outcome != "ok") || !strings.Contains(textOf(result), text) {
		p.t.Errorf("ended as %v, error %v, with %q; want %s with %q", got, result.IsError, textOf(result), outcome, text)
	}
}

// toold runs a command against the same daemon and returns what it printed.
func (p *mcpPeer) toold(args ...string) string {
	p.t.Helper()
	out, err := self(p.t, p.t.Context(), p.environ, p.root, args...).Output()
	if err != nil {
		p.t.Fatalf("toold %v: %v", args, err)
	}
	return string(out)
}

func TestMCPTools(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{})
	list, err := p.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.InputSchema == nil || tool.Annotations == nil {
			t.Errorf("%s is listed without description, schema or annotations", tool.Name)
		}
	}
	var pool []mcp.Tool
	if err := json.Unmarshal([]byte(p.toold("tools", "--format", "mcp")), &pool); err != nil {
		t.Fatal(err)
	}
	same := slices.EqualFunc(names, pool, func(name string, tool mcp.Tool) bool { return name == tool.Name })
	if !same || !slices.Contains(names, "Bash") {
		t.Errorf("the tools are %v, in another order than the pool", names)
	}
	put(t, filepath.Join(p.root, "a.txt"), "hello\n")
	read := p.call("Read", map[string]any{"file_path": filepath.Join(p.root, "a.txt")})
	p.ended(read, "ok", "hello")
	if fields, _ := read.StructuredContent.(map[string]any); fields["encoding"] != "utf-8" {
		t.Errorf("structured content %v", read.StructuredContent)
	}
	p.ended(p.call("Bash", map[string]any{"command": "exit 3"}), "error", "3")
	p.ended(p.call("Bash", map[string]any{"cmd": 1}), "invalid", "command")
	p.ended(p.call("Nope", nil), "invalid", "nearest")
	denied := p.call("Write", map[string]any{"file_path": filepath.Join(p.root, "b.txt"), "content": "x"})
	p.ended(denied, "denied", "Edit(./*.txt)")
	if fault, _ := denied.Meta["toold/error"].(map[string]any); fault["code"] != "cannot_ask" {
		t.Errorf("a call that nobody can be asked about ended as %v", denied.Meta)
	}
	if open := p.toold("sessions"); strings.Count(open, "attached") != 1 {
		t.Errorf("sessions while the client is there:\n%s", open)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if open := p.toold("sessions"); strings.Contains(open, "attached") || strings.Contains(open, "detached") {
		t.Errorf("sessions after the client has gone:\n%s", open)
	}
}

// TestMCPTrace: what an MCP client traces a call under reaches the MCP server behind the daemon.
func TestMCPTrace(t *testing.T) {
	t.Parallel()
	environ, ws := home(t)
	put(t, filepath.Join(ws, ".toold", "settings.json"), `{"mcpServers": {"kit": {"command": "`+kitPath(t)+`"}}}`)
	p := joinMCP(t, environ, ws, peerOptions{args: []string{"--trust", "--mode", "bypassPermissions"}})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for !strings.Contains(textOf(p.call("ToolSearch", map[string]any{"query": "select:mcp__kit__get_issue"})), "Gives an issue") { // the server starts
	}
	result, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp__kit__get_issue", Arguments: map[string]any{"number": 1}, Meta: mcp.Meta{"traceparent": trace}})
	if err != nil {
		t.Fatal(err)
	}
	p.ended(result, "ok", "done under "+trace)
}

// TestMCPBlocks: what is not text comes in its own kind of block.
func TestMCPBlocks(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{})
	picture := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\xdac\xfc\xcf\xc0P\x0f\x00\x04\x85\x01\x80\x84\xa9\x8c!\x00\x00\x00\x00IEND\xaeB`\x82")
	put(t, filepath.Join(p.root, "dot.png"), string(picture))
	result := p.call("Read", map[string]any{"file_path": filepath.Join(p.root, "dot.png")})
	if !slices.ContainsFunc(result.Content, func(c mcp.Content) bool {
		image, is := c.(*mcp.ImageContent)
		return is && image.MIMEType == "image/png" && bytes.HasPrefix(image.Data, []byte("\x89PNG"))
	}) {
		t.Errorf("the picture came as %+v, %q", result.Content, textOf(result))
	}
}

// TestMCPOrder: calls that were sent together are run in the order in which they were sent.
func TestMCPOrder(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{args: []string{"--mode", "bypassPermissions"}})
	const calls = 30
	input, output := mcpPipe(t, p)
	var lines strings.Builder
	for i := range calls {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"echo %d >> order"}}}`+"\n", i+10, i)
	}
	if _, err := input.WriteString(lines.String()); err != nil {
		t.Fatal(err)
	}
	for range calls {
		output()
	}
	var want strings.Builder
	for i := range calls {
		fmt.Fprintln(&want, i)
	}
	if got := content(t, filepath.Join(p.root, "order")); got != want.String() {
		t.Errorf("the calls ran in the order\n%s", strings.ReplaceAll(got, "\n", " "))
	}
}

// TestMCPSideBySide: calls that only read wait for none of their kind, and a failed one stops no other.
func TestMCPSideBySide(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{args: []string{"--mode", "bypassPermissions"}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			result, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": fmt.Sprintf("exit %d", i%2)}})
			if err != nil || result.Meta["toold/outcome"] != []string{"ok", "error"}[i%2] {
				t.Errorf("call %d: %v, %v", i, result, err)
			}
		})
	}
	all.Wait()
}

// TestMCPElicitation: questions are put to the client, and its answer counts.
func TestMCPElicitation(t *testing.T) {
	t.Parallel()
	answers := make(chan *mcp.ElicitResult, 2)
	asked := make(chan *mcp.ElicitParams, 2)
	p := meetMCP(t, peerOptions{client: mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- request.Params
			return <-answers, nil
		},
	}})
	accept := func(fields map[string]any) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: fields}
	}
	for _, c := range []struct {
		name    string
		answer  *mcp.ElicitResult
		outcome string
		text    string
	}{
		{"yes", accept(map[string]any{"decision": "allow"}), "ok", ""},
		{"no", accept(map[string]any{"decision": "deny", "message": "use another name"}), "denied", "use another name"},
		{"declined", &mcp.ElicitResult{Action: "decline"}, "denied", ""},
		{"dismissed", &mcp.ElicitResult{Action: "cancel"}, "denied", "dismissed"},
		{"empty form", accept(nil), "denied", ""},
		{"no such choice", accept(map[string]any{"decision": "perhaps"}), "denied", "could not ask"},
		{"a place without trust", accept(map[string]any{"decision": "allow", "remember": "no such rule"}), "denied", "could not ask"},
		{"for the session", accept(map[string]any{"decision": "allow", "remember": "allow Edit(./*.txt)", "where": "session"}), "ok", ""},
	} {
		answers <- c.answer
		result := p.call("Write", map[string]any{"file_path": filepath.Join(p.root, c.name+".txt"), "content": "x\n"})
		p.ended(result, c.outcome, c.text)
		question := <-asked
		if !strings.Contains(question.Message, c.name+".txt") || !strings.Contains(question.Message, "+x") {
			t.Errorf("%s: the question shows neither path nor diff:\n%s", c.name, question.Message)
		}
		if _, err := os.Stat(filepath.Join(p.root, c.name+".txt")); (err == nil) != (c.outcome == "ok") {
			t.Errorf("%s: the file: %v", c.name, err)
		}
	}
	p.ended(p.call("Write", map[string]any{"file_path": filepath.Join(p.root, "unasked.txt"), "content": "x"}), "ok", "")

	// A rule that cannot be kept there: the answer does not count, and the question comes again with the reason.
	put(t, filepath.Join(p.root, ".toold", "settings.local.json"), "{not JSON")
	answers <- accept(map[string]any{"decision": "allow", "remember": "allow Edit(./*.md)", "where": "local"})
	answers <- accept(map[string]any{"decision": "allow"})
	p.ended(p.call("Write", map[string]any{"file_path": filepath.Join(p.root, "again.md"), "content": "x\n"}), "ok", "")
	<-asked
	if again := <-asked; !strings.Contains(again.Message, "did not count") {
		t.Errorf("the question that came again does not say why:\n%s", again.Message)
	}
}

// TestMCPQuestionWithdrawn: a question whose call is cancelled is taken back from the client.
func TestMCPQuestionWithdrawn(t *testing.T) {
	t.Parallel()
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	p := meetMCP(t, peerOptions{client: mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(asked)
			<-ctx.Done()
			close(withdrawn)
			return nil, ctx.Err()
		},
	}})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() {
		_, err := p.CallTool(ctx, &mcp.CallToolParams{Name: "Write", Arguments: map[string]any{"file_path": filepath.Join(p.root, "a"), "content": "x"}})
		over <- err
	}()
	<-asked
	cancel()
	if err := <-over; err == nil {
		t.Error("a call that was cancelled has a result")
	}
	<-withdrawn
}

func TestMCPProgressAndCancel(t *testing.T) {
	t.Parallel()
	steps := make(chan *mcp.ProgressNotificationParams, 100)
	p := meetMCP(t, peerOptions{args: []string{"--mode", "bypassPermissions"}, client: mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			select {
			case steps <- request.Params:
			default:
			}
		},
	}})
	ctx, cancel := context.WithCancel(t.Context())
	params := &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "echo begun; echo $$ > pid; sleep 600"}}
	params.SetProgressToken("here")
	failed := make(chan error)
	go func() {
		_, err := p.CallTool(ctx, params)
		failed <- err
	}()
	last := -1.0
	for step := range steps {
		if step.ProgressToken != "here" || step.Progress <= last {
			t.Errorf("progress %+v after %v", step, last)
		}
		if last = step.Progress; step.Message == "begun" {
			break
		}
	}
	cancel()
	if err := <-failed; err == nil {
		t.Error("a call that was cancelled has a result")
	}
	// It is a serial call, so the next one runs when nothing is left of it.
	p.ended(p.call("Bash", map[string]any{"command": "echo over >> pid"}), "ok", "")
	if log := p.toold("log", "--json"); !strings.Contains(log, "the MCP client cancelled it") {
		t.Errorf("the log does not say who cancelled:\n%s", log)
	}
}

// TestMCPRoots: the client's roots count, those that are none are left out, and new ones make a new session.
func TestMCPRoots(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	put(t, filepath.Join(first, "one"), "")
	put(t, filepath.Join(second, "two"), "")
	p := meetMCP(t, peerOptions{roots: []string{"file://" + first, "https://example.org/x", "file://" + filepath.Join(first, "absent")}})
	p.ended(p.call("LS", map[string]any{"path": "."}), "ok", "one")
	p.client.RemoveRoots("file://" + first)
	p.client.AddRoots(&mcp.Root{URI: "file://" + second})
	p.ended(p.call("LS", map[string]any{"path": "."}), "ok", "two")
	flagged := joinMCP(t, p.environ, p.root, peerOptions{roots: []string{"file://" + first}, args: []string{"--root", second}})
	flagged.ended(flagged.call("LS", map[string]any{"path": "."}), "ok", "two")
}
