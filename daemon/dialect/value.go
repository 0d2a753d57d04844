package dialect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools/text/ellipsis"
)

// A part is the content of one JSON value: a whole message, or a piece of one. Only the content
// decides what is a tool use, never a stop reason.
type part struct {
	heading
	uses []Use
	cut  []string // names of tool uses that the API itself calls incomplete
}

// partOf returns the part that is one tool use.
func partOf(format Format, u Use) part { return part{heading: heading{format: format}, uses: []Use{u}} }

// readAll reads the elements of a list, each a part of the same value. what is an element's name in errors.
func readAll(text json.RawMessage, what string, read func(json.RawMessage) (part, error)) (part, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		return part{}, err
	}
	var all part
	for i, element := range elements {
		next, err := read(element)
		if err == nil {
			err = all.join(next.heading)
		}
		if err != nil {
			return part{}, fmt.Errorf("%s %d: %w", what, i, err)
		}
		all.uses, all.cut = append(all.uses, next.uses...), append(all.cut, next.cut...)
	}
	return all, nil
}

// A value is every field by which a JSON object can be recognised. Names that two APIs share have
// the same form in both.
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
	Object    json.RawMessage `json:"object"`
	Error     json.RawMessage `json:"error"`
	Code      any             `json:"code"`
	Message   json.RawMessage `json:"message"`
	Response  json.RawMessage `json:"response"`
}

// failureOf returns the error that an API reports instead of a message, or of the rest of its
// stream; nil: v is something else.
func failureOf(v value) *Failure {
	text := v.Error
	switch {
	case v.Type == "response.failed", v.Type == "response.cancelled":
		var response struct {
			Error json.RawMessage `json:"error"`
		}
		_ = json.Unmarshal(v.Response, &response) // what cannot be read is a failure without words
		if text = response.Error; text == nil {
			return &Failure{}
		}
	case v.Type == "error" && text == nil: // the Responses API's error event has no object inside
		return &Failure{Kind: word(v.Code), Message: arguments(v.Message)}
	case v.Type != "" && v.Type != "error", text == nil, string(text) == "null":
		return nil
	}
	var said struct {
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &said) != nil {
		said.Message = arguments(text)
	}
	return &Failure{Kind: cmp.Or(said.Type, word(said.Code)), Message: said.Message}
}

// word returns an error code, for which APIs use strings, numbers and null.
func word(code any) string {
	if code == nil {
		return ""
	}
	return fmt.Sprint(code)
}

func readValue(text json.RawMessage) (part, error) {
	switch text[0] {
	case '[':
		return readArray(text)
	case '{':
		return readObject(text)
	default:
		return part{}, fmt.Errorf("%s is not a tool use: expected an object such as {\"name\":\"Read\",\"input\":{...}}", excerpt(text))
	}
}

// readObject reads a JSON value that stands by itself: a whole message, or one tool use.
func readObject(text json.RawMessage) (part, error) {
	v, err := look(text)
	switch {
	case err != nil:
		return part{}, err
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
		return part{}, nil
	case v.Role != "":
		return part{}, fmt.Errorf("this message has the role %q: send the model's own message (role \"assistant\")", v.Role)
	}
	m, err := readPiece(text, v)
	if err == nil && m.format == Silent && !slices.Contains(spoken, v.Type) {
		return part{}, fmt.Errorf("an object of type %q is neither a tool use nor a model's message", v.Type)
	}
	return m, err
}

// spoken are the types of content that may be a line by themselves and are not a tool use.
var spoken = []string{"text", "thinking", "redacted_thinking", "reasoning", "message"}

// readPiece reads one tool use, or content of a type that asks for nothing, of which new ones appear all the time.
func readPiece(text json.RawMessage, v value) (part, error) {
	switch {
	case v.ToolUse != nil:
		return readWrapped(text, v.ToolUse)
	case v.Type == "tool_use", v.Type == agentToolUse, v.Type == "function_call", v.Type == "custom_tool_call":
		return readItem(text)
	case isOwn(v.Type):
		return readOwn(text)
	case v.Function != nil, v.Type == "custom" && v.Custom != nil:
		return readToolCall(text)
	case v.Type != "":
		return part{}, nil
	case v.Name != nil:
		return readLine(text)
	default:
		return part{}, fmt.Errorf("an object with %s is neither a tool use nor a model's message", keys(text))
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
func (p part) called(id string) part {
	if p.format != Silent {
		p.id = id
	}
	return p
}

func readArray(text json.RawMessage) (part, error) { return readAll(text, "element", readPart) }

// readPart reads an element of a message's content. A whole message in there makes it a
// conversation, and it is unknown which of its tool uses were answered.
func readPart(text json.RawMessage) (part, error) {
	if text[0] != '{' {
		return part{}, fmt.Errorf("%s is not a content block", excerpt(text))
	}
	v, err := look(text)
	if err != nil {
		return part{}, err
	}
	if v.Choices != nil || v.Role != "" && !remark(v) {
		return part{}, errors.New("this is a whole message: of a conversation, send only the last message")
	}
	return readPiece(text, v)
}

// remark reports whether v is a text item of a Responses output, which looks like a message but has
// no tool use.
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
	return ellipsis.Bytes(string(text), 40)
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
