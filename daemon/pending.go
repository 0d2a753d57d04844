// A call of an MCP tool whose server is still starting, or has never come to do so: it is taken, waits for the server
// in its own turn, and then is a call of the tool.

package daemon

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/mcp"
)

// pending stands for a tool that is not there yet. Its calls run alone: whether the tool only reads is not known.
type pending struct {
	session *session
	name    string
	options *tooldv1.Options
}

// Spec returns what is known of the tool.
func (p *pending) Spec() tools.Spec {
	return tools.Spec{Name: p.name, Origin: tools.MCP, TimeLimit: time.Minute, OpenWorld: true}
}

// Parse takes everything: the schema is still to come.
func (p *pending) Parse(input json.RawMessage) (tools.Action, error) {
	return &waiting{pending: p, input: input}, nil
}

// A waiting action becomes one of the tool when its state is checked.
type waiting struct {
	*pending
	input json.RawMessage
	real  tools.Action
}

func (w *waiting) Effects() tools.Effects {
	return tools.Effects{External: "an MCP server", Opaque: true, Reason: "it is a tool of an MCP server"}
}

func (w *waiting) TimeLimit() time.Duration { return 0 }

// Check waits for the server, and then checks as the tool does.
func (w *waiting) Check(ctx context.Context, env *tools.Env) (tools.Preview, error) {
	w.session.tools.awaitServers(ctx)
	if err := context.Cause(ctx); err != nil {
		return tools.Preview{}, err
	}
	tool, err := w.tool(ctx)
	if err != nil {
		return tools.Preview{}, err
	}
	if w.real, err = tool.Parse(w.input); err != nil {
		return tools.Preview{}, err
	}
	return w.real.Check(ctx, env)
}

// tool returns the tool, for which servers that did not start are tried once more. The error says why it is not there.
func (w *waiting) tool(ctx context.Context) (tools.Tool, error) {
	if tool := w.session.tools.find(w.name, w.options); tool != nil {
		return tool, nil
	}
	for _, server := range w.session.tools.servers.Servers() {
		if server.State == mcp.Ready || !strings.HasPrefix(w.name, mcp.Prefix(server.Name)+"__") {
			continue
		}
		if err := w.session.tools.servers.Revive(ctx, server.Name); err != nil {
			return nil, err
		}
	}
	w.session.tools.serversChanged() // which may not have heard of it yet
	if tool := w.session.tools.find(w.name, w.options); tool != nil {
		return tool, nil
	}
	return nil, w.session.tools.unknownTool(w.name, w.options)
}

func (w *waiting) Run(ctx context.Context, env *tools.Env) (tools.Result, error) {
	return w.real.Run(ctx, env)
}
