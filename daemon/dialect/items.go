package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// readLine reads a tool use as the wire writes it: {"id", "name", "input" or "input_json", "timeout"}.
func readLine(text json.RawMessage) (part, error) {
	var line struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		InputJSON *string         `json:"input_json"`
		Timeout   string          `json:"timeout"`
	}
	if err := strictly(text, &line, "a tool use has id, name, input or input_json, and timeout"); err != nil {
		return part{}, err
	}
	if line.Name == "" {
		return part{}, errors.New("the tool use has no name")
	}
	if line.InputJSON != nil && line.Input != nil {
		return part{}, errors.New("the tool use has both input and input_json: send one of them")
	}
	u := Use{ID: line.ID, Name: line.Name, Input: string(line.Input)}
	if line.InputJSON != nil {
		u.Input = *line.InputJSON
	}
	if line.Timeout != "" {
		limit, err := time.ParseDuration(line.Timeout)
		if err != nil || limit <= 0 {
			return part{}, fmt.Errorf("the timeout %q is not a duration such as \"30s\"", line.Timeout)
		}
		u.Timeout = limit
	}
	return partOf(Lines, u), nil
}

// readWrapped reads {"tool_use": {...}}, the line that the Execute stream takes.
func readWrapped(whole, inner json.RawMessage) (part, error) {
	var only struct {
		ToolUse json.RawMessage `json:"tool_use"`
	}
	if err := strictly(whole, &only, "beside tool_use nothing else is expected"); err != nil {
		return part{}, err
	}
	if inner[0] != '{' {
		return part{}, fmt.Errorf("tool_use is %s: expected an object", excerpt(inner))
	}
	return readLine(inner)
}

// strictly decodes an object that has no other fields than v.
func strictly(text json.RawMessage, v any, expected string) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("%w: %s", err, expected)
	}
	return nil
}

// readChoices reads a whole chat completion. Its tool calls must be in one choice: a conversation goes on with one.
func readChoices(v value) (part, error) {
	var choices []struct {
		Message struct {
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"message"`
	}
	if err := json.Unmarshal(v.Choices, &choices); err != nil {
		return part{}, fmt.Errorf("the choices are of no known form: %w", err)
	}
	var found part
	for _, choice := range choices {
		if !list(choice.Message.ToolCalls) {
			continue
		}
		m, err := readToolCalls(choice.Message.ToolCalls)
		if err != nil {
			return part{}, err
		}
		if found.format != Silent && m.format != Silent {
			return part{}, errors.New("more than one choice has tool calls: send the message of the one that the conversation continues with")
		}
		if m.format != Silent {
			found = m
		}
	}
	return found.called(v.ID), nil
}

func readToolCalls(text json.RawMessage) (part, error) {
	return readAll(text, "tool call", readToolCall)
}

// readToolCall reads one of tool_calls.
func readToolCall(text json.RawMessage) (part, error) {
	var call toolCall
	if err := json.Unmarshal(text, &call); err != nil {
		return part{}, fmt.Errorf("it is of no known form: %w", err)
	}
	u := Use{ID: call.ID}
	switch {
	case call.Function != nil:
		u.Name, u.Input = call.Function.Name, arguments(call.Function.Arguments)
	case call.Custom != nil:
		u.Name, u.Input, u.Custom = call.Custom.Name, string(call.Custom.Input), true
	default:
		return part{}, fmt.Errorf("an object with %s is not a tool call: expected a function", keys(text))
	}
	return partOf(Chat, u), nil
}

// readItem reads an Anthropic content block of type tool_use, or an item of a Responses output.
func readItem(text json.RawMessage) (part, error) {
	var item struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Input     json.RawMessage `json:"input"`
		Status    string          `json:"status"`
		Caller    json.RawMessage `json:"caller"`
	}
	if err := json.Unmarshal(text, &item); err != nil {
		return part{}, fmt.Errorf("the tool use is of no known form: %w", err)
	}
	u := Use{ID: item.CallID, Name: item.Name, Input: arguments(item.Arguments), Caller: item.Caller}
	switch {
	case item.Type == "tool_use":
		return partOf(Anthropic, Use{ID: item.ID, Name: item.Name, Input: string(item.Input)}), nil
	case item.Type == agentToolUse:
		return partOf(AgentToolset, Use{ID: item.ID, Name: item.Name, Input: string(item.Input), Event: true}), nil
	case item.Type == "custom_tool_call":
		u.Input, u.Custom, u.Raw = string(item.Input), true, text
	}
	if item.Status == "incomplete" { // the API's own word that it was cut off
		return part{heading: heading{format: Responses}, cut: []string{u.Name}}, nil
	}
	return partOf(Responses, u), nil
}

// arguments returns the text that a model wrote as arguments. It may not be JSON, which the daemon
// reports to the model.
func arguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
