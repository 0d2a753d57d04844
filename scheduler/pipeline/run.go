package pipeline

// The way itself, in one straight function, since its order is what makes it safe: nothing acts that was not
// permitted, nobody is asked about what cannot work, nothing starts that was not recorded.

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/workspace"
)

// Run takes the call along its way; the scheduler calls it when the call's turn has come. outside runs a wait while
// the call holds no slot. The error is the cause with which the call's siblings are to be aborted; nil: they go on.
func (c *Call) Run(ctx context.Context, outside func(func()) error) (abort error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
	env := c.session.Begin(c)
	usage := Usage{Waited: time.Since(c.accepted)}
	ended := c.way(ctx, env, outside, &usage)
	usage.Asked = c.asked
	ended.Usage = usage
	ended = c.noted(capped(ended, env.MaxChars, env.Spool, env.CallID))
	var learned map[string]workspace.State
	if env.Files != nil {
		learned = env.Files.Learned()
	}
	c.session.End(c, ended, learned)
	return c.abort(ended)
}

// Skip ends a call whose turn never comes. It is the scheduler's other way out.
func (c *Call) Skip(cause error) {
	ended := NotStarted(cause)
	ended.Usage.Waited = time.Since(c.accepted)
	c.session.Skipped(c, ended)
}

func (c *Call) way(ctx context.Context, env *tools.Env, outside func(func()) error, usage *Usage) (ended Ended) {
	defer func() {
		if broken := recover(); broken != nil {
			ended = c.panicked(broken)
		}
	}()
	verdict, diff, err := c.judge(ctx, env)
	if err != nil {
		c.session.Withdraw(c, "the call cannot be run as things stand")
		return refused(ctx, err)
	}
	if verdict.Decision != permission.Ask {
		c.session.Withdraw(c, "nobody has to be asked any more")
	}
	if verdict.Decision == permission.Deny {
		return refused(ctx, fault.Deniedf("mode_denied", "%s", verdict.Reason))
	}
	if verdict.Decision == permission.Ask {
		if err := c.ask(ctx, env, outside, c.question(verdict, diff)); err != nil {
			return refused(ctx, err)
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return NotStarted(cause)
	}
	return c.act(ctx, env, usage)
}

// judge checks the call against the present state and derives the verdict from what it declares.
func (c *Call) judge(ctx context.Context, env *tools.Env) (permission.Verdict, string, error) {
	facts, err := c.reach(env)
	if err != nil {
		return permission.Verdict{}, "", err
	}
	preview, err := c.Action.Check(ctx, env)
	if err != nil {
		return permission.Verdict{}, "", err
	}
	facts.Ask = preview.Ask
	return permission.Decide(facts, c.session.Mode()), preview.Diff, nil
}

// ask puts the question and waits, without a slot, for an answer that permits the call.
func (c *Call) ask(ctx context.Context, env *tools.Env, outside func(func()) error, q Question) error {
	var answer Answer
	var err error
	since := time.Now()
	if gone := outside(func() { answer, err = c.session.Ask(ctx, c, q) }); err == nil {
		err = gone
	}
	c.asked = time.Since(since)
	switch {
	case err != nil:
		return err
	case !answer.Allow:
		text := "The user did not allow this call."
		if answer.Message != "" {
			text = "The user did not allow this call, and says: " + answer.Message
		}
		return fault.Deniedf("client_denied", "%s", text)
	case answer.UpdatedInput != "":
		return c.replace(ctx, env, answer.UpdatedInput)
	}
	return nil
}

// replace gives the call another input, which the one who answered has seen. It may not reach further than the call's
// place in the order allows.
func (c *Call) replace(ctx context.Context, env *tools.Env, input string) error {
	action, err := c.Tool.Parse([]byte(input))
	if err != nil {
		return err
	}
	if c.Concurrent() && !action.Effects().Concurrent() {
		return fault.Deniedf("widened_input",
			"The input that came with the answer would change state, but the call was accepted as one that may run beside others. Send it as a new call.")
	}
	c.Action, c.Input, c.Digest = action, []byte(input), DigestOf(input)
	verdict, _, err := c.judge(ctx, env)
	if err == nil && verdict.Decision == permission.Deny {
		err = fault.Deniedf("mode_denied", "%s", verdict.Reason)
	}
	return err
}

// act records the start and runs the action under its time limit.
func (c *Call) act(ctx context.Context, env *tools.Env, usage *Usage) Ended {
	if effects := c.Action.Effects(); effects.Opaque || len(effects.Commands) > 0 {
		usage.Tier = env.Runner.Tier()
	}
	if err := c.session.Start(c, Started{Tier: usage.Tier}); err != nil {
		return refused(ctx, err)
	}
	if c.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Limit, tools.ErrTimeout)
		defer cancel()
	}
	since := time.Now()
	result, err := c.Action.Run(ctx, env)
	usage.Ran = time.Since(since)
	return settle(ctx, result, err, usage.Ran)
}

// settle decides how a started call has ended. A call that succeeded has won the race against whatever stopped it.
func settle(ctx context.Context, result tools.Result, err error, ran time.Duration) Ended {
	if err == nil {
		return Ended{Outcome: OK}.after(result)
	}
	if cause := context.Cause(ctx); cause != nil {
		return stopped(cause, ran, result)
	}
	found := fault.From(err)
	ended := failed(outcomeOf(found.Kind), found)
	if len(result.Content) > 0 {
		ended.Content = nil // the tool has put it into words itself
	}
	return ended.after(result)
}

// AskAhead puts the call's question while earlier calls still run, if as things stand there is one.
func (c *Call) AskAhead(ctx context.Context) {
	if !c.mu.TryLock() {
		return // its turn has come
	}
	defer c.mu.Unlock()
	if c.begun {
		return
	}
	defer func() { _ = recover() }() // the same will happen when its turn comes, and is reported then
	verdict, diff, err := c.judge(ctx, c.session.Peek(c))
	if err == nil && verdict.Decision == permission.Ask {
		c.session.AskAhead(c, c.question(verdict, diff))
	}
}

func (c *Call) question(v permission.Verdict, diff string) Question {
	return Question{
		ID: c.Key, Tool: c.Name, Title: c.Title(), Input: string(c.Input), Digest: c.Digest,
		Diff: diff, Reason: v.Reason, Level: v.Level,
	}
}

// reach finds out how far the declared effects go, and cuts the call's view of the files to them.
func (c *Call) reach(env *tools.Env) (permission.Facts, error) {
	places, memory := c.session.Workspace()
	effects := c.Action.Effects()
	facts := permission.Facts{}
	grant := workspace.Grant{Dir: env.Dir}
	for _, access := range []struct {
		paths           []tools.Path
		grantees        *[]workspace.Grantee
		inside, outside permission.Reach
	}{
		{effects.Reads, &grant.Reads, permission.ReadsInside, permission.ReadsOutside},
		{effects.Writes, &grant.Writes, permission.WritesInside, permission.WritesOutside},
	} {
		for _, path := range access.paths {
			real, err := places.Resolve(env.Dir, path.Name)
			if err != nil {
				return facts, err
			}
			*access.grantees = append(*access.grantees, workspace.Grantee{Real: real.Real, Tree: path.Tree})
			reach := access.outside
			if readable(places.Place(real.Real), access.inside) {
				reach = access.inside
			}
			if reach > facts.Reach {
				facts.Reach, facts.Where = reach, real.Named
			}
		}
	}
	if effects.Opaque || len(effects.Hosts) > 0 {
		facts.Reach, facts.Where = permission.Runs, effects.Reason
	}
	env.Files = places.View(grant, memory)
	return facts, nil
}

// readable reports whether a place is one that an access within the limits of reach may have. Only roots are written.
func readable(place workspace.Place, inside permission.Reach) bool {
	return place == workspace.InRoot ||
		inside == permission.ReadsInside && (place == workspace.Readable || place == workspace.Public)
}

// noted adds what was done to the use on its way in.
func (c *Call) noted(ended Ended) Ended {
	if c.Note != "" {
		ended.Content = append(ended.Content[:len(ended.Content):len(ended.Content)], tools.Block{Text: c.Note})
	}
	return ended
}

// abort is the cause that the call's end gives its siblings under the session's policy; nil: none. Only a call that
// was executed and failed is one.
func (c *Call) abort(ended Ended) error {
	if ended.Outcome != Error && ended.Outcome != TimedOut {
		return nil
	}
	aborting := c.Tool.Spec().OnFailure == tools.AbortSiblings
	switch c.session.Policy(c) {
	case AbortOnNone:
		return nil
	case AbortOnMutatingBash:
		aborting = aborting && !c.ReadOnly()
	case AbortOnAny:
		aborting = true
	}
	if !aborting {
		return nil
	}
	return &Stop{Aborted, c.Title() + " failed in the same turn: " + because(ended)}
}

// because says in a few words why a call failed: with which exit code, where it has one.
func because(ended Ended) string {
	if ended.Outcome == TimedOut {
		return "its time limit ran out"
	}
	if code, ok := ended.Fault.Details.(interface{ ExitCode() int }); ok {
		return fmt.Sprintf("exit code %d", code.ExitCode())
	}
	return ended.Fault.Code
}

func (c *Call) panicked(value any) Ended {
	ended := failed(Error, fault.Failedf("internal",
		"The tool %s broke down while it handled this call: %v. This is a mistake in toold; the call may have had effects.", c.Name, value))
	ended.Stack = debug.Stack()
	return ended
}
