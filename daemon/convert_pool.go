// Tools of a pool as the wire describes them.

package daemon

import (
	"github.com/toold/toold/daemon/pool"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// toolOf describes a tool of a pool. Of one that is deferred a model gets the name alone, and whole says to tell the rest all
// the same.
func toolOf(e pool.Entry, whole bool) *tooldv1.Tool {
	s := e.Spec
	wire := &tooldv1.Tool{
		Name: clean(s.Name), ReadOnly: s.ReadOnly, Destructive: s.Destructive, OpenWorld: s.OpenWorld, Deferred: e.Deferred,
		Unavailable: clean(e.Unavailable), Level: highestLevel(s),
	}
	if e.Forbidden {
		wire.Level = tooldv1.Level_LEVEL_FORBIDDEN
	}
	if whole || !e.Deferred {
		wire.Description, wire.InputSchemaJson = clean(s.Description), clean(string(s.InputSchema))
	}
	return wire
}

// highestLevel is how far a call of the tool can reach at most.
func highestLevel(s tools.Spec) tooldv1.Level {
	switch {
	case s.OpenWorld || s.Origin == tools.MCP || s.Origin != tools.BuiltIn && !s.ReadOnly:
		return tooldv1.Level_LEVEL_DANGEROUS
	case s.ReadOnly:
		return tooldv1.Level_LEVEL_SAFE
	}
	return tooldv1.Level_LEVEL_CONFIRM
}

// formatIn is the form of definitions that a request asks for; false: none.
func formatIn(f tooldv1.ToolFormat) (format pool.Format, some bool) {
	format, some = map[tooldv1.ToolFormat]pool.Format{
		tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC: pool.Anthropic, tooldv1.ToolFormat_TOOL_FORMAT_OPENAI: pool.OpenAI, tooldv1.ToolFormat_TOOL_FORMAT_MCP: pool.MCP,
	}[f]
	return format, some
}
