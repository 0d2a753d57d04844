package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/text/ellipsis"
)

// resultOf keeps every block, and puts what MCP has no place for under _meta.
func resultOf(result *tooldv1.ToolResult) *mcp.CallToolResult {
	answer := &mcp.CallToolResult{IsError: result.GetIsError(), Content: []mcp.Content{}, Meta: mcp.Meta{"toold/outcome": terminal.Word(result.GetOutcome())}}
	for i, block := range result.GetContent() {
		answer.Content = append(answer.Content, contentOf(block, fmt.Sprintf("toold://result/%s/%d", result.GetToolUseId(), i)))
	}
	if len(answer.Content) == 0 && result.GetError() != nil {
		answer.Content = append(answer.Content, &mcp.TextContent{Text: result.GetError().GetMessage()})
	}
	if result.GetStructured() != nil {
		answer.StructuredContent = wireObject(result.GetStructured())
	}
	for name, m := range map[string]proto.Message{"toold/error": result.GetError(), "toold/spill": result.GetSpill()} {
		if m.ProtoReflect().IsValid() {
			answer.Meta[name] = wireObject(m)
		}
	}
	return answer
}

func contentOf(block *tooldv1.Content, uri string) mcp.Content {
	switch b := block.GetBlock().(type) {
	case *tooldv1.Content_Image:
		return &mcp.ImageContent{Data: b.Image.GetData(), MIMEType: b.Image.GetMediaType()}
	case *tooldv1.Content_Document:
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: b.Document.GetMediaType(), Blob: b.Document.GetData()}}
	case *tooldv1.Content_Link:
		return &mcp.ResourceLink{URI: b.Link.GetUri(), Name: cmp.Or(b.Link.GetName(), path.Base(b.Link.GetUri()))}
	default:
		return &mcp.TextContent{Text: terminal.AsText(block)}
	}
}

// wireObject is a message as JSON with the contract's names.
func wireObject(m proto.Message) json.RawMessage {
	text, err := terminal.WireJSON(m)
	if err != nil {
		return json.RawMessage("{}") // it came over the wire, so it is valid
	}
	return text
}

// lostResult is the result of a call whose own is not to be had.
func lostResult(err error) *tooldv1.ToolResult {
	text := "The daemon was lost and could not be reached again, so what became of this call is not known here; if it had begun, look at the present state before sending it again. " + cli.Describe(err)
	return &tooldv1.ToolResult{
		IsError: true, Outcome: tooldv1.Outcome_OUTCOME_INTERRUPTED,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: terminal.VisibleText(text)}}},
		Error:   &tooldv1.Error{Code: "daemon_lost", Message: terminal.VisibleText(text)},
	}
}

// A meter turns what a call reports into MCP's progress, whose number must grow each time. It counts steps where the
// call reports them, and seconds otherwise.
type meter struct {
	token any // nil: the client wants no progress
	last  float64
	steps bool
}

func (m *meter) tell(ctx context.Context, client *mcp.ServerSession, p *tooldv1.Progress) {
	if m.token == nil {
		return
	}
	params := &mcp.ProgressNotificationParams{ProgressToken: m.token}
	at := p.GetElapsed().AsDuration().Seconds()
	switch update := p.GetUpdate().(type) {
	case *tooldv1.Progress_Step:
		m.steps = true
		at, params.Total, params.Message = float64(update.Step.GetDone()), float64(update.Step.GetTotal()), update.Step.GetMessage()
	case *tooldv1.Progress_Output:
		params.Message = ellipsis.Bytes(terminal.LastLine(update.Output.GetText()), 500)
	}
	if at <= m.last || m.steps && p.GetStep() == nil {
		at = math.Nextafter(m.last, math.Inf(1))
	}
	m.last, params.Progress = at, at
	_ = client.NotifyProgress(ctx, params) // a client that is gone is told by its pipe
}
