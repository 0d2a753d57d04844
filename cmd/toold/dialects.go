// How each model API, and the JSON lines of the wire, write one tool use. See message.go for how they are told apart.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// readLine reads a tool use as the wire writes it: {"id", "name", "input" or "input_json", "timeout"}.
func readLine(text json.RawMessage) (message, error) {
	var line struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		InputJSON *string         `json:"input_json"`
		Timeout   string          `json:"timeout"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return message{}, fmt.Errorf("%w: a tool use has id, name, input or input_json, and timeout", err)
	}
	if line.Name == "" {
		return message{}, errors.New("the tool use has no name")
	}
	if line.InputJSON != nil && line.Input != nil {
		return message{}, errors.New("the tool use has both input and input_json: give one")
	}
	u := use{given: line.ID, name: line.Name, input: string(line.Input)}
	if line.InputJSON != nil {
		u.input = *line.InputJSON
	}
	if line.Timeout != "" {
		limit, err := time.ParseDuration(line.Timeout)
		if err != nil || limit <= 0 {
			return message{}, fmt.Errorf("the timeout %q is not a duration such as \"30s\"", line.Timeout)
		}
		u.timeout = limit
	}
	return message{dialect: lines, uses: []use{u}}, nil
}

// readWrapped reads {"tool_use": {...}}, the line that the Execute stream takes.
func readWrapped(whole, inner json.RawMessage) (message, error) {
	var only struct {
		ToolUse json.RawMessage `json:"tool_use"`
	}
	decoder := json.NewDecoder(bytes.NewReader(whole))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&only); err != nil {
		return message{}, fmt.Errorf("%w: beside tool_use nothing else is expected", err)
	}
	if inner[0] != '{' {
		return message{}, fmt.Errorf("tool_use is %s: expected an object", excerpt(inner))
	}
	return readLine(inner)
}

// readBlock reads an Anthropic content block of type tool_use.
func readBlock(text json.RawMessage) (message, error) {
	var block struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(text, &block); err != nil {
		return message{}, fmt.Errorf("the tool_use block is of no known form: %w", err)
	}
	return message{dialect: anthropic, uses: []use{{given: block.ID, name: block.Name, input: string(block.Input)}}}, nil
}

// readChoices reads a whole chat completion. Its tool calls must be in one choice: a conversation goes on with one.
func readChoices(v value) (message, error) {
	var choices []struct {
		Message struct {
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"message"`
	}
	if err := json.Unmarshal(v.Choices, &choices); err != nil {
		return message{}, fmt.Errorf("the choices are of no known form: %w", err)
	}
	var found message
	for _, choice := range choices {
		if !list(choice.Message.ToolCalls) {
			continue
		}
		m, err := readToolCalls(choice.Message.ToolCalls)
		if err != nil {
			return message{}, err
		}
		if found.dialect != silent && m.dialect != silent {
			return message{}, errors.New("more than one choice has tool calls: give the message of the one that the conversation goes on with")
		}
		if m.dialect != silent {
			found = m
		}
	}
	return found.called(v.ID), nil
}

func readToolCalls(text json.RawMessage) (message, error) {
	var calls []json.RawMessage
	if err := json.Unmarshal(text, &calls); err != nil {
		return message{}, err
	}
	var m message
	for i, call := range calls {
		read, err := readToolCall(call)
		if err == nil {
			err = m.join(read)
		}
		if err != nil {
			return message{}, fmt.Errorf("tool call %d: %w", i, err)
		}
	}
	return m, nil
}

// readToolCall reads one of tool_calls. Some servers give the arguments as an object instead of as its text.
func readToolCall(text json.RawMessage) (message, error) {
	var call struct {
		ID       string `json:"id"`
		Function *struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
		Custom *struct {
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
		} `json:"custom"`
	}
	if err := json.Unmarshal(text, &call); err != nil {
		return message{}, fmt.Errorf("it is of no known form: %w", err)
	}
	u := use{given: call.ID}
	switch {
	case call.Function != nil:
		u.name, u.input = call.Function.Name, arguments(call.Function.Arguments)
	case call.Custom != nil:
		u.name, u.input, u.custom = call.Custom.Name, string(call.Custom.Input), true
	default:
		return message{}, fmt.Errorf("an object with %s is not a tool call: expected a function", keys(text))
	}
	return message{dialect: chat, uses: []use{u}}, nil
}

// readItem reads an item of a Responses output.
func readItem(text json.RawMessage) (message, error) {
	var item struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Input     json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(text, &item); err != nil {
		return message{}, fmt.Errorf("the item is of no known form: %w", err)
	}
	u := use{given: item.CallID, name: item.Name, input: arguments(item.Arguments)}
	if item.Type == "custom_tool_call" {
		u.input, u.custom = string(item.Input), true
	}
	return message{dialect: responses, uses: []use{u}}, nil
}

// arguments is the text that a model wrote as arguments; it may be no JSON at all, which the daemon tells the model.
func arguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
