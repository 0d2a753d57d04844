// Package mcpserver offers the tools of a session as an MCP server on standard input and output.
//
// The MCP SDK serves the protocol, but for calls and what cancels them: its general way costs a call five times what the daemon
// takes for it. The wire (wire.go, out.go) reads and writes the lines, and passes calls, in the order in which they come, to the
// bridge, whose goroutine owns the session with the daemon. The package does not know what any tool does.
package mcpserver

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/rawio"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// instructions are for the client's model: what differs from tools that it may know.
const instructions = "These tools run in toold, a daemon on the user's machine. Calls that only read run side by side, all others alone, in the " +
	"order in which they came. A denied call names the rule that denied it. A file is changed only after it was read in this session."

// versions are the versions of the protocol in which a server may ask its client something in the middle of a call.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Options are the session that a server serves, and how it serves it.
type Options struct {
	Console  *cli.Console
	Daemon   *connect.Finder
	Attach   *tooldv1.Attach // of the session
	AskRoots bool            // the client's roots take the place of Attach's, if it names some
}

// spareHeap is how many bytes of heap the server has and never touches, so that they take no memory. The collector lets the heap
// double before it runs: without them that is every few dozen calls, and a third of what each costs. Ours.
const spareHeap = 8 << 20

// Serve serves one client until it hangs up or a signal comes. An anonymous session ends with it.
func Serve(ctx context.Context, o Options) error {
	defer runtime.KeepAlive(make([]byte, spareHeap))
	runtime.GOMAXPROCS(1)           // a call goes through five goroutines, one after the other: a second thread would only be woken for it
	l, err := o.Daemon.Connect(ctx) // a missing daemon is reported before anything is promised
	if err != nil {
		return err
	}
	defer l.Close() // if no session was made over it
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	pipes := make(chan os.Signal, 1) // never received from: a client that went away is an error of the write, and so the session is closed
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	b := newBridge(o, undecoded(o.Daemon.Redial(l)))
	stdin, release := polled(o.Console.Stdin)
	defer release()
	wire := newWire(stdin, rawio.New(o.Console.Stdout), b)
	if terminal.Open(o.Console.Stdin).Terminal {
		o.Console.Say("MCP messages are read from the terminal, one a line; an MCP client starts this command itself")
	}
	go wire.write() // until the wire is closed, or the process ends while the client reads nothing
	if b.client, err = newServer(b).Connect(ctx, wire, nil); err != nil {
		return err
	}
	end := b.start(ctx)
	defer func() {
		end()
		b.depart()
	}()
	select {
	case <-wire.ended:
	case <-signals:
	}
	return nil
}

// newServer answers lists from the bridge. The rest of the protocol is the SDK's, but for calls, which it does not see.
func newServer(b *bridge) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "toold", Version: b.Daemon.Version}, &mcp.ServerOptions{
		Instructions: instructions, SupportedProtocolVersions: versions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}},
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			switch method {
			case "tools/list":
				return list(ctx, b)
			case "tools/call":
				return b.serveCall(ctx, request)
			default:
				return next(ctx, method, request)
			}
		}
	})
	// The SDK notifies the client of a change when its own list changes; the list that counts is the daemon's.
	b.changed = func() {
		server.AddTool(&mcp.Tool{Name: "toold", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	return server
}

// list returns the session's pool in its order, whole: MCP has no way to load a tool later. Tools that are deferred
// are activated first, so that a client can call all that it has listed.
func list(ctx context.Context, b *bridge) (mcp.Result, error) {
	pool, err := b.pool(ctx)
	if err == nil {
		pool, err = activate(ctx, b, pool)
	}
	if err != nil {
		return nil, failure(err)
	}
	list := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
	for _, tool := range pool {
		list.Tools = append(list.Tools, toolOf(tool))
	}
	return list, nil
}

// activate has the session activate what is deferred, and returns the pool with what can be called then.
func activate(ctx context.Context, b *bridge, pool []*tooldv1.Tool) ([]*tooldv1.Tool, error) {
	var names []string
	for _, tool := range pool {
		if tool.GetDeferred() {
			names = append(names, tool.GetName())
		}
	}
	if len(names) == 0 {
		return pool, nil
	}
	query, err := json.Marshal(map[string]string{"query": "select:" + strings.Join(names, ",")})
	if err != nil {
		return nil, err
	}
	result, err := await(ctx, b, "ToolSearch", string(query))
	if err != nil {
		return nil, err
	}
	if result.GetIsError() { // a rule may deny it
		pool = slices.DeleteFunc(pool, (*tooldv1.Tool).GetDeferred)
	}
	return pool, nil
}

func toolOf(tool *tooldv1.Tool) *mcp.Tool {
	schema := json.RawMessage(tool.GetInputSchemaJson())
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	destructive, open := tool.GetDestructive(), tool.GetOpenWorld()
	return &mcp.Tool{
		Name: tool.GetName(), Description: tool.GetDescription(), InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: tool.GetReadOnly(), DestructiveHint: &destructive, OpenWorldHint: &open},
	}
}

// await runs a call of the server's own to its end; when ctx ends before that, it is cancelled.
func await(ctx context.Context, b *bridge, name, input string) (*tooldv1.ToolResult, error) {
	ended := make(chan *tooldv1.ToolResult, 1)
	c := &call{name: name, input: input, answer: func(result *tooldv1.ToolResult) { ended <- result }}
	b.called(c)
	select {
	case result := <-ended:
		return result, nil
	case <-b.ended:
		return nil, errBridgeEnded
	case <-ctx.Done():
		b.cancelled(c)
		return nil, context.Cause(ctx)
	}
}

// failure returns the error for a request that could not be served at all.
func failure(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: terminal.VisibleText(cli.Describe(err))}
}
