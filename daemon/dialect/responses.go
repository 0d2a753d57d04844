package dialect

import (
	"encoding/json"
	"fmt"
)

// responseEvent is every field of the events of a Responses stream that counts here.
type responseEvent struct {
	Type        string          `json:"type"`
	OutputIndex int             `json:"output_index"`
	Item        json.RawMessage `json:"item"`
	Response    struct {
		ID     string            `json:"id"`
		Output []json.RawMessage `json:"output"`
	} `json:"response"`
}

// responses reads an event. Deltas are not collected, since the event that ends an item holds all of it.
func (e *events) responses(value []byte) (uses []Use, id string, err error) {
	var event responseEvent
	if err := json.Unmarshal(value, &event); err != nil {
		return nil, "", fmt.Errorf("the event is of no known form: %w", err)
	}
	switch event.Type {
	case "response.output_item.added":
		_, _, err = e.item(event.OutputIndex, event.Item)
	case "response.output_item.done":
		uses, err = e.itemDone(event.OutputIndex, event.Item)
	case "response.completed", "response.incomplete":
		for place, item := range event.Response.Output { // only some servers have all of it there
			ready, itemErr := e.itemDone(place, item)
			if uses, err = append(uses, ready...), itemErr; err != nil {
				break
			}
		}
		e.ended = true
		e.finish(false) // what has begun and was not done
	}
	return uses, event.Response.ID, err
}

// item finds or begins the block of an output item; nil: it is not a tool call.
func (e *events) item(place int, text json.RawMessage) (*block, part, error) {
	v, err := look(text)
	if err != nil || v.Type != "function_call" && v.Type != "custom_tool_call" && !isOwn(v.Type) {
		return nil, part{}, err
	}
	p, err := readPiece(text, v)
	if err != nil {
		return nil, part{}, err
	}
	name := arguments(v.Name)
	if len(p.uses) > 0 {
		name = p.uses[0].Name
	}
	b, err := e.begin(place, Use{Name: name})
	return b, p, err
}

// itemDone returns the tool use of an item that has ended, unless it was returned before.
func (e *events) itemDone(place int, text json.RawMessage) ([]Use, error) {
	b, p, err := e.item(place, text)
	if b == nil || err != nil || b.over {
		return nil, err
	}
	b.over = true
	e.cut = append(e.cut, p.cut...)
	return p.uses, nil
}
