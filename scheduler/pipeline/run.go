package pipeline

// The way itself, in one straight function, since its order is what makes it safe: nothing acts that was not
// permitted, nobody is asked about what cannot work, nothing starts that was not recorded.

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	ended := c.noted(c.way(ctx, env, outside, Usage{Waited: time.Since(c.accepted)}))
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

func (c *Call) way(ctx context.Context, env *tools.Env, outside func(func()) error, usage Usage) (ended Ended) {
	defer func() {
		if broken := recover(); broken != nil {
			ended = c.panicked(broken)
		}
		ended.Usage = usage
	}()
	question, verdict, err := c.judge(ctx, env)
	if err != nil {
		return refused(ctx, err)
	}
	if verdict.Decision == permission.Ask {
		if err := c.ask(ctx, env, outside, question, &usage); err != nil {
			return refused(ctx, err)
		}
	} else {
		c.session.Withdraw(c, "nobody has to be asked any more")
	}
	if cause := context.Cause(ctx); cause != nil {
		return NotStarted(cause)
	}
	return c.act(ctx, env, &usage)
}

// judge checks the call against the present state and derives the verdict from what it declares. A verdict that denies
// is an error; one that asks comes with its question.
func (c *Call) judge(ctx context.Context, env *tools.Env) (q Question, v permission.Verdict, err error) {
	facts, err := c.reach(env)
	if err != nil {
		return q, v, err
	}
	preview, err := c.parsed.action.Check(ctx, env)
	if err != nil {
		return q, v, err
	}
	facts.Ask = preview.Ask
	v = permission.Decide(facts, c.session.Mode())
	if v.Decision == permission.Deny {
		return q, v, ModeDenied(v)
	}
	if v.Decision == permission.Ask {
		c.questions++
		q = Question{
			ID: fmt.Sprintf("%s.%d", c.Key, c.questions), Tool: c.Name, Title: c.Title(), Input: c.parsed.input,
			Digest: DigestOf(c.parsed.input), Diff: preview.Diff, Facts: facts, Reason: v.Reason, Level: v.Level,
		}
	}
	return q, v, nil
}

// ask puts the question and waits, without a slot, for the answer that permits the call.
func (c *Call) ask(ctx context.Context, env *tools.Env, outside func(func()) error, q Question, usage *Usage) error {
	var input string
	var err error
	since := time.Now()
	if gone := outside(func() { input, err = c.session.Ask(ctx, c, q) }); err == nil {
		err = gone
	}
	usage.Asked = time.Since(since)
	if err != nil || input == "" {
		return err
	}
	return c.replace(ctx, env, json.RawMessage(input))
}

// replace gives the call another input, which the one who answered has seen. It may not reach further than the call's
// place in the order allows.
func (c *Call) replace(ctx context.Context, env *tools.Env, input json.RawMessage) error {
	other, err := c.parse(input)
	if err != nil {
		return err
	}
	if c.concurrent && !other.effects.Concurrent() {
		return fault.Deniedf("widened_input",
			"The input that came with the answer would change state, but the call was accepted as one that may run beside others. Send it as a new call.")
	}
	c.parsed = other
	_, _, err = c.judge(ctx, env)
	return err
}

// act records the start and runs the action under its time limit.
func (c *Call) act(ctx context.Context, env *tools.Env, usage *Usage) Ended {
	if effects := c.parsed.effects; effects.Opaque || len(effects.Commands) > 0 {
		usage.Tier = env.Runner.Tier()
	}
	c.started.Store(true)
	if err := c.session.Start(c, Started{Tier: usage.Tier}); err != nil {
		return refused(ctx, err)
	}
	if c.parsed.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.parsed.limit, tools.ErrTimeout)
		defer cancel()
	}
	since := time.Now()
	result, err := c.parsed.action.Run(ctx, env)
	usage.Ran = time.Since(since)
	return settle(ctx, capped(result, env.MaxChars, env.Spool, env.CallID), err, usage.Ran)
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
	question, verdict, err := c.judge(ctx, c.session.Peek(c))
	if err == nil && verdict.Decision == permission.Ask {
		c.session.AskAhead(c, question)
	}
}

// reach finds out how far the declared effects go, and cuts the call's view of the files to them.
func (c *Call) reach(env *tools.Env) (permission.Facts, error) {
	places, memory := c.session.Workspace()
	effects := c.parsed.effects
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
				facts.Reach, facts.Where = reach, where(real)
			}
		}
	}
	if effects.Opaque || len(effects.Hosts) > 0 {
		facts.Reach, facts.Where = permission.Runs, effects.Reason
	}
	facts.Critical = permission.Critical(effects, permission.Around{Dir: env.Dir, Home: homeOf(env), Roots: places.Roots()})
	env.Files = places.View(grant, memory)
	return facts, nil
}

// where names a path for the reason of a verdict: also where it leads when that is somewhere else.
func where(path workspace.Path) string {
	if path.Real == path.Named {
		return path.Named
	}
	return path.Named + ", which leads to " + path.Real
}

// homeOf is the home directory that the call's commands would see.
func homeOf(env *tools.Env) string {
	for _, pair := range env.Environ {
		if home, ok := strings.CutPrefix(pair, "HOME="); ok {
			return home
		}
	}
	return ""
}

// readable reports whether a place is one that an access within the limits of reach may have. Only roots are written.
func readable(place workspace.Place, inside permission.Reach) bool {
	return place == workspace.InRoot ||
		inside == permission.ReadsInside && (place == workspace.Readable || place == workspace.Public)
}

// noted adds what was done to the use on its way in.
func (c *Call) noted(ended Ended) Ended {
	if c.parsed.note != "" {
		ended.Content = append(ended.Content[:len(ended.Content):len(ended.Content)], tools.Block{Text: c.parsed.note})
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

// because says in a few words why a call failed, for a command with its exit code: the first sentence of its error.
func because(ended Ended) string {
	if ended.Outcome == TimedOut {
		return "its time limit ran out"
	}
	first, _, _ := strings.Cut(strings.TrimSuffix(ended.Fault.Message, "."), ". ")
	letter, size := utf8.DecodeRuneInString(first)
	return string(unicode.ToLower(letter)) + first[size:]
}

func (c *Call) panicked(value any) Ended {
	consequence := "The call had no effect."
	if c.started.Load() {
		consequence = "The call may have had effects."
	}
	ended := failed(Error, fault.Failedf("internal",
		"The tool %s broke down while it handled this call: %v. This is a mistake in toold. %s", c.Name, value, consequence))
	ended.Stack = debug.Stack()
	return ended
}
