// An MCP server for the tests: the test binary itself, on standard input and output.

package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpFillers makes the test binary an MCP server, with as many tools beside those that do something.
const mcpFillers = "DAEMON_TEST_MCP"

// servedFor is a variable that servers are given, so that a test finds its own among all processes.
const servedFor = "DAEMON_TEST_SERVED_FOR"

// mcpDir is a variable with a folder of a server: it counts its starts there, and has one more tool if there is a file "more".
const mcpDir = "DAEMON_TEST_MCP_DIR"

type nothing struct{}

func mcpMain(fillers string) error {
	n, err := strconv.Atoi(fillers)
	if err != nil {
		return err
	}
	if dir := os.Getenv(mcpDir); dir != "" {
		before, _ := os.ReadFile(filepath.Join(dir, "starts"))
		if err := os.WriteFile(filepath.Join(dir, "starts"), append(before, 'x'), 0o600); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "more")); err == nil {
			n++
		}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "kit", Version: "1"}, nil)
	says := func(text string) mcp.ToolHandlerFor[nothing, any] {
		return func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		}
	}
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "look", Description: "Looks at what is there.", Annotations: reads}, says("seen"))
	mcp.AddTool(server, &mcp.Tool{Name: "traced", Description: "Returns the traceparent that came with the call.", Annotations: reads},
		func(_ context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(r.Params.Meta["traceparent"])}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "act", Description: "Changes what is there."}, says("done"))
	mcp.AddTool(server, &mcp.Tool{Name: "wait", Description: "Waits until it is stopped.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "waiting", Progress: 1})
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
	mcp.AddTool(server, &mcp.Tool{Name: "ask", Description: "Asks for a name."},
		func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)})
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, " ", answer.Content["name"])}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "ask_much", Description: "Asks with a long form."},
		func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			form := fmt.Sprintf(`{"type":"object","properties":{"name":{"type":"string","description":%q}}}`, strings.Repeat("x", 64<<10))
			answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which name?", RequestedSchema: json.RawMessage(form)})
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action}}}, nil, nil
		})
	hushed := make(chan struct{}, 1)
	mcp.AddTool(server, &mcp.Tool{Name: "doubt", Description: "Asks for a name, until it is hushed.", Annotations: reads},
		func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			asking, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				<-hushed
				cancel()
			}()
			_, err := r.Session.Elicit(asking, &mcp.ElicitParams{Message: "Which name?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
			if err == nil {
				return nil, nil, errors.New("somebody has answered")
			}
			<-hushed
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "never mind"}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "hush", Description: "Hushes what asks.", Annotations: reads},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
			hushed <- struct{}{}
			return &mcp.CallToolResult{}, nil, nil
		})
	for i := range n {
		mcp.AddTool(server, &mcp.Tool{Name: fmt.Sprintf("tool%02d", i), Description: fmt.Sprintf("Does the thing that has the number %d.", i)}, says(fmt.Sprint(i)))
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// mcpEntry is an entry of mcpServers for it.
func mcpEntry(t testing.TB, fillers int) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"command": %q, "env": {%q: "%d", "GORACE": "atexit_sleep_ms=0"}}`, self, mcpFillers, fillers)
}
