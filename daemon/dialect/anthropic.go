package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
)

// anthropicEvents are the events of a Messages stream that tool uses depend on, and ping.
var anthropicEvents = []string{
	"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping",
}

// cutOffReasons are the stop reasons after which the last block may not be whole.
var cutOffReasons = []string{"max_tokens", "model_context_window_exceeded", "refusal"}

// anthropicEvent is every field of those events that counts here.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		ID string `json:"id"`
	} `json:"message"`
	ContentBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
}

func (e *events) anthropic(value []byte) (uses []Use, id string, err error) {
	var event anthropicEvent
	if err := json.Unmarshal(value, &event); err != nil {
		return nil, "", fmt.Errorf("the event is of no known form: %w", err)
	}
	b := e.blocks[event.Index]
	switch event.Type {
	case "message_start":
		return nil, event.Message.ID, nil
	case "content_block_start":
		uses = e.release()
		if c := event.ContentBlock; c.Type == "tool_use" {
			b, err = e.begin(event.Index, Use{ID: c.ID, Name: c.Name})
			if err == nil && !emptyObject(c.Input) {
				err = e.grow(b, string(c.Input))
			}
		}
	case "content_block_delta":
		if b != nil && !b.stopped && event.Delta.Type == "input_json_delta" {
			err = e.grow(b, event.Delta.PartialJSON)
		}
		uses = e.release()
	case "content_block_stop":
		if b == nil {
			break
		}
		if b.stopped = true; b.whole {
			uses = append(uses, e.take(b))
			delete(e.blocks, event.Index)
		}
	case "message_delta":
		if reason := event.Delta.StopReason; reason != "" {
			uses = e.finish(!slices.Contains(cutOffReasons, reason))
		}
	case "message_stop":
		e.ended = true
		uses = e.finish(true)
	}
	return uses, "", err
}

// emptyObject reports whether a block's input is the {} with which one begins whose input comes in deltas.
func emptyObject(input json.RawMessage) bool {
	var object map[string]json.RawMessage
	return len(input) == 0 || json.Unmarshal(input, &object) == nil && len(object) == 0
}
