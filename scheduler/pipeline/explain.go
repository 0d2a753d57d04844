// Explain: the pipeline up to the verdict. The call does not run, no question is asked, nothing is
// recorded. The state check is made all the same, for which git may read a repository's
// configuration.

package pipeline

import (
	"context"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// An Explanation is what would come of a call.
type Explanation struct {
	Verdict     permission.Verdict
	Mode        permission.Mode
	Facts       *permission.Facts
	Effects     tools.Effects
	Concurrent  bool
	Hooks       []*hook.Hook // that would run first; their answers are unknown
	Suggestions []string     // allow rules that would cover it
	Confined    Confined     // how its processes would be
	Fault       *fault.Error // what would end the call as things stand, whatever the verdict; nil: nothing
}

// Explain judges a tool use as Run would judge its call. The error is why there can be no verdict.
func Explain(ctx context.Context, use Use, tool tools.Tool, judge Judge) (Explanation, error) {
	c, refused := New(use, tool, Session{Judge: judge})
	if refused != nil {
		return Explanation{}, refused.Fault
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.files.Release() }()
	env, rights := c.session.Peek(c)
	c.rights, c.rights.fresh = rights, true
	impossible := c.check(ctx, env)
	if c.facts == nil {
		return Explanation{}, impossible
	}
	v := c.checked.verdict
	explained := Explanation{
		Verdict: v, Mode: c.rights.Mode, Facts: c.facts, Effects: c.parsed.effects, Concurrent: c.concurrent,
		Hooks: c.hooks(hook.PreToolUse), Suggestions: permission.Suggest(c.facts, v, c.rights.Anchors),
	}
	confined, unable := c.enclose(ctx, env)
	if explained.Confined = confined; unable != nil && impossible == nil {
		impossible = unable
	}
	if v.Decision == permission.Ask {
		explained.Hooks = append(explained.Hooks, c.hooks(hook.PermissionRequest)...)
	}
	if impossible != nil && v.Decision != permission.Deny {
		explained.Fault = fault.From(impossible)
	}
	return explained, nil
}
