//go:build !no_mcp

// Tools defined by a server. The server's description is not trusted: texts are cleaned and
// shortened, schemas are checked, and hints stay hints.

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	// maxDescription is the longest description that is shown, in characters. Clients document
	// 2,000 as what well-behaved servers keep to.
	maxDescription = 2000
	// maxResult is the longest inline result that a server may request, in characters.
	maxResult = 500_000
	// maxToolName is the longest name of a tool together with its server's, in bytes; our own
	// number.
	maxToolName = 512
)

// What a server may declare about a tool beyond the protocol.
const (
	metaResultChars = "anthropic/maxResultSizeChars"
	metaAsks        = "anthropic/requiresUserInteraction"
)

// A caller sends one call of a tool to its server.
type caller func(ctx context.Context, env *tools.Env, tool string, input json.RawMessage) (tools.Result, error)

// define makes tools of those that a server lists, sorted by name, and returns a sentence for each
// that is left out.
func define(e Entry, offered []*sdk.Tool, call caller) (defined []tools.Tool, leftOut []string) {
	var names []string
	offered = slices.DeleteFunc(slices.Clone(offered), func(t *sdk.Tool) bool {
		bad := t == nil || t.Name == "" || len(t.Name) > maxToolName || slices.Contains(names, t.Name)
		if bad {
			leftOut = append(leftOut, "A tool without a name is left out.")
		} else {
			names = append(names, t.Name)
		}
		return bad
	})
	for i, name := range distinct(e.Name, names) {
		tool, err := defineOne(e, name, offered[i], call)
		if err != nil {
			leftOut = append(leftOut, fmt.Sprintf("The tool %q is left out: %s.", ellipsis.Runes(clean(offered[i].Name), 80), ellipsis.Runes(clean(err.Error()), 300)))
			continue
		}
		defined = append(defined, tool)
	}
	slices.SortFunc(defined, byName)
	return defined, leftOut
}

func byName(a, b tools.Tool) int { return cmp.Compare(a.Spec().Name, b.Spec().Name) }

func defineOne(e Entry, name string, t *sdk.Tool, call caller) (tools.Tool, error) {
	schema := t.InputSchema
	if schema == nil {
		schema = map[string]any{"type": "object"}
	}
	full, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	hints := cmp.Or(t.Annotations, &sdk.ToolAnnotations{})
	spec := tools.Spec{
		Name: name, Description: described(e, t), TimeLimit: cmp.Or(e.Timeout, DefaultTimeout), MaxResultChars: resultChars(t),
		ReadOnly: hints.ReadOnlyHint, Destructive: !hints.ReadOnlyHint && yes(hints.DestructiveHint), OpenWorld: yes(hints.OpenWorldHint),
		Origin: tools.MCP, AlwaysLoad: e.AlwaysLoad,
	}
	if hints.ReadOnlyHint {
		spec.OnInterrupt = tools.Stop
	}
	// Whatever the hint is, the server acts outside the daemon, and permission is decided by that.
	effects := tools.Effects{External: e.Name, Opaque: !hints.ReadOnlyHint, StartsNone: e.transport() != Stdio, Reason: "it is carried out by the MCP server " + e.Name}
	funcs := tools.Funcs[json.RawMessage]{
		Effects: func(json.RawMessage) tools.Effects { return effects },
		Run: func(ctx context.Context, env *tools.Env, input json.RawMessage) (tools.Result, error) {
			return call(ctx, env, t.Name, input)
		},
	}
	if asks, _ := t.Meta[metaAsks].(bool); asks {
		funcs.Check = func(context.Context, *tools.Env, json.RawMessage) (tools.Preview, error) {
			return tools.Preview{Ask: fmt.Sprintf("the MCP server %s requires consent for every call of this tool", e.Name)}, nil
		}
	}
	return tools.NewExternal(spec, full, funcs)
}

// yes returns the value of a hint that is true unless it is denied.
func yes(hint *bool) bool { return hint == nil || *hint }

// described returns the description that a model sees.
func described(e Entry, t *sdk.Tool) string {
	title := t.Title
	if title == "" && t.Annotations != nil {
		title = t.Annotations.Title
	}
	text := clean(cmp.Or(t.Description, title))
	if text == "" {
		text = fmt.Sprintf("The tool %s of the MCP server %s, which has no description for it.", clean(t.Name), clean(e.Name))
	}
	return ellipsis.Runes(text, maxDescription)
}

// resultChars returns how much of a result may be inline, if the server requests a number; 0: it
// does not.
func resultChars(t *sdk.Tool) int {
	requested, _ := t.Meta[metaResultChars].(float64)
	if !(requested >= 1) {
		return 0
	}
	return int(min(requested, maxResult))
}
