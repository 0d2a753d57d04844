package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// chatChunk is every field of a chunk of Chat Completions that counts here.
type chatChunk struct {
	ID      string `json:"id"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			ToolCalls []toolCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
}

// A toolCall is a tool call of Chat Completions, or a piece of one in a stream. Some servers send the arguments as an object instead
// of as its text.
type toolCall struct {
	Index    *int   `json:"index"` // only of a piece
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

// chat reads a chunk. No event marks the end of a call, so its arguments do: nothing can follow the
// end of an object.
func (e *events) chat(value []byte) (uses []Use, id string, err error) {
	var chunk chatChunk
	if err := json.Unmarshal(value, &chunk); err != nil {
		return nil, "", fmt.Errorf("the chunk is of no known form: %w", err)
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 && len(choice.Delta.ToolCalls) > 0 {
			return uses, chunk.ID, errors.New("more than one choice has tool calls: ask for one choice")
		}
		for _, d := range choice.Delta.ToolCalls {
			ready, err := e.chatDelta(d)
			if uses = append(uses, ready...); err != nil {
				return uses, chunk.ID, err
			}
		}
		if choice.Index == 0 && choice.FinishReason != "" {
			e.ended = true
			uses = append(uses, e.finish(choice.FinishReason != "length" && choice.FinishReason != "content_filter")...)
		}
	}
	return uses, chunk.ID, nil
}

func (e *events) chatDelta(d toolCall) (uses []Use, err error) {
	var name, text string
	if d.Function != nil {
		name, text = d.Function.Name, arguments(d.Function.Arguments)
	}
	b, err := e.begin(e.chatPlace(d, text), Use{ID: d.ID})
	if err != nil {
		return nil, err
	}
	if d.Custom != nil {
		name, text, b.use.Custom = d.Custom.Name, arguments(d.Custom.Input), true
	}
	if name != "" && (!b.over || d.Custom != nil) {
		b.use.Name = name
	}
	if err := e.grow(b, text); err != nil {
		return nil, err
	}
	if b.whole && !b.over && b.use.Name != "" {
		return []Use{e.take(b)}, nil
	}
	return nil, nil
}

// chatPlace returns the place of the call that a piece with that text belongs to. Some servers number all calls 0,
// or not at all: another id begins another call, and a piece without an id belongs to the last.
func (e *events) chatPlace(d toolCall, text string) int {
	last := e.begun - 1
	place := last
	if d.Index != nil {
		place = *d.Index
	}
	b := e.blocks[place]
	switch {
	case b == nil && d.Index != nil:
		return place
	case b == nil, d.ID != "" && b.use.ID != "" && b.use.ID != d.ID:
		return e.begun
	case d.ID == "" && b.over && strings.TrimSpace(text) != "" && e.blocks[last] != nil && !e.blocks[last].over:
		return last
	}
	return place
}
