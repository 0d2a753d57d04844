// Options and other choices of a client as the values that the packages below take. What is unset
// is its default.

package convert

import (
	"slices"

	"github.com/toold/toold/daemon/dialect"
	"github.com/toold/toold/daemon/pool"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
)

// Feed returns when the calls of a turn may begin.
func Feed(o *tooldv1.Options) scheduler.Feed {
	if o.GetStart() == tooldv1.Start_START_AT_END_OF_TURN {
		return scheduler.AtEndOfTurn
	}
	return scheduler.Streaming
}

// Ordering returns which calls of a turn wait for which.
func Ordering(o *tooldv1.Options) scheduler.Ordering {
	if o.GetOrdering() == tooldv1.Ordering_ORDERING_DEPENDENCY {
		return scheduler.Dependency
	}
	return scheduler.Batched
}

// Policy returns which failed call stops the others of its turn.
func Policy(o *tooldv1.Options) pipeline.Policy {
	if o.GetSiblingAbort() == tooldv1.SiblingAbort_SIBLING_ABORT_UNSPECIFIED {
		return pipeline.AbortOnBash
	}
	return pipeline.Policy(o.GetSiblingAbort() - 1)
}

// OnTimeout returns what becomes of a Bash command whose time is over.
func OnTimeout(o *tooldv1.Options) tools.OnTimeout {
	if o.GetBashOnTimeout() == tooldv1.OnTimeout_ON_TIMEOUT_BACKGROUND {
		return tools.Background
	}
	return tools.Kill
}

// wireMode is a mode on the wire, where 0 is none.
func wireMode(m permission.Mode) tooldv1.PermissionMode { return tooldv1.PermissionMode(m + 1) }

// ModeIn is the mode that options choose, if they do.
func ModeIn(o *tooldv1.Options) (mode permission.Mode, chosen bool) {
	wire := o.GetPermissionMode()
	if wire == tooldv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED {
		return permission.Default, false
	}
	return permission.Mode(wire - 1), true
}

// ListIn is the list that a rule to remember is for.
func ListIn(r *tooldv1.Remember) (list permission.List, known bool) {
	list, known = map[string]permission.List{"": permission.AllowList, "allow": permission.AllowList, "ask": permission.AskList, "deny": permission.DenyList}[r.GetList()]
	return list, known
}

// LevelIn is the level of the settings file that a scope stands for; false: it is none of a file.
func LevelIn(scope tooldv1.Scope) (level settings.Level, ok bool) {
	level, ok = map[tooldv1.Scope]settings.Level{
		tooldv1.Scope_SCOPE_LOCAL: settings.Local, tooldv1.Scope_SCOPE_PROJECT: settings.Project, tooldv1.Scope_SCOPE_USER: settings.User,
	}[scope]
	return level, ok
}

// modelFormats are the forms in which models ask for calls, and get their results.
var modelFormats = [...]dialect.Format{
	tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC: dialect.Anthropic, tooldv1.ModelFormat_MODEL_FORMAT_OPENAI_CHAT: dialect.Chat,
	tooldv1.ModelFormat_MODEL_FORMAT_OPENAI_RESPONSES: dialect.Responses, tooldv1.ModelFormat_MODEL_FORMAT_ANTHROPIC_NATIVE: dialect.AnthropicNative,
	tooldv1.ModelFormat_MODEL_FORMAT_AGENT_TOOLSET: dialect.AgentToolset,
}

// ModelFormatIn is the form that a message names; Silent: none that is known.
func ModelFormatIn(f tooldv1.ModelFormat) dialect.Format {
	if f < 0 || int(f) >= len(modelFormats) {
		return dialect.Silent
	}
	return modelFormats[f]
}

// ModelFormat is how the wire names a form; unspecified: it is not that of a model API.
func ModelFormat(f dialect.Format) tooldv1.ModelFormat {
	return tooldv1.ModelFormat(max(0, slices.Index(modelFormats[:], f)))
}

// FormatIn is the form of definitions that a request asks for; false: none.
func FormatIn(f tooldv1.ToolFormat) (format pool.Format, some bool) {
	format, some = map[tooldv1.ToolFormat]pool.Format{
		tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC: pool.Anthropic, tooldv1.ToolFormat_TOOL_FORMAT_OPENAI: pool.OpenAI, tooldv1.ToolFormat_TOOL_FORMAT_MCP: pool.MCP,
		tooldv1.ToolFormat_TOOL_FORMAT_OPENAI_RESPONSES: pool.Responses, tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC_NATIVE: pool.AnthropicNative,
		tooldv1.ToolFormat_TOOL_FORMAT_AGENT_TOOLSET: pool.AgentToolset,
	}[f]
	return format, some
}
