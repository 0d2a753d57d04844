// Package dialect reads tool uses out of a model's message, in the formats of several model APIs: a
// whole message, its items one by one, or the events of its stream; and writes the items that answer
// them. It is pure: JSON values in, tool uses out. It does not know where the values come from, nor what becomes of the tool uses. It
// does not look inside a tool's input, so that the daemon judges the model's exact text.
package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Format is the way in which a model API writes its messages. It decides how the reply is written.
type Format uint8

const (
	// Silent: there was no tool use, so the format is unknown.
	Silent Format = iota
	// Lines: tool uses as JSON values, one after the other.
	Lines
	// Anthropic: content blocks of type tool_use, of the Messages API.
	Anthropic
	// Chat: OpenAI's Chat Completions, a message with tool_calls.
	Chat
	// Responses: OpenAI's Responses, items of type function_call.
	Responses
	// AnthropicNative: as Anthropic, to a model with Anthropic's own tools.
	AnthropicNative
	// AgentToolset: as Anthropic, or the events agent.tool_use of a managed agent, to a model with the tools of those.
	AgentToolset
)

var formatNames = [...]string{
	Silent: "no tool use", Lines: "JSON lines", Anthropic: "an Anthropic message", Chat: "an OpenAI chat message",
	Responses: "OpenAI response items", AnthropicNative: "an Anthropic message with its native tools", AgentToolset: "a tool use of a managed agent",
}

func (f Format) String() string { return formatNames[f] }

// A Use is one tool use.
type Use struct {
	ID      string // as the model gave it, which the reply repeats. May be empty
	Name    string
	Input   string        // JSON text as it came, valid or not
	Timeout time.Duration // 0: none was named
	Custom  bool          // a call of a tool with free text for input; its reply has another type in the Responses API
	// Caller is what the Responses API says of who asks, as JSON, which the reply repeats; nil: nothing.
	Caller json.RawMessage
	Item   string          // the type of its item, where the API has one for the tool alone; empty: that of any tool
	Raw    json.RawMessage // such an item, or one with free text for input, as it came; nil: it is neither
	Event  bool            // an event of a managed agent, whose reply is one too
	// Native is the model's own name of the tool, where Name and Input are those of the tool that it stands for; empty: Name.
	Native string
	// Directory is the call that is meant if the path that it names is that of a directory; nil: the same.
	Directory *Use
}

const (
	// maxInput is how many bytes of one input are collected from deltas. It is what the daemon takes of an input, and one
	// more, so that a larger one is refused as the call's result.
	maxInput = 10<<20 + 1
	// maxHeld is how many bytes of inputs, and of one JSON value, are held at a time: as many as a session's open calls
	// may hold.
	maxHeld = 64 << 20
	// maxBlocks is how many tool uses one stream may begin. The number is our own: ten times the
	// open calls of a session.
	maxBlocks = 10_000
)

// A Failure is a [Message]'s error if the model's API reported an error instead of the rest of the
// message, which therefore does not count.
type Failure struct {
	Kind    string // the API's code or type; may be empty
	Message string // the API's own words; may be empty
}

func (f *Failure) Error() string {
	return "the model's API reported " + strings.TrimSuffix(cmp.Or(f.Kind, "an error")+": "+f.Message, ": ")
}

// A Message collects the tool uses of one message. Its zero value is ready to use. It is not safe for concurrent use.
type Message struct {
	heading
	count  int
	ids    map[string]int // places of the tool uses with an id of the model's
	events *events        // nil: no event of a stream came
	whole  bool           // what came was no event
	cut    []string
}

// Format returns the format of the tool uses so far.
func (m *Message) Format() Format { return m.format }

// ID returns the API's name of the message; empty if there is none, or none yet.
func (m *Message) ID() string { return m.id }

// Add reads the message's next JSON value: all of it, a tool use, or one event of its stream. It
// returns the tool uses that are complete by that, in order, beside an error too. After an error,
// which is a [*Failure] or describes what was expected, the message accepts nothing more.
func (m *Message) Add(value []byte) ([]Use, error) {
	switch {
	case string(value) == streamEnd && m.events == nil:
		return nil, errors.New("[DONE] ends a stream, and none of its events came before it")
	case string(value) == streamEnd:
		m.events.ended = true
		return m.accept(m.events.finish(true), nil)
	case !json.Valid(value):
		return nil, &syntaxError{value}
	}
	if uses, is, err := m.event(value); is || err != nil {
		return m.accept(uses, err)
	}
	m.whole = true
	p, err := readValue(value)
	if err == nil {
		err = m.join(p.heading)
	}
	if err != nil {
		return nil, err
	}
	m.cut = append(m.cut, p.cut...)
	return m.accept(p.uses, nil)
}

// Ended reports whether the API has said that the message is over, or a whole message has come.
func (m *Message) Ended() bool {
	if m.events == nil {
		return m.whole
	}
	return m.events.ended
}

// Held is how many bytes of inputs are collected that are not complete.
func (m *Message) Held() int {
	if m.events == nil {
		return 0
	}
	return m.events.held
}

// An Ending is how a message ended.
type Ending struct {
	// CutOff holds the names of the tool uses that had begun and were not complete. They never ran.
	CutOff []string
	// Broken: the events of a stream ended before the message did.
	Broken bool
}

// End is called when no more values come. It returns what can only be known to be complete by that.
func (m *Message) End() ([]Use, Ending, error) {
	if m.events == nil {
		return nil, Ending{CutOff: m.cut}, nil
	}
	broken := !m.events.ended
	uses, err := m.accept(m.events.finish(!broken), nil)
	return uses, Ending{CutOff: append(m.cut, m.events.cut...), Broken: broken}, err
}

// A heading is what the parts of a message have in common.
type heading struct {
	format Format
	id     string // the API's name of the message; empty: none
}

// join takes what is known of a further part of the message.
func (h *heading) join(next heading) error {
	switch {
	case next.format == Silent:
		return nil
	case h.format == Silent:
		h.format = next.format
	case h.format != next.format:
		return fmt.Errorf("this is %s, but what came before is %s: send one message at a time", next.format, h.format)
	}
	if h.id != "" && next.id != "" && h.id != next.id {
		return fmt.Errorf("this is a second message (%s after %s): send one message at a time", next.id, h.id)
	}
	h.id = cmp.Or(h.id, next.id)
	return nil
}

// accept counts tool uses in, up to the first whose id is not its own.
func (m *Message) accept(uses []Use, err error) ([]Use, error) {
	if m.ids == nil {
		m.ids = map[string]int{}
	}
	for i, u := range uses {
		uses[i] = canonical(u)
		m.count++
		if first, twice := m.ids[u.ID]; twice && u.ID != "" {
			return uses[:i], fmt.Errorf("the tool uses %d and %d have the same id %q: each needs its own, or none", first, m.count, u.ID)
		}
		m.ids[u.ID] = m.count
	}
	return uses, err
}

// A syntaxError is that of a value that is not JSON.
type syntaxError struct{ value []byte }

func (e *syntaxError) Error() string {
	var v json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(e.value))
	err := decoder.Decode(&v)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "it ends in the middle of a value"
	case err == nil:
		return "something follows the value without a space"
	}
	return err.Error()
}
