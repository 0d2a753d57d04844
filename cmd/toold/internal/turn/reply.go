package turn

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An Answered is a tool use with its result.
type Answered struct {
	use    Use
	Result *tooldv1.ToolResult
}

// Answers returns the tool uses with their results, once the turn has run.
func (t *Turn) Answers() (list []Answered) {
	for i, c := range t.State.Calls {
		list = append(list, Answered{t.Uses[i], c.Answer()})
	}
	return list
}

// AnthropicReply returns the user message of the Anthropic Messages API that holds the results.
func AnthropicReply(uses []Answered) ([]byte, error) {
	type source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	type block struct {
		Type   string  `json:"type"`
		Text   string  `json:"text,omitempty"`
		Source *source `json:"source,omitempty"`
	}
	type toolResult struct {
		Type      string  `json:"type"`
		ToolUseID string  `json:"tool_use_id"`
		Content   []block `json:"content"`
		IsError   bool    `json:"is_error"`
	}
	reply := struct {
		Role    string       `json:"role"`
		Content []toolResult `json:"content"`
	}{Role: "user", Content: []toolResult{}}
	inline := func(kind string, b *tooldv1.Blob) block {
		return block{Type: kind, Source: &source{"base64", b.GetMediaType(), base64.StdEncoding.EncodeToString(b.GetData())}}
	}
	for _, a := range uses {
		entry := toolResult{Type: "tool_result", ToolUseID: a.replyID(), IsError: a.Result.GetIsError()}
		for _, c := range spokenContent(a.Result) {
			switch b := c.GetBlock().(type) {
			case *tooldv1.Content_Image:
				entry.Content = append(entry.Content, inline("image", b.Image))
			case *tooldv1.Content_Document:
				entry.Content = append(entry.Content, inline("document", b.Document))
			default:
				entry.Content = append(entry.Content, block{Type: "text", Text: terminal.AsText(c)})
			}
		}
		reply.Content = append(reply.Content, entry)
	}
	return marshal(reply)
}

// OpenAIReply returns the messages of the OpenAI Chat API to append, or the input items of the Responses API if the message
// came from there.
func OpenAIReply(format dialect.Format, uses []Answered) ([]byte, error) {
	if format == dialect.Responses {
		return ResponsesReply(uses)
	}
	type toolMessage struct {
		Role       string `json:"role"`
		ToolCallID string `json:"tool_call_id"`
		Content    string `json:"content"`
	}
	reply := []toolMessage{}
	for _, a := range uses {
		reply = append(reply, toolMessage{"tool", a.replyID(), flatText(a.Result)})
	}
	return marshal(reply)
}

// ResponsesReply returns the input items of the OpenAI Responses API to append.
func ResponsesReply(uses []Answered) ([]byte, error) {
	type output struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
	reply := []output{}
	for _, a := range uses {
		kind := "function_call_output"
		if a.use.custom {
			kind = "custom_tool_call_output"
		}
		reply = append(reply, output{Type: kind, CallID: a.replyID(), Output: flatText(a.Result)})
	}
	return marshal(reply)
}

// replyID returns the id that the conversation has. For a JSON line without one it is the id that the call was run under.
func (a Answered) replyID() string {
	return cmp.Or(a.use.Given, a.use.ID)
}

// marshal leaves <, > and & as they are: a model should read the text that a tool gave.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return []byte(b.String()), err
}

// flatText returns a result for APIs whose tool messages carry only text.
func flatText(result *tooldv1.ToolResult) string {
	var parts []string
	for _, c := range spokenContent(result) {
		parts = append(parts, terminal.AsText(c))
	}
	return strings.Join(parts, "\n")
}

// spokenContent is the content without blocks that hold nothing to see, which model APIs refuse; never empty.
func spokenContent(result *tooldv1.ToolResult) []*tooldv1.Content {
	var spoken []*tooldv1.Content
	for _, c := range result.GetContent() {
		if text, ok := c.GetBlock().(*tooldv1.Content_Text); ok && strings.TrimSpace(text.Text) == "" {
			continue
		}
		spoken = append(spoken, c)
	}
	if len(spoken) == 0 {
		text := result.GetError().GetMessage()
		if strings.TrimSpace(text) == "" {
			text = "(no output)"
		}
		spoken = []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: text}}}
	}
	return spoken
}
