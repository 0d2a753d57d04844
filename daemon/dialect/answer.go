package dialect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toold/toold/tools"
)

// ReadItem reads one tool use as a model API has it in a message: a tool_use block, an element of tool_calls, a function_call
// or custom_tool_call. The error says what the item is instead.
func ReadItem(item []byte) (Use, Format, error) {
	if !json.Valid(item) {
		return Use{}, Silent, &syntaxError{item}
	}
	if item = bytes.TrimSpace(item); item[0] != '{' {
		return Use{}, Silent, fmt.Errorf("%s is not an object", excerpt(item))
	}
	v, err := look(item)
	if err != nil {
		return Use{}, Silent, err
	}
	p, err := readPiece(item, v)
	switch {
	case err != nil:
		return Use{}, Silent, err
	case len(p.cut) > 0:
		return Use{}, Silent, fmt.Errorf("the API says of this call of %s that it is incomplete", p.cut[0])
	case len(p.uses) != 1 || p.format == Lines:
		return Use{}, Silent, fmt.Errorf("an object with %s is not a tool use of a model API", keys(item))
	}
	return canonical(p.uses[0]), p.format, nil
}

// Type returns what the format calls an item with that use.
func (f Format) Type(u Use) string {
	switch {
	case u.Item != "":
		return u.Item
	case u.Event:
		return agentToolUse
	case f == Anthropic, f == AnthropicNative, f == AgentToolset:
		return "tool_use"
	case f == Chat && u.Custom:
		return "custom"
	case f == Chat:
		return "function"
	case f == Responses && u.Custom:
		return "custom_tool_call"
	case f == Responses:
		return "function_call"
	}
	return ""
}

// An Output is what a call has returned, for the model.
type Output struct {
	Blocks  []tools.Block
	IsError bool
	// Stopped means that the call was stopped, or did not start for a reason that lies outside of it.
	Stopped bool
	// Structured returns the result for programs as JSON; nil: there is none.
	Structured func() ([]byte, error)
}

// Answer returns the item, as JSON, that answers the use in a conversation of that format: a tool_result block, a message of the
// role tool, or a function_call_output. A block of no text, which the APIs refuse, is left out, and an output of none is
// "(no output)". The format is that of a model API.
func Answer(f Format, u Use, o Output) ([]byte, error) {
	blocks := spokenBlocks(o.Blocks)
	switch f {
	case Anthropic, AnthropicNative, AgentToolset:
		kind := "tool_result"
		if u.Event {
			kind = "user.tool_result"
		}
		if t := tables[f]; o.IsError && t.renames(u.Native) {
			blocks = append(blocks, tools.Block{Text: t.glossary})
		}
		return Marshal(toolResult{kind, u.ID, anthropicBlocks(blocks), o.IsError})
	case Chat:
		return Marshal(toolMessage{"tool", u.ID, flatText(blocks)})
	case Responses:
		if u.Item != "" {
			return Marshal(answerOwn(u, o, flatText(blocks)))
		}
		return Marshal(callOutput{f.Type(u) + "_output", u.ID, responsesOutput(blocks), u.Caller})
	}
	return nil, errors.New("this is not the format of a model API")
}

type (
	toolResult struct {
		Type      string           `json:"type"`
		ToolUseID string           `json:"tool_use_id"`
		Content   []anthropicBlock `json:"content"`
		IsError   bool             `json:"is_error"`
	}
	anthropicBlock struct {
		Type   string  `json:"type"`
		Text   string  `json:"text,omitempty"`
		Source *source `json:"source,omitempty"`
	}
	source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"` // which JSON has in base64
	}
	toolMessage struct {
		Role       string `json:"role"`
		ToolCallID string `json:"tool_call_id"`
		Content    string `json:"content"`
	}
	callOutput struct {
		Type   string          `json:"type"`
		CallID string          `json:"call_id"`
		Output any             `json:"output"`
		Caller json.RawMessage `json:"caller,omitempty"`
	}
	inputPart struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
		Filename string `json:"filename,omitempty"`
		FileData string `json:"file_data,omitempty"`
	}
)

func anthropicBlocks(blocks []tools.Block) (list []anthropicBlock) {
	inline := func(kind string, b *tools.Blob) anthropicBlock {
		return anthropicBlock{Type: kind, Source: &source{"base64", b.MediaType, b.Data}}
	}
	for _, b := range blocks {
		switch {
		case b.Image != nil:
			list = append(list, inline("image", b.Image))
		case b.Document != nil:
			list = append(list, inline("document", b.Document))
		default:
			list = append(list, anthropicBlock{Type: "text", Text: TextOf(b)})
		}
	}
	return list
}

// responsesOutput is a text, or a list if there is something that is not text.
func responsesOutput(blocks []tools.Block) any {
	var parts []inputPart
	plain := true
	for _, b := range blocks {
		switch {
		case b.Image != nil:
			parts, plain = append(parts, inputPart{Type: "input_image", ImageURL: dataURL(b.Image)}), false
		case b.Document != nil:
			parts, plain = append(parts, inputPart{Type: "input_file", Filename: "document", FileData: dataURL(b.Document)}), false
		default:
			parts = append(parts, inputPart{Type: "input_text", Text: TextOf(b)})
		}
	}
	if plain {
		return flatText(blocks)
	}
	return parts
}

func dataURL(b *tools.Blob) string {
	return "data:" + b.MediaType + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
}

// flatText returns blocks for APIs whose tool messages carry only text.
func flatText(blocks []tools.Block) string {
	parts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		parts = append(parts, TextOf(b))
	}
	return strings.Join(parts, "\n")
}

// TextOf returns a block in words.
func TextOf(b tools.Block) string {
	blob := func(kind string, b *tools.Blob) string {
		return fmt.Sprintf("[%s, %s, %d bytes: not shown as text]", kind, b.MediaType, len(b.Data))
	}
	switch {
	case b.Image != nil:
		return blob("image", b.Image)
	case b.Document != nil:
		return blob("document", b.Document)
	case b.Link != nil:
		return strings.TrimSpace(b.Link.Name + " " + b.Link.URI)
	}
	return b.Text
}

// Spoken reports whether a block has something to see: the APIs refuse text that has not.
func Spoken(b tools.Block) bool { return strings.TrimSpace(TextOf(b)) != "" }

// spokenBlocks leaves out blocks that hold nothing to see; it returns one at least.
func spokenBlocks(blocks []tools.Block) (spoken []tools.Block) {
	for _, b := range blocks {
		if Spoken(b) {
			spoken = append(spoken, b)
		}
	}
	if len(spoken) == 0 {
		return []tools.Block{{Text: "(no output)"}}
	}
	return spoken
}

// Marshal returns v as JSON with <, > and & as they are: a model should read the text that a tool returned.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
