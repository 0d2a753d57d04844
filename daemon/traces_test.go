package daemon_test

import (
	"context"
	"encoding/hex"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/daemon/telemetry"
	"github.com/toold/toold/daemon/telemetry/otlp"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An otlpCollector is what spans are sent to.
type otlpCollector struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	got []*spans.Span
}

func (c *otlpCollector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.got = append(c.got, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// serveCollector serves a collector, and returns its URL.
func serveCollector(t *testing.T) (c *otlpCollector, url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &otlpCollector{}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return c, "http://" + listener.Addr().String()
}

// call returns the span of a call, and the names of its children.
func (c *otlpCollector) call(t *testing.T, id string) (of *spans.Span, children []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.got {
		if attribute(s.GetAttributes(), "gen_ai.tool.call.id") == id {
			of = s
		}
	}
	if of == nil {
		t.Fatalf("no span of the call %s among %d", id, len(c.got))
	}
	for _, s := range c.got {
		if string(s.GetParentSpanId()) == string(of.GetSpanId()) {
			children = append(children, s.GetName())
			if s.GetStartTimeUnixNano() < of.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > of.GetEndTimeUnixNano() {
				t.Errorf("%s of %s is from %d to %d, and its call from %d to %d", s.GetName(), id, s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano(), of.GetStartTimeUnixNano(), of.GetEndTimeUnixNano())
			}
		}
	}
	slices.Sort(children)
	return of, children
}

func attribute(all []*common.KeyValue, key string) string {
	for _, a := range all {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

const (
	traceA = "0af7651916cd43dd8448eb211c80319c"
	traceB = "4bf92f3577b34da6a3ce929d0e0e4736"
	caller = "b7ad6b7169203331"
)

// TestTraces: a turn's spans reach a collector, below the client's span and above the MCP server's, with inputs and outputs
// only if that was asked for, and without secrets.
func TestTraces(t *testing.T) {
	for name, content := range map[string]bool{"without content": false, "with content": true} {
		t.Run(name, func(t *testing.T) { checkTraces(t, content) })
	}
}

func checkTraces(t *testing.T, content bool) {
	to, url := serveCollector(t)
	tracer, err := otlp.New(otlp.Options{Version: "test", Endpoint: url, Content: content, Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte(`{"mcpServers": {"kit": `+mcpEntry(t, 0)+`}, "sandbox": {"enabled": false}, "permissions": {"allow": ["mcp__kit__traced"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	config := h.config()
	config.Tracer = tracer
	h.begin(config)
	stream, err := h.tools().Execute(metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+traceB+"-"+caller+"-01"))
	if err != nil {
		t.Fatal(err)
	}
	c := h.converse()
	c.stream = stream
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Capabilities: &tooldv1.Capabilities{Answers: true}})
	h.awaitTool("s", "mcp__kit__traced")

	c.ask(&tooldv1.ToolUse{Id: "m", Name: "mcp__kit__traced", TraceContext: "00-" + traceA + "-" + caller + "-01", Arguments: &tooldv1.ToolUse_InputJson{InputJson: "{}"}})
	result := c.until("m OK").GetToolResult()
	c.use("r", "Read", `{"file_path":"`+h.file("a.txt", "password = hunter2hunter2\n")+`"}`)
	c.until("r OK")
	c.ask(&tooldv1.ToolUse{Id: "bad", Name: "Read", TraceContext: "nonsense", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"path":1}`}})
	c.until("bad INVALID")
	c.write(h, "w")
	c.reply(c.question("w"), deny)
	c.until("w DENIED")
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}

	m, children := to.call(t, "m")
	want(t, hex.EncodeToString(m.GetTraceId())+" "+hex.EncodeToString(m.GetParentSpanId()), traceA+" "+caller)
	want(t, result.GetContent()[0].GetText(), "00-"+traceA+"-"+hex.EncodeToString(m.GetSpanId())+"-01")
	want(t, strings.Join(children, " "), "toold.run toold.wait")
	want(t, m.GetName(), "execute_tool mcp__kit__traced")
	for key, value := range map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "mcp__kit__traced", "gen_ai.tool.type": "extension",
		"gen_ai.conversation.id": "s", "toold.outcome": "ok", "error.type": "",
	} {
		want(t, key+"="+attribute(m.GetAttributes(), key), key+"="+value)
	}
	r, _ := to.call(t, "r")
	want(t, hex.EncodeToString(r.GetTraceId())+" "+hex.EncodeToString(r.GetParentSpanId()), traceB+" "+caller)
	input, output := attribute(r.GetAttributes(), "gen_ai.tool.call.arguments"), attribute(r.GetAttributes(), "gen_ai.tool.call.result")
	if got := strings.Contains(input, "a.txt") && strings.Contains(output, "redacted"); got != content || strings.Contains(output, "hunter2") || !content && input+output != "" {
		t.Errorf("the span has the input %q and the output %q", input, output)
	}
	bad, _ := to.call(t, "bad")
	want(t, hex.EncodeToString(bad.GetTraceId())+" "+attribute(bad.GetAttributes(), "error.type"), traceB+" invalid_input")
	w, children := to.call(t, "w")
	want(t, attribute(w.GetAttributes(), "error.type")+": "+strings.Join(children, " "), "client_denied: toold.ask toold.wait")
}

// TestTracePassedOn: without spans, MCP servers are sent what the client has named, and nothing that is not a traceparent.
func TestTracePassedOn(t *testing.T) {
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte(`{"mcpServers": {"kit": `+mcpEntry(t, 0)+`}, "sandbox": {"enabled": false}, "permissions": {"allow": ["mcp__kit__traced"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	c := h.join("s", nil)
	h.awaitTool("s", "mcp__kit__traced")
	for id, trace := range map[string]string{"yes": "00-" + traceA + "-" + caller + "-01", "no": "text of the client's"} {
		c.ask(&tooldv1.ToolUse{Id: id, Name: "mcp__kit__traced", TraceContext: trace, Arguments: &tooldv1.ToolUse_InputJson{InputJson: "{}"}})
		got := c.until(id + " OK").GetToolResult().GetContent()[0].GetText()
		if id == "no" {
			trace = "<nil>"
		}
		want(t, got, trace)
	}
}

// awaitTool waits until the session has the tool.
func (h *house) awaitTool(session, name string) {
	h.t.Helper()
	for !slices.ContainsFunc(h.offers(session, 0).GetTools(), func(tool *tooldv1.Tool) bool { return tool.GetName() == name }) {
		if h.t.Context().Err() != nil {
			h.t.Fatal("the tool does not come")
		}
	}
}

// FuzzTraceparent: what is taken for a traceparent has nothing in it but what one is made of.
func FuzzTraceparent(f *testing.F) {
	f.Add("00-" + traceA + "-" + caller + "-01")
	f.Add("00-" + strings.Repeat("0", 32) + "-" + caller + "-01")
	f.Fuzz(func(t *testing.T, text string) {
		switch got := telemetry.Traceparent(text); {
		case got == "":
		case got != text, len(text) != 55, strings.Trim(text, "0123456789abcdef-") != "":
			t.Errorf("%q is taken for %q", text, got)
		}
	})
}
