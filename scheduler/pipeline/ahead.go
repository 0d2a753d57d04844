// Asking before a call has its turn.

package pipeline

import (
	"context"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

// AskAhead puts the call's question while earlier calls still run, if as things stand there is one,
// and it is that long since the call was accepted, which AskAhead waits for.
func (c *Call) AskAhead(ctx context.Context, after time.Duration) {
	ctx, cancel := c.ahead.begin(ctx)
	defer cancel()
	select {
	case <-time.After(after - time.Since(c.accepted)):
	case <-ctx.Done():
	}
	if ctx.Err() != nil || !c.mu.TryLock() {
		return // its turn has come
	}
	defer c.mu.Unlock()
	defer func() { c.files.Release() }() // it may wait for long
	defer func() { _ = recover() }()     // the same will happen when its turn comes, and is reported then
	env, rights := c.session.Peek(c)
	c.rights, c.rights.fresh = rights, true
	if c.check(ctx, env) != nil || ctx.Err() != nil {
		return
	}
	for _, event := range []string{hook.PreToolUse, hook.PermissionRequest} {
		if len(c.rights.Hooks.For(event, c.Name, always)) > 0 {
			return // the hooks' answers are not known yet
		}
	}
	if c.checked.verdict.Decision == permission.Ask {
		c.session.AskAhead(c, c.question(c.checked.verdict))
	}
}
