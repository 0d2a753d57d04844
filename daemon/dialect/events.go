package dialect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// events collects the tool uses of a message that comes as the events of a stream.
type events struct {
	blocks map[int]*block // that were not returned yet, by their place in the message
	begun  int
	held   int // bytes of their inputs
	ended  bool
	cut    []string
}

// A block is a tool use that comes in pieces.
type block struct {
	use    Use
	input  strings.Builder
	nested nesting
	// stopped: the API said that the block is complete, but its input is not an object. What follows shows whether it was
	// cut off.
	stopped bool
	whole   bool // the input is an object from its first byte to its last, so that nothing is missing
	over    bool // it was returned; kept to refuse what still comes
}

// streamEnd ends the stream of Chat Completions; it is not JSON.
const streamEnd = "[DONE]"

// event reads value if it is an event of a stream. An event of an unknown type is ignored: new
// types appear all the time.
func (m *Message) event(value []byte) (uses []Use, is bool, err error) {
	v, err := look(value)
	if err != nil { // not an object
		return nil, false, nil
	}
	if f := failureOf(v); f != nil {
		return nil, true, f
	}
	format, read := formatOfEvent(v)
	if format == Silent {
		return nil, m.events != nil && v.Type != "", nil
	}
	if m.events == nil {
		m.events = &events{blocks: map[int]*block{}}
	}
	if err := m.join(heading{format: format}); err != nil {
		return nil, true, err
	}
	uses, id, err := read(m.events, value)
	if err == nil {
		err = m.join(heading{format, id})
	}
	return uses, true, err
}

// formatOfEvent recognises events by their type. read returns the tool uses that an event
// completes, and the message's id if the event has it.
func formatOfEvent(v value) (format Format, read func(e *events, value []byte) (uses []Use, id string, err error)) {
	switch {
	case slices.Contains(anthropicEvents, v.Type):
		return Anthropic, (*events).anthropic
	case strings.HasPrefix(v.Type, "response."):
		return Responses, (*events).responses
	case string(v.Object) == `"chat.completion.chunk"`:
		return Chat, (*events).chat
	}
	return Silent, nil
}

// begin makes a block, unless there is one at the place.
func (e *events) begin(place int, u Use) (*block, error) {
	if b := e.blocks[place]; b != nil {
		return b, nil
	}
	if e.begun++; e.begun > maxBlocks {
		return nil, fmt.Errorf("the message asks for more than %d tool calls", maxBlocks)
	}
	b := &block{use: u}
	e.blocks[place] = b
	return b, nil
}

// grow adds a piece to the block's input. Of an input that is too large the rest is dropped: as it is, it is refused.
func (e *events) grow(b *block, text string) error {
	if b.over {
		if strings.TrimSpace(text) != "" {
			return fmt.Errorf("the input of %s goes on behind its end", b.use.Name)
		}
		return nil
	}
	text = text[:min(len(text), maxInput-b.input.Len())]
	if e.held += len(text); e.held > maxHeld {
		return fmt.Errorf("the tool uses that are not complete hold more than %d bytes of input", maxHeld)
	}
	b.input.WriteString(text)
	closed := b.nested.over
	for i := range len(text) {
		b.nested.next(text[i])
	}
	switch {
	case closed:
		b.whole = b.whole && strings.TrimSpace(text) == ""
	case b.nested.over:
		b.whole = !b.use.Custom && isObject(b.input.String())
	}
	return nil
}

// take returns the block's tool use. The caller keeps the block or deletes it.
func (e *events) take(b *block) Use {
	b.use.Input = b.input.String()
	b.over = true
	e.held -= b.input.Len()
	b.input = strings.Builder{}
	return b.use
}

// places returns the places of the blocks, in order.
func (e *events) places() []int { return slices.Sorted(maps.Keys(e.blocks)) }

// release returns the blocks that have stopped, since what followed shows that nothing was cut off.
func (e *events) release() (uses []Use) {
	for _, place := range e.places() {
		if b := e.blocks[place]; b.stopped && !b.over {
			uses = append(uses, e.take(b))
			delete(e.blocks, place)
		}
	}
	return uses
}

// finish closes the blocks that are left when the message is over. If it ended as it should, they are complete.
func (e *events) finish(whole bool) (uses []Use) {
	for _, place := range e.places() {
		b := e.blocks[place]
		delete(e.blocks, place)
		switch {
		case b.over:
		case whole:
			uses = append(uses, e.take(b))
		default:
			e.cut = append(e.cut, e.take(b).Name)
		}
	}
	return uses
}
