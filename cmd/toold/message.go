// Reads the tool uses out of what a model said: JSON lines, or a message as a model API gave it. What is a tool use is
// judged by the content alone, never by a stop reason. This file knows no daemon and runs nothing; what is inside a
// tool's input is not looked at, so that the daemon judges the model's exact text.

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A dialect is the way a model API writes its messages. It decides how the reply is written.
type dialect uint8

const (
	// silent: there was no tool use, so nothing tells the dialect.
	silent dialect = iota
	// lines: tool uses as JSON values, one after the other.
	lines
	// anthropic: content blocks of type tool_use.
	anthropic
	// chat: OpenAI's Chat Completions, a message with tool_calls.
	chat
	// responses: OpenAI's Responses, items of type function_call.
	responses
)

var dialectNames = [...]string{
	silent: "no tool use", lines: "JSON lines", anthropic: "an Anthropic message", chat: "an OpenAI chat message",
	responses: "OpenAI response items",
}

func (d dialect) String() string { return dialectNames[d] }

// A use is one tool use.
type use struct {
	given   string // the id as the model gave it; the reply repeats it. May be empty
	id      string // what the daemon gets: given, or one made here. Unique in its message
	name    string
	input   string // JSON text as it came, valid or not
	timeout time.Duration
	custom  bool // a call of a tool with free text for input; its reply has another type in the Responses API
}

// A message is what a model said, as far as tools are concerned.
type message struct {
	dialect dialect
	id      string // the API's name of the message; empty when there is none
	uses    []use
}

// errEmpty says that there was not one JSON value.
var errEmpty = errors.New("there is no message: the input is empty")

// readMessage reads one model message, or tool uses as JSON values one after the other. A message without a tool use
// is none the less valid. Errors name the line and what was expected.
func readMessage(text []byte) (message, error) {
	var m message
	decoder := json.NewDecoder(bytes.NewReader(text))
	for values := 0; ; values++ {
		var value json.RawMessage
		start := skipSpace(text, int(decoder.InputOffset()))
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			if values == 0 {
				return message{}, errEmpty
			}
			return m, m.name()
		}
		line := 1 + bytes.Count(text[:start], []byte("\n"))
		if err != nil {
			return message{}, fmt.Errorf("line %d is not JSON: %s", line, syntax(err))
		}
		part, err := readValue(value)
		if err == nil {
			err = m.join(part)
		}
		if err != nil {
			return message{}, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	return at
}

func syntax(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends in the middle of a value"
	}
	return err.Error()
}

// join adds what another value held.
func (m *message) join(part message) error {
	switch {
	case part.dialect == silent:
		return nil
	case m.dialect == silent:
		m.dialect = part.dialect
	case m.dialect != part.dialect:
		return fmt.Errorf("this is %s, but what came before is %s: give one message at a time", part.dialect, m.dialect)
	}
	if m.id != "" && part.id != "" && m.id != part.id {
		return fmt.Errorf("this is a second message (%s after %s): give one message at a time", part.id, m.id)
	}
	m.id = cmp.Or(m.id, part.id)
	m.uses = append(m.uses, part.uses...)
	return nil
}

// name gives each use an id for the wire.
func (m *message) name() error {
	seen := map[string]int{}
	for i := range m.uses {
		u := &m.uses[i]
		if u.id = u.given; u.id == "" {
			u.id = "toold-" + uuid.NewString()
		}
		if first, twice := seen[u.id]; twice {
			return fmt.Errorf("the tool uses %d and %d have the same id %q: each needs its own, or none", first+1, i+1, u.id)
		}
		seen[u.id] = i
	}
	return nil
}

// A value is everything by which a JSON object can be told. Names that two APIs share have the same form in both.
type value struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	Content   json.RawMessage `json:"content"`
	ToolUse   json.RawMessage `json:"tool_use"`
	Choices   json.RawMessage `json:"choices"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	Output    json.RawMessage `json:"output"`
	Name      json.RawMessage `json:"name"`
	Function  json.RawMessage `json:"function"`
	Custom    json.RawMessage `json:"custom"`
}

func readValue(text json.RawMessage) (message, error) {
	switch text[0] {
	case '[':
		return readArray(text)
	case '{':
		return readObject(text)
	default:
		return message{}, fmt.Errorf("%s is not a tool use: expected an object such as {\"name\":\"Read\",\"input\":{...}}", excerpt(text))
	}
}

// readObject reads a JSON value that stands by itself: a whole message, or one tool use.
func readObject(text json.RawMessage) (message, error) {
	v, err := look(text)
	switch {
	case err != nil:
		return message{}, err
	case v.Choices != nil:
		return readChoices(v)
	case list(v.ToolCalls):
		return readToolCalls(v.ToolCalls)
	case list(v.Output) && v.Type == "":
		m, err := readArray(v.Output)
		return m.called(v.ID), err
	case list(v.Content) && (v.Role == "assistant" || v.Role == "" && v.Type == ""):
		m, err := readArray(v.Content)
		return m.called(v.ID), err
	case v.Role == "assistant":
		return message{}, nil
	case v.Role != "":
		return message{}, fmt.Errorf("this message has the role %q: give the model's own message (role \"assistant\")", v.Role)
	}
	m, err := readPiece(text, v)
	if err == nil && m.dialect == silent && !slices.Contains(spoken, v.Type) {
		return message{}, fmt.Errorf("an object of type %q is neither a tool use nor a model's message", v.Type)
	}
	return m, err
}

// spoken are the types of content that may stand alone on a line and ask for nothing.
var spoken = []string{"text", "thinking", "redacted_thinking", "reasoning", "message"}

// readPiece reads one tool use, or content of a type that asks for nothing, of which new ones appear all the time.
func readPiece(text json.RawMessage, v value) (message, error) {
	switch {
	case v.ToolUse != nil:
		return readWrapped(text, v.ToolUse)
	case v.Type == "tool_use":
		return readBlock(text)
	case v.Type == "function_call", v.Type == "custom_tool_call":
		return readItem(text)
	case v.Function != nil, v.Type == "custom" && v.Custom != nil:
		return readToolCall(text)
	case v.Type != "" && v.Type != "error":
		return message{}, nil
	case v.Name != nil:
		return readLine(text)
	default:
		return message{}, fmt.Errorf("an object with %s is neither a tool use nor a model's message", keys(text))
	}
}

func look(text json.RawMessage) (value, error) {
	var v value
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("the object is of no known form: %w", err)
	}
	return v, nil
}

// called names a message after the API's own id. Without a tool use a name would mean nothing.
func (m message) called(id string) message {
	if m.dialect != silent {
		m.id = id
	}
	return m
}

func readArray(text json.RawMessage) (message, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return message{}, err
	}
	var m message
	for i, part := range parts {
		read, err := readPart(part)
		if err == nil {
			err = m.join(read)
		}
		if err != nil {
			return message{}, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return m, nil
}

// readPart reads an element of a message's content. A whole message in there makes it a conversation, of which nobody
// can tell what has been answered.
func readPart(text json.RawMessage) (message, error) {
	if text[0] != '{' {
		return message{}, fmt.Errorf("%s is not a content block", excerpt(text))
	}
	v, err := look(text)
	if err != nil {
		return message{}, err
	}
	if v.Choices != nil || v.Role != "" && !remark(v) {
		return message{}, errors.New("this is a whole message: of a conversation give the last message alone")
	}
	return readPiece(text, v)
}

// remark reports that v is a text item of a Responses output, which looks like a message but holds no tool use.
func remark(v value) bool {
	var parts []struct {
		Type string `json:"type"`
	}
	if v.Type != "message" || json.Unmarshal(v.Content, &parts) != nil {
		return false
	}
	for _, part := range parts {
		if part.Type == "tool_use" {
			return false
		}
	}
	return true
}

func list(text json.RawMessage) bool { return len(text) > 0 && text[0] == '[' }

func excerpt(text json.RawMessage) string {
	const most = 40
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}

func keys(text json.RawMessage) string {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || len(object) == 0 {
		return "no keys"
	}
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, strconv.Quote(name))
	}
	slices.Sort(names)
	if len(names) > 8 {
		names = append(names[:8], "…")
	}
	return "the keys " + strings.Join(names, ", ")
}
