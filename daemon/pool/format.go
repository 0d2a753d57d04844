// Pools in the forms that model APIs and MCP take in a request, as they are. Which tools a session
// has is not decided here.

package pool

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/daemon/dialect"
	"github.com/toold/toold/tools"
)

// A Format is a form of definitions.
type Format uint8

// The formats.
const (
	Anthropic       Format = iota // "tools" of the Messages API
	OpenAI                        // "tools" of the Chat Completions API
	MCP                           // "tools" of a result of tools/list
	Responses                     // "tools" of the Responses API
	AnthropicNative               // as Anthropic, with Anthropic's own tools
	AgentToolset                  // as Anthropic, with the tools of managed agents
)

// natives are the formats that have tools of their own.
var natives = map[Format]dialect.Format{AnthropicNative: dialect.AnthropicNative, AgentToolset: dialect.AgentToolset}

// maxFunction is how many characters of a description OpenAI's API takes: it refuses the whole
// request for one above, with the code string_above_max_length.
const maxFunction = 1024

// A wireTool is a tool in one of the forms, with one of the three fields for its schema.
type wireTool struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"` // nil: not said
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Annotations *annotations    `json:"annotations,omitempty"`
}

type openAITool struct {
	Type     string   `json:"type"`
	Function wireTool `json:"function"`
}

type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// responsesTools are the definitions of the tools that the Responses API defines itself.
var responsesTools = map[string]json.RawMessage{
	"ApplyPatch": json.RawMessage(`{"type":"apply_patch"}`),
	"Shell":      json.RawMessage(`{"type":"shell","environment":{"type":"local"}}`),
}

// Definitions returns the tools that are listed as a JSON array. What comes into a later block
// changes no byte before it but the closing bracket.
func (p *Pool) Definitions(f Format) (string, error) {
	list := []any{}
	for i := range p.Entries {
		e := &p.Entries[i]
		switch own, is := f.native(e.Spec); {
		case !e.Has():
		case is && own != "":
			list = append(list, json.RawMessage(own))
		case !is && e.Listed():
			list = append(list, f.definition(e.Spec))
		}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// native returns the definition of the format's own tool that a built-in one brings, and reports whether the built-in one is not
// defined itself.
func (f Format) native(s tools.Spec) (definition string, is bool) {
	for _, own := range dialect.NativeTools(natives[f]) {
		switch i := slices.Index(own.For, s.Name); {
		case i < 0 || s.Origin != tools.BuiltIn:
		case i == 0:
			return own.Definition, true
		default:
			is = true
		}
	}
	return "", is
}

func (f Format) definition(s tools.Spec) any {
	d := wireTool{Name: s.Name, Description: s.Description}
	switch f {
	case OpenAI:
		d.Description, d.Parameters = brief(s.Description), s.InputSchema
		return openAITool{"function", d}
	case Responses:
		if own, is := responsesTools[s.Name]; is {
			return own
		}
		d.Type, d.Description, d.Parameters, d.Strict = "function", brief(s.Description), s.InputSchema, new(bool) // strict has no optional fields
	case MCP:
		d.InputSchema, d.Annotations = s.InputSchema, &annotations{s.ReadOnly, s.Destructive, s.OpenWorld}
	default:
		d.Schema = s.InputSchema
	}
	return d
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
