package turn

import (
	"cmp"
	"encoding/json"

	"github.com/toold/toold/daemon/convert"
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

// AnthropicReply returns the user message of the Anthropic Messages API that holds the results; for a managed agent the events
// to send.
func AnthropicReply(format dialect.Format, uses []Answered) ([]byte, error) {
	if len(dialect.NativeTools(format)) == 0 {
		format = dialect.Anthropic
	}
	items, err := itemsOf(format, uses)
	if err != nil {
		return nil, err
	}
	if len(uses) > 0 && uses[0].use.event {
		return line(struct {
			Events []json.RawMessage `json:"events"`
		}{items})
	}
	return line(struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	}{"user", items})
}

// OpenAIReply returns the messages of the OpenAI Chat API to append, or the input items of the Responses API if the message
// came from there.
func OpenAIReply(format dialect.Format, uses []Answered) ([]byte, error) {
	if format != dialect.Responses {
		format = dialect.Chat
	}
	items, err := itemsOf(format, uses)
	if err != nil {
		return nil, err
	}
	return line(items)
}

// ResponsesReply returns the input items of the OpenAI Responses API to append.
func ResponsesReply(uses []Answered) ([]byte, error) { return OpenAIReply(dialect.Responses, uses) }

// itemsOf returns the items that answer the uses, in their order. One without an id of the model's is answered by the id that the
// call was run under.
func itemsOf(format dialect.Format, uses []Answered) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(uses))
	for _, a := range uses {
		u := dialect.Use{ID: cmp.Or(a.use.Given, a.use.ID), Custom: a.use.custom, Caller: a.use.caller, Event: a.use.event, Item: a.use.own, Native: a.use.Name}
		item, err := dialect.Answer(format, u, convert.ForModel(a.Result))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// line returns a value as JSON on a line.
func line(v any) ([]byte, error) {
	text, err := dialect.Marshal(v)
	return append(text, '\n'), err
}
