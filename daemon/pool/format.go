// Pools in the forms that model APIs and MCP take in a request, as they are. Which tools a session has is not decided
// here.

package pool

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
)

// A Format is a form of definitions.
type Format uint8

// The formats.
const (
	Anthropic Format = iota // "tools" of the Messages API
	OpenAI                  // "tools" of the Chat Completions API
	MCP                     // "tools" of a result of tools/list
)

// maxFunction is how many characters of a description OpenAI's API takes: it refuses the whole request for one above, with
// the code string_above_max_length.
const maxFunction = 1024

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type openAITool struct {
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type mcpTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations annotations     `json:"annotations"`
}

type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// Definitions returns the tools that the session has as a JSON array. What comes into a later block changes no byte before
// it but the closing bracket.
func (p *Pool) Definitions(f Format) (string, error) {
	list := []any{}
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Has() {
			list = append(list, f.definition(e.Spec))
		}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

func (f Format) definition(s tools.Spec) any {
	switch f {
	case OpenAI:
		return openAITool{"function", openAIFunction{s.Name, brief(s.Description), s.InputSchema}}
	case MCP:
		return mcpTool{s.Name, s.Description, s.InputSchema, annotations{s.ReadOnly, s.Destructive, s.OpenWorld}}
	}
	return anthropicTool{s.Name, s.Description, s.InputSchema}
}

// brief cuts a description to the length that OpenAI's API accepts, after the last line or sentence
// that fits.
func brief(text string) string {
	if utf8.RuneCountInString(text) <= maxFunction {
		return text
	}
	text = string([]rune(text)[:maxFunction])
	for _, end := range []string{"\n", ". "} {
		if at := strings.LastIndex(text, end); at > maxFunction/2 {
			return strings.TrimSpace(text[:at+1])
		}
	}
	return text
}
