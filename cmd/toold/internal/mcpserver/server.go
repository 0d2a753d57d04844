// Package mcpserver offers the tools of a session as an MCP server on standard input and output.
//
// One goroutine, the bridge's, owns the session with the daemon; requests pass it what is to be done. The order in which
// calls came is kept on the way (order.go), and the lines of the pipe are read without the SDK's transport (wire.go), which ends
// at the first line that is not a message. The package does not know what any tool does.
package mcpserver

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
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

// Serve serves one client until it hangs up or a signal comes. An anonymous session ends with it.
func Serve(ctx context.Context, o Options) error {
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
	b := newBridge(o, o.Daemon.Redial(l))
	end := b.start(ctx)
	defer func() {
		end()
		if o.Attach.GetSessionId() == "" {
			b.leave()
		} else {
			b.giveUp()
			b.close()
		}
	}()
	if terminal.Open(o.Console.Stdin).Terminal {
		o.Console.Say("MCP messages are read from the terminal, one a line; an MCP client starts this command itself")
	}
	wire := newWire(o.Console.Stdin, o.Console.Stdout)
	if _, err := newServer(b, &wire.order).Connect(ctx, wire, nil); err != nil {
		return err
	}
	select {
	case <-wire.ended:
	case <-signals:
	}
	return nil
}

// newServer answers lists and calls from the bridge. The rest of the protocol is the SDK's.
func newServer(b *bridge, order *order) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "toold", Version: b.Daemon.Version}, &mcp.ServerOptions{
		Instructions: instructions, SupportedProtocolVersions: versions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		RootsListChangedHandler: func(ctx context.Context, _ *mcp.RootsListChangedRequest) {
			b.do(ctx, func() { b.moved = b.AskRoots && b.Attach.GetSessionId() == "" })
		},
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			client, ours := request.GetSession().(*mcp.ServerSession)
			params, call := request.GetParams().(*mcp.CallToolParamsRaw)
			switch {
			case ours && method == "tools/list":
				return list(ctx, b, client)
			case ours && call && params != nil:
				return run(ctx, b, order, placeOf(params), newCall(client, params))
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
func list(ctx context.Context, b *bridge, client *mcp.ServerSession) (mcp.Result, error) {
	pool, err := b.pool(ctx, client)
	if err == nil {
		pool, err = activate(ctx, b, client, pool)
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
func activate(ctx context.Context, b *bridge, client *mcp.ServerSession, pool []*tooldv1.Tool) ([]*tooldv1.Tool, error) {
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
	result, err := await(ctx, b, newCall(client, &mcp.CallToolParamsRaw{Name: "ToolSearch", Arguments: query}))
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

// run runs a client's call when those that came before it have been sent. Whatever goes wrong with it is its
// result, for the model to fix.
func run(ctx context.Context, b *bridge, order *order, place uint64, c *call) (mcp.Result, error) {
	c.sent = func() { order.pass(place) }
	defer c.sent()
	if err := order.wait(ctx, place); err != nil {
		return nil, failure(err)
	}
	result, err := await(ctx, b, c)
	if err != nil {
		return nil, failure(err)
	}
	return resultOf(result), nil
}

// await runs one call to its end; when ctx ends before that, it is cancelled.
func await(ctx context.Context, b *bridge, c *call) (*tooldv1.ToolResult, error) {
	if !b.do(ctx, func() { b.begin(c) }) {
		return nil, errBridgeEnded
	}
	if c.sent != nil {
		c.sent()
	}
	for {
		select {
		case p := <-c.progress:
			c.meter.tell(ctx, c.client, p)
		case result := <-c.ended:
			return result, nil
		case <-b.ended:
			return nil, errBridgeEnded
		case <-ctx.Done():
			b.do(context.WithoutCancel(ctx), func() { b.cancel(c) })
			return nil, context.Cause(ctx)
		}
	}
}

// failure returns the error for a request that could not be served at all.
func failure(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: terminal.VisibleText(cli.Describe(err))}
}
