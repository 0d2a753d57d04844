package daemon

// Which tools a session sees. Knows nothing of calls.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/nearest"
)

// offered finds the tool of that exact name in the pool that the options leave; nil: there is none.
func (s *session) offered(name string, options *tooldv1.Options) tools.Tool {
	for _, tool := range s.daemon.Tools {
		if tool.Spec().Name == name && inPool(name, options) && s.stand().rules.Removes(name) == nil {
			return tool
		}
	}
	return nil
}

func (d *Daemon) toolNames() (names []string) {
	for _, tool := range d.Tools {
		names = append(names, tool.Spec().Name)
	}
	return names
}

func inPool(name string, options *tooldv1.Options) bool {
	return options.GetTools() == nil || slices.Contains(options.GetTools().GetNames(), name)
}

// nearest gives the names of the three offered tools whose names are most like name.
func (s *session) nearest(name string, options *tooldv1.Options) (names []string) {
	for _, tool := range s.daemon.pool(options, s.stand().rules, false) {
		names = append(names, tool.GetName())
	}
	name = name[:min(len(name), 100)]
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(nearest.Distance(name, a), nearest.Distance(name, b)) })
	return names[:min(3, len(names))]
}

// pool describes the tools that the options leave, and with unavailable also the others, each with the reason.
func (d *Daemon) pool(options *tooldv1.Options, rules *permission.Rules, unavailable bool) (listed []*tooldv1.Tool) {
	for _, tool := range d.Tools {
		spec := tool.Spec()
		wire := &tooldv1.Tool{Name: spec.Name, Description: spec.Description, InputSchemaJson: string(spec.InputSchema)}
		wire.ReadOnly, wire.Destructive, wire.OpenWorld, wire.Level = spec.ReadOnly, spec.Destructive, spec.OpenWorld, highestLevel(spec)
		removed := rules.Removes(spec.Name)
		switch {
		case removed != nil:
			wire.Unavailable, wire.Level = fmt.Sprintf("The rule %s in %s denies it.", clean(removed.Text), clean(removed.Origin.String())), tooldv1.Level_LEVEL_FORBIDDEN
		case !inPool(spec.Name, options):
			wire.Unavailable = "The session's options.tools does not name it."
		}
		if wire.Unavailable != "" && !unavailable {
			continue
		}
		listed = append(listed, wire)
	}
	return listed
}

// highestLevel is how far a call of the tool can reach at most.
func highestLevel(spec tools.Spec) tooldv1.Level {
	switch {
	case spec.OpenWorld:
		return tooldv1.Level_LEVEL_DANGEROUS
	case spec.ReadOnly:
		return tooldv1.Level_LEVEL_SAFE
	}
	return tooldv1.Level_LEVEL_CONFIRM
}

// definitions puts the offered tools into the form that an API takes in its request; empty for the native one.
func definitions(pool []*tooldv1.Tool, format tooldv1.ToolFormat) (string, error) {
	type anthropic struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type openai struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	type annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
		OpenWorld   bool `json:"openWorldHint"`
	}
	type mcp struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations annotations     `json:"annotations"`
	}
	list := []any{}
	for _, tool := range pool {
		if tool.GetUnavailable() != "" {
			continue
		}
		schema := json.RawMessage(tool.GetInputSchemaJson())
		switch format {
		case tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC:
			list = append(list, anthropic{tool.GetName(), tool.GetDescription(), schema})
		case tooldv1.ToolFormat_TOOL_FORMAT_OPENAI:
			list = append(list, openai{"function", function{tool.GetName(), tool.GetDescription(), schema}})
		case tooldv1.ToolFormat_TOOL_FORMAT_MCP:
			list = append(list, mcp{tool.GetName(), tool.GetDescription(), schema, annotations{tool.GetReadOnly(), tool.GetDestructive(), tool.GetOpenWorld()}})
		default:
			return "", nil
		}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// revision identifies a pool: it changes when the list does.
func revision(pool []*tooldv1.Tool) string {
	sum := sha256.New()
	for _, tool := range pool {
		for _, part := range []string{tool.GetName(), tool.GetDescription(), tool.GetInputSchemaJson(), tool.GetUnavailable()} {
			sum.Write(append([]byte(part), 0))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
