//go:build !no_mcp

package main

// toold mcp --http, driven by the client of the official SDK, and by the official suite of the protocol.

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// An mcpSite is a server over HTTP.
type mcpSite struct {
	environ []string
	root    string
	url     string
	token   string
	cmd     *exec.Cmd
}

var servedAt = regexp.MustCompile(`MCP is served at (\S+) \(tokens: (.*)\)`)

// openMCP starts a server in a workspace of its own, with these settings of the user.
func openMCP(t *testing.T, settings string, args ...string) *mcpSite {
	t.Helper()
	environ, ws := home(t)
	put(t, filepath.Join(filepath.Dir(ws), "config", "toold", "settings.json"), settings)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	s := &mcpSite{environ: environ, root: ws, cmd: self(t, ctx, environ, ws, append([]string{"mcp", "--http", "127.0.0.1:0", "--root", ws}, args...)...)}
	stderr, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() }) // it may have ended
	lines := bufio.NewScanner(stderr)
	for s.url == "" && lines.Scan() {
		if at := servedAt.FindStringSubmatch(lines.Text()); at != nil {
			text, err := os.ReadFile(at[2])
			if err != nil {
				t.Fatal(err)
			}
			s.url, s.token = at[1], strings.TrimPrefix(strings.TrimSpace(string(text)[strings.IndexByte(string(text), '\n'):]), "default ")
		}
	}
	if s.url == "" {
		t.Fatal("the server did not say where it is")
	}
	go func() { // what more it says has a reader
		for lines.Scan() {
			_ = lines.Text()
		}
	}()
	return s
}

// meet returns a client of the server.
func (s *mcpSite) meet(t *testing.T, options *mcp.ClientOptions) *mcpPeer {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(s.token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &mcpPeer{ClientSession: session, t: t, root: s.root, environ: s.environ}
}

// open counts the sessions that are open at the daemon.
func (s *mcpSite) open(t *testing.T) int {
	t.Helper()
	out, err := self(t, t.Context(), s.environ, s.root, "sessions", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Sessions []any }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return len(list.Sessions)
}

func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	s := openMCP(t, "{}")
	steps, asked := make(chan float64, 100), make(chan string, 1)
	p := s.meet(t, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { steps <- r.Params.Progress },
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- r.Params.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow"}}, nil
		},
	})
	list, err := p.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) < 5 {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	p.ended(p.call("Write", map[string]any{"file_path": filepath.Join(s.root, "a.txt"), "content": "x\n"}), "ok", "")
	if message := <-asked; !strings.Contains(message, "a.txt") {
		t.Errorf("asked %q", message)
	}
	other := s.meet(t, nil) // sessions are apart: this one has read nothing, and cannot be asked
	other.ended(other.call("Write", map[string]any{"file_path": filepath.Join(s.root, "a.txt"), "content": "y\n"}), "invalid", "")
	other.ended(other.call("Bash", map[string]any{"command": "touch b.txt"}), "denied", "")

	// Progress comes on the call's own stream, and a call that is given up is stopped.
	params := &mcp.CallToolParams{Name: "Bash", Arguments: map[string]any{"command": "echo begun; sleep 600"}}
	params.SetProgressToken("p")
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := p.CallTool(ctx, params)
		over <- err
	}()
	<-steps
	cancel()
	if <-over == nil {
		t.Error("a call that was given up has a result")
	}
	p.ended(p.call("Bash", map[string]any{"command": "pgrep -f 'sleep 60[0]' || echo gone"}), "ok", "gone")

	if n := s.open(t); n != 2 {
		t.Errorf("%d sessions are open, want 2", n)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	for tries := 0; s.open(t) != 1; tries++ { // it is closed once the client's words are answered
		if tries == 200 {
			t.Fatal("the session of a client that has left stays open")
		}
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if n := s.open(t); n != 0 {
		t.Errorf("%d sessions are open after the server", n)
	}
}

// TestMCPOverHTTPRefuses: without a token, from elsewhere, and at other places, there is nothing.
func TestMCPOverHTTPRefuses(t *testing.T) {
	t.Parallel()
	s := openMCP(t, "{}")
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, c := range []struct {
		name string
		want int
		with func(r *http.Request)
	}{
		{"no token", 401, func(r *http.Request) { r.Header.Del("Authorization") }},
		{"another token", 401, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 43)) }},
		{"another name of this machine", 403, func(r *http.Request) { r.Host = "evil.example" }},
		{"another site's page", 403, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }},
		{"another place", 404, func(r *http.Request) { r.URL.Path = "/" }},
		{"no such session", 404, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "x") }},
		{"garbage", 400, func(r *http.Request) { r.Body = http.NoBody }},
		{"all is well", 200, func(*http.Request) {}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
			r.Header.Set(name, value)
		}
		c.with(r)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.name, response.Status, c.want)
		}
	}
	for _, address := range []string{"0.0.0.0:0", "nowhere"} {
		out, err := self(t, t.Context(), s.environ, s.root, "mcp", "--http", address).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "127.0.0.1") {
			t.Errorf("%s: %v, %s", address, err, out)
		}
	}
}

// conformanceTools are what the suite wants to find, as far as programs can be it.
const conformanceTools = `{"tools": [
	{"name": "test_simple_text", "description": "Text.", "command": ["echo", "This is a simple text response for testing."], "readOnly": true},
	{"name": "test_image_content", "description": "A picture.", "readOnly": true, "command": ["echo", "[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==\"}]"]},
	{"name": "test_error_handling", "description": "Fails.", "command": ["sh", "-c", "echo This tool intentionally returns an error for testing >&2; exit 1"], "readOnly": true},
	{"name": "test_tool_with_progress", "description": "Takes a while.", "command": ["sh", "-c", "for i in 1 2 3 4; do echo step $i >&2; sleep 0.3; done; echo done"], "readOnly": true},
	{"name": "test_elicitation", "description": "Is asked about.", "command": ["echo", "hello"], "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}}}
]}`

// TestMCPConformance: the official suite finds nothing wrong but what testdata/conformance/expected.yaml has a reason for.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	nodes, err := filepath.Glob("testdata/conformance/node_modules/node-linux-*/bin/node")
	if err != nil || len(nodes) == 0 {
		skip(t, `this test needs the suite in cmd/toold/testdata/conformance, which "make clients" installs`)
	}
	node, err := filepath.Abs(nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs("testdata/conformance")
	if err != nil {
		t.Fatal(err)
	}
	s := openMCP(t, conformanceTools)
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	// The suite knows no tokens, so something in front of the server adds one.
	front := httptest.NewServer(&httputil.ReverseProxy{Transport: bearer(s.token), FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Host, r.Out.URL.Scheme = target.Host, target.Scheme
	}})
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, folder+"/node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", front.URL+target.Path, "--expected-failures", folder+"/expected.yaml")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	text := string(out)
	if at := strings.Index(text, "=== SUMMARY"); at >= 0 {
		text = text[at:]
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Log(text)
}
