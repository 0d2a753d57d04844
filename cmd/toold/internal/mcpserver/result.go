package mcpserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/text/ellipsis"
)

// appendResponse appends the response to the request of that id.
func appendResponse(to []byte, id any, result *tooldv1.ToolResult) []byte {
	to = appendID(append(to, `{"jsonrpc":"2.0","id":`...), id)
	return append(appendResult(append(to, `,"result":`...), result), '}')
}

// appendResult appends a result, of which it keeps every block. What MCP has no place for is under _meta. The SDK's types encode
// each block three times.
func appendResult(to []byte, result *tooldv1.ToolResult) []byte {
	to = appendString(append(to, `{"_meta":{"toold/outcome":`...), terminal.Word(result.GetOutcome()))
	if result.GetError() != nil {
		to = append(append(to, `,"toold/error":`...), wireObject(result.GetError())...)
	}
	if result.GetSpill() != nil {
		to = append(append(to, `,"toold/spill":`...), wireObject(result.GetSpill())...)
	}
	to = appendContent(append(to, `},"content":[`...), result)
	to = append(to, ']')
	if structured := structuredOf(result); structured != nil {
		to = appendStruct(append(to, `,"structuredContent":`...), structured)
	}
	if result.GetIsError() {
		to = append(to, `,"isError":true`...)
	}
	return append(to, '}')
}

// appendID appends a request's id, a number or a string.
func appendID(to []byte, id any) []byte {
	switch id := id.(type) {
	case int64:
		return strconv.AppendInt(to, id, 10)
	case string:
		return appendString(to, id)
	default:
		return append(to, "null"...)
	}
}

func appendContent(to []byte, result *tooldv1.ToolResult) []byte {
	for i, block := range result.GetContent() {
		if i > 0 {
			to = append(to, ',')
		}
		switch b := block.GetBlock().(type) {
		case *tooldv1.Content_Image:
			to = appendJSON(to, &mcp.ImageContent{Data: b.Image.GetData(), MIMEType: b.Image.GetMediaType()})
		case *tooldv1.Content_Document:
			uri := fmt.Sprintf("toold://result/%s/%d", result.GetToolUseId(), i)
			to = appendJSON(to, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: b.Document.GetMediaType(), Blob: b.Document.GetData()}})
		case *tooldv1.Content_Link:
			to = appendJSON(to, &mcp.ResourceLink{URI: b.Link.GetUri(), Name: cmp.Or(b.Link.GetName(), path.Base(b.Link.GetUri()))})
		default:
			to = appendText(to, terminal.AsText(block))
		}
	}
	if len(result.GetContent()) == 0 && result.GetError() != nil {
		to = appendText(to, result.GetError().GetMessage())
	}
	return to
}

func appendText(to []byte, text string) []byte {
	return append(appendString(append(to, `{"type":"text","text":`...), text), '}')
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

// progressLine appends what is to be said of a call, if it is still to be said.
func (c *call) progressLine(to []byte) []byte {
	if p := c.newest.Swap(nil); p != nil {
		return appendJSON(to, notification{"2.0", "notifications/progress", c.meter.step(p)})
	}
	return to
}

func (m *meter) step(p *tooldv1.Progress) *mcp.ProgressNotificationParams {
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
	return params
}
