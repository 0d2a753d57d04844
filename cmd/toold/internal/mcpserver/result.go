package mcpserver

import (
	"cmp"
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

// A callResult is MCP's result of a call. The SDK's own encodes each block three times.
type callResult struct {
	Meta       map[string]any `json:"_meta"`
	Content    []any          `json:"content"`
	Structured any            `json:"structuredContent,omitempty"`
	IsError    bool           `json:"isError,omitempty"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// resultOf keeps every block, and puts what MCP has no place for under _meta.
func resultOf(result *tooldv1.ToolResult) callResult {
	answer := callResult{IsError: result.GetIsError(), Content: []any{}, Meta: map[string]any{"toold/outcome": terminal.Word(result.GetOutcome())}}
	for i, block := range result.GetContent() {
		answer.Content = append(answer.Content, contentOf(block, result.GetToolUseId(), i))
	}
	if len(answer.Content) == 0 && result.GetError() != nil {
		answer.Content = append(answer.Content, textBlock{"text", result.GetError().GetMessage()})
	}
	if result.GetStructured() != nil {
		answer.Structured = result.GetStructured().AsMap()
	}
	if result.GetError() != nil {
		answer.Meta["toold/error"] = wireObject(result.GetError())
	}
	if result.GetSpill() != nil {
		answer.Meta["toold/spill"] = wireObject(result.GetSpill())
	}
	return answer
}

// contentOf is the block of that index of a call's result.
func contentOf(block *tooldv1.Content, id string, index int) any {
	switch b := block.GetBlock().(type) {
	case *tooldv1.Content_Image:
		return &mcp.ImageContent{Data: b.Image.GetData(), MIMEType: b.Image.GetMediaType()}
	case *tooldv1.Content_Document:
		uri := fmt.Sprintf("toold://result/%s/%d", id, index)
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: b.Document.GetMediaType(), Blob: b.Document.GetData()}}
	case *tooldv1.Content_Link:
		return &mcp.ResourceLink{URI: b.Link.GetUri(), Name: cmp.Or(b.Link.GetName(), path.Base(b.Link.GetUri()))}
	default:
		return textBlock{"text", terminal.AsText(block)}
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
	token json.RawMessage // nil: the client wants no progress
	last  float64
	steps bool
}

// A notification is a message without an answer.
type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

func (m *meter) notification(p *tooldv1.Progress) notification {
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
	return notification{"2.0", "notifications/progress", params}
}
