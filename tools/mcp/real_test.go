//go:build !no_mcp

// Real servers: those of the SDK and of npm, over each transport.

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/tooltest"
)

// everything builds the SDK's own example of a server.
func everything(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "everything")
	output, err := exec.Command("go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/examples/server/everything").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return path
}

func TestEverythingOfTheSDK(t *testing.T) {
	r := newRig(t)
	r.serve(mcp.Entry{Name: "sdk", Command: everything(t)})
	if s := r.status("sdk"); s.State != mcp.Ready || s.Tools < 8 {
		t.Fatalf("the status is %+v", s)
	}
	if got := r.text("mcp__sdk__greet", `{"name":"you"}`); got != "Hi you" {
		t.Errorf("greet gave %q", got)
	}
	if got := r.text("mcp__sdk__roots", `{}`); !strings.Contains(got, r.room.Root) {
		t.Errorf("roots gave %q", got)
	}
	r.text("mcp__sdk__ping", `{}`)
	if _, err := r.call(t.Context(), "mcp__sdk__sample", `{}`, nil); code(err) != "tool_failed" {
		t.Errorf("sampling, which is not offered, gave %v", err)
	}
	asked := ""
	result, err := r.call(t.Context(), "mcp__sdk__elicit__form_", `{}`, func(env *tools.Env) {
		env.Ask = func(_ context.Context, form tools.Form) (tools.Reply, error) {
			asked = form.Message
			return tools.Reply{Yes: true, Content: json.RawMessage(`{"random":"four"}`)}, nil
		}
	})
	if err != nil || asked == "" || !strings.Contains(textOf(result), "four") {
		t.Errorf("asked %q, it gave %q, %v", asked, textOf(result), err)
	}
	result, err = r.call(t.Context(), "mcp__sdk__greet__structured_", `{"name":"you"}`, nil)
	if text, _ := json.Marshal(result.Structured); err != nil || !strings.Contains(string(text), "Hi you") {
		t.Errorf("structured is %s, %v", text, err)
	}
}

// sdkServer is a server of the SDK with a tool that changes the list of tools.
func sdkServer(t *testing.T) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "net", Version: "1"}, nil)
	t.Cleanup(func() {
		for session := range server.Sessions() { // of clients that could not say that they leave
			_ = session.Close()
		}
	})
	object := map[string]any{"type": "object"}
	server.AddTool(&sdk.Tool{Name: "grow", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		server.AddTool(&sdk.Tool{Name: "grown", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "new"}}}, nil
		})
		return &sdk.CallToolResult{}, nil
	})
	server.AddTool(&sdk.Tool{Name: "wait", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "waiting"})
		<-ctx.Done()
		return nil, ctx.Err()
	})
	server.AddTool(&sdk.Tool{Name: "large", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 17<<20)}}}, nil
	})
	return server
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{mcp.HTTP, mcp.SSE} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := sdkServer(t)
			var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
			if kind == mcp.SSE {
				handler = sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil)
			}
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if request.Header.Get("Authorization") != "Bearer abc" {
					http.Error(w, "who are you?", http.StatusUnauthorized)
					return
				}
				handler.ServeHTTP(w, request)
			}))
			t.Cleanup(site.Close)
			r := newRig(t)
			entry := mcp.Entry{Name: "net", Transport: kind, URL: site.URL, Headers: map[string]string{"Authorization": "Bearer abc"}}
			stranger := mcp.Entry{Name: "stranger", Transport: kind, URL: site.URL}
			r.serve(entry, stranger)
			if s := r.status("stranger"); s.State == mcp.Ready || !strings.Contains(s.Why, "Unauthorized") {
				t.Errorf("without the header it is %+v", s)
			}
			r.text("mcp__net__grow", `{}`)
			r.until("the new tool is listed", func() bool { return r.status("net").Tools == 4 })
			if got := r.text("mcp__net__grown", `{}`); got != "new" {
				t.Errorf("the new tool gave %q", got)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			stopped := fmt.Errorf("stopped")
			_, err := r.call(ctx, "mcp__net__wait", `{}`, func(env *tools.Env) {
				env.Report = func(tools.Step) { cancel(stopped) }
			})
			if err != stopped {
				t.Errorf("a cancelled call gave %v", err)
			}
			if _, err := r.call(t.Context(), "mcp__net__large", `{}`, nil); code(err) != "response_too_large" && code(err) != "server_gone" {
				t.Errorf("a large answer gave %v", err)
			}
			if got := r.text("mcp__net__grown", `{}`); got != "new" {
				t.Errorf("the next call gave %q", got)
			}
			r.set.Close()
		})
	}
}

// A server on the network that goes is found again when it comes back, and a call in between says that it is lost.
func TestNetworkComesBack(t *testing.T) {
	server := sdkServer(t)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	site := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	site.Start()
	r := newRig(t)
	r.serve(mcp.Entry{Name: "net", URL: "http://" + listener.Addr().String()})
	r.text("mcp__net__grow", `{}`)
	site.CloseClientConnections()
	site.Close()
	if _, err := r.call(t.Context(), "mcp__net__grow", `{}`, nil); code(err) != "server_gone" && code(err) != "server_unavailable" {
		t.Errorf("a call to nobody gave %v", err)
	}
	again, err := net.Listen("tcp", listener.Addr().String())
	if err != nil {
		t.Skip("somebody else has taken the port")
	}
	handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	site = &httptest.Server{Listener: again, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	site.Start()
	t.Cleanup(site.Close)
	r.until("it is there again", func() bool {
		_, err := r.call(t.Context(), "mcp__net__grow", `{}`, nil)
		return err == nil
	})
	r.set.Close()
}

// A server that is too busy stays connected, and the call says that it was not taken.
func TestBusy(t *testing.T) {
	server := sdkServer(t)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var busy atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost && busy.Load() {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(site.Close)
	r := newRig(t)
	r.serve(mcp.Entry{Name: "net", URL: site.URL})
	busy.Store(true)
	if _, err := r.call(t.Context(), "mcp__net__grow", `{}`, nil); code(err) != "server_unavailable" {
		t.Errorf("a call to who is busy gave %v", err)
	}
	busy.Store(false)
	r.text("mcp__net__grow", `{}`)
	if told := r.told("mcp_server_gone"); len(told) > 0 {
		t.Errorf("it was taken for gone: %q", told)
	}
	r.set.Close()
}

// Headers of an entry go to its own address and nowhere else.
func TestHeadersStay(t *testing.T) {
	leaked := make(chan string, 8)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		leaked <- request.URL.String()
	}))
	t.Cleanup(thief.Close)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet && request.URL.Path == "/sse" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", thief.URL)
			w.(http.Flusher).Flush()
			<-request.Context().Done()
			return
		}
		http.Redirect(w, request, thief.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(site.Close)
	r := newRig(t)
	headers := map[string]string{"Authorization": "Bearer abc"}
	r.serve(mcp.Entry{Name: "a", URL: site.URL, Headers: headers}, mcp.Entry{Name: "b", Transport: mcp.SSE, URL: site.URL + "/sse", Headers: headers})
	for _, name := range []string{"a", "b"} {
		if s := r.status(name); s.State == mcp.Ready || !strings.Contains(s.Why, "no request is sent there") {
			t.Errorf("%s is %+v", name, s)
		}
	}
	select {
	case url := <-leaked:
		t.Errorf("a request came to %s", url)
	default:
	}
	r.set.Close()
}

// npm returns the entry of a server that make servers has installed.
func npm(t *testing.T, name string, args ...string) mcp.Entry {
	t.Helper()
	node, err := exec.LookPath("node")
	script, _ := filepath.Abs(filepath.Join("testdata", "servers", "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js"))
	if err != nil || !there(script) {
		lacking(t, "Node.js, and \"make servers\"")
	}
	return mcp.Entry{Name: name, Command: node, Args: append([]string{script}, args...), Origin: ".mcp.json:1"}
}

func TestFilesystemOfNPM(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.room.Root, "a.txt"), []byte("the text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.serve(npm(t, "filesystem", r.room.Root))
	input, _ := json.Marshal(map[string]string{"path": filepath.Join(r.room.Root, "a.txt")})
	if got := r.text("mcp__filesystem__read_text_file", string(input)); got != "the text\n" {
		t.Errorf("it read %q", got)
	}
	outside, _ := json.Marshal(map[string]string{"path": "/etc/hostname"})
	if _, err := r.call(t.Context(), "mcp__filesystem__read_text_file", string(outside), nil); code(err) != "tool_failed" {
		t.Errorf("outside its root it gave %v", err)
	}
	if action, err := r.tool("mcp__filesystem__write_file").Parse(json.RawMessage(`{"path":"a"}`)); code(err) != "invalid_input" {
		t.Errorf("an input that lacks a field gave %v, %v", action, err)
	}
}

func checkEverything(t *testing.T, r *rig) {
	t.Helper()
	if s := r.status("everything"); s.State != mcp.Ready || s.Tools < 8 {
		t.Fatalf("the status is %+v", s)
	}
	if got := r.text("mcp__everything__echo", `{"message":"hello"}`); got != "Echo: hello" {
		t.Errorf("echo gave %q", got)
	}
	// Its image has a wrong checksum in 2026.8.31, which would spoil a conversation with a model.
	result, err := r.call(t.Context(), "mcp__everything__get-tiny-image", `{}`, nil)
	if err != nil || len(result.Content) != 3 || result.Content[1].Image == nil && !strings.Contains(result.Content[1].Text, "is left out") {
		t.Errorf("the image is %+v, %v", result.Content, err)
	}
	var steps int
	if _, err := r.call(t.Context(), "mcp__everything__trigger-long-running-operation", `{"duration":1,"steps":4}`, func(env *tools.Env) {
		env.Report = func(tools.Step) { steps++ }
	}); err != nil || steps == 0 {
		t.Errorf("%d steps, %v", steps, err)
	}
	result, err = r.call(t.Context(), "mcp__everything__get-structured-content", `{"location":"Chicago"}`, nil)
	if text, _ := json.Marshal(result.Structured); err != nil || !strings.Contains(string(text), "temperature") {
		t.Errorf("structured is %s, %v", text, err)
	}
	r.set.Close()
}

func TestEverythingOfNPM(t *testing.T) {
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		r := newRig(t)
		r.serve(npm(t, "everything"))
		checkEverything(t, r)
	})
	for kind, place := range map[string][2]string{mcp.HTTP: {"streamableHttp", "/mcp"}, mcp.SSE: {"sse", "/sse"}} {
		t.Run(kind, func(t *testing.T) {
			entry := npm(t, "everything", place[0])
			address := startSite(t, entry)
			r := newRigOf(t, &mcp.Fleet{}, tooltest.NewRoom(t))
			r.serve(mcp.Entry{Name: "everything", Transport: kind, URL: "http://" + address + place[1]})
			checkEverything(t, r)
		})
	}
}

// startSite starts a server that listens, and gives its address when it does.
func startSite(t *testing.T, entry mcp.Entry) string {
	t.Helper()
	for range 5 { // somebody else may take the port meanwhile
		if address := startAt(t, entry); address != "" {
			return address
		}
	}
	t.Fatal("the server does not listen")
	return ""
}

func startAt(t *testing.T, entry mcp.Entry) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(address)
	command := exec.Command(entry.Command, entry.Args...)
	command.Env = append(os.Environ(), "PORT="+port)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if text := lines.Text(); strings.Contains(text, port) && !strings.Contains(text, "EADDRINUSE") {
			go func() {
				for lines.Scan() { // it must not wait for its log being read
				}
			}()
			return address
		}
		t.Logf("the server printed %q", lines.Text())
	}
	return ""
}
