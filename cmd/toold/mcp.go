//go:build !no_mcp

// The daemon as an MCP server on standard input and output: the command, and what each request of an MCP client comes
// to. The session with the daemon is in mcp_bridge.go, the lines on the pipe in mcp_wire.go. This file does not know
// what any tool does, nor how the daemon is reached.

package main

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
	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) mcpCommand() *cobra.Command {
	var f turnFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the tools as an MCP server on standard input and output",
		Long: "Offers the daemon's tools to an MCP client, with its permissions, sandbox and journal: one session for each client,\n" +
			"which ends with it unless --session names one that stays. Questions become elicitations where the client has them;\n" +
			"where it has none, a call that would have to ask is denied, unless \"toold attach\" watches the session.\n\n" +
			"The roots are those that the client names, unless --root names others; the current directory when neither does.\n" +
			"Standard output carries the protocol alone; what the user should know goes to standard error.",
		Example: "  toold mcp --root ~/src/project\n  toold mcp --mode acceptEdits --session editor",
		Args:    cobra.NoArgs,
		RunE:    doing(func(ctx context.Context, _ []string) error { return s.serveMCP(ctx, f) }),
	}
	f.add(cmd)
	return cmd
}

// mcpInstructions tells a client's model what is different from tools that it may know.
const mcpInstructions = "These tools run in toold, a daemon on the user's machine. Calls that only read run side by side, all others alone, in the " +
	"order in which they came. A denied call names the rule that denied it. A file is changed only after it was read in this session."

// mcpVersions are the versions of the protocol in which a server may ask its client something in the middle of a call.
var mcpVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// serveMCP serves one client until it hangs up or a signal comes.
func (s *app) serveMCP(ctx context.Context, f turnFlags) error {
	attach, err := f.attach()
	if err != nil {
		return err
	}
	if f.session == "" { // what still runs for a client that was killed has nobody left to give its result to
		attach.Options.OnDisconnect = tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL.Enum()
	}
	l, err := s.connect(ctx) // that there is no daemon to be had is told before anything is promised
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	pipes := make(chan os.Signal, 1) // nobody listens: a client that went away is an error of the write, and so the session is closed
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	b := newBridge(s, l, attach)
	b.askRoots = len(f.place.roots) == 0
	end := b.start(ctx)
	defer func() {
		end()
		if f.session == "" {
			b.leave()
		} else {
			b.giveUp()
		}
		b.unlink()
	}()
	if terminal.Open(s.stdin).Terminal {
		s.say("MCP messages are read from the terminal, one a line; an MCP client starts this command itself")
	}
	wire := newMCPWire(s.stdin, s.stdout)
	if _, err := mcpServer(b, &wire.order).Connect(ctx, wire, nil); err != nil {
		return err
	}
	select {
	case <-wire.ended:
	case <-signals:
	}
	return nil
}

// mcpServer answers lists and calls from the bridge. The rest of the protocol is the SDK's.
func mcpServer(b *bridge, order *mcpOrder) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "toold", Version: version}, &mcp.ServerOptions{
		Instructions: mcpInstructions, SupportedProtocolVersions: mcpVersions,
		Capabilities:            &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		RootsListChangedHandler: func(ctx context.Context, _ *mcp.RootsListChangedRequest) { b.do(ctx, b.moveRoots) },
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			client, ours := request.GetSession().(*mcp.ServerSession)
			params, call := request.GetParams().(*mcp.CallToolParamsRaw)
			switch {
			case ours && method == "tools/list":
				return listForMCP(ctx, b, client)
			case ours && call && params != nil:
				return callForMCP(ctx, b, order.placeOf(params), newMCPCall(client, params))
			default:
				return next(ctx, method, request)
			}
		}
	})
	// The SDK tells the client of a change when its own list changes; the list that counts is the daemon's.
	b.changed = func() {
		server.AddTool(&mcp.Tool{Name: "toold", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	return server
}

// listForMCP returns the session's pool in its order, whole: MCP has no way to load a tool later. What would be known by its
// name alone is activated first, so that whatever a client has listed can be called.
func listForMCP(ctx context.Context, b *bridge, client *mcp.ServerSession) (mcp.Result, error) {
	pool, err := b.pool(ctx, client)
	if err == nil {
		pool, err = activateForMCP(ctx, b, client, pool)
	}
	if err != nil {
		return nil, mcpFailure(err)
	}
	list := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
	for _, tool := range pool {
		list.Tools = append(list.Tools, mcpTool(tool))
	}
	return list, nil
}

// activateForMCP has the session activate what is deferred, and gives the pool with what can be called then.
func activateForMCP(ctx context.Context, b *bridge, client *mcp.ServerSession, pool []*tooldv1.Tool) ([]*tooldv1.Tool, error) {
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
	result, err := runForMCP(ctx, b, newMCPCall(client, &mcp.CallToolParamsRaw{Name: "ToolSearch", Arguments: query}))
	if err != nil {
		return nil, err
	}
	if result.GetIsError() { // a rule may deny it
		pool = slices.DeleteFunc(pool, (*tooldv1.Tool).GetDeferred)
	}
	return pool, nil
}

func mcpTool(tool *tooldv1.Tool) *mcp.Tool {
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

// callForMCP runs a client's call when those that came before it have been sent. Whatever goes wrong with it is its
// result, for the model to fix.
func callForMCP(ctx context.Context, b *bridge, place *mcpPlace, c *mcpCall) (mcp.Result, error) {
	defer place.pass()
	if err := place.wait(ctx); err != nil {
		return nil, mcpFailure(err)
	}
	c.sent = place.pass
	result, err := runForMCP(ctx, b, c)
	if err != nil {
		return nil, mcpFailure(err)
	}
	return mcpResult(result), nil
}

// runForMCP runs one call to its end; when ctx ends before that, it is cancelled.
func runForMCP(ctx context.Context, b *bridge, c *mcpCall) (*tooldv1.ToolResult, error) {
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

// mcpFailure says that a request could not be served at all.
func mcpFailure(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: terminal.VisibleText(whatWentWrong(err))}
}
