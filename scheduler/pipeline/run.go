// The pipeline, in one straight function, since its order makes it safe: no call acts without
// permission, no question is asked about a call that cannot work, and nothing starts without a
// record.

package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/trace"
	"slices"
	"time"

	"github.com/toold/toold/scheduler/gate"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// Run carries the call from its turn to its result; the scheduler calls it. outside runs a wait
// while the call holds no slot, and alone waits until nothing else of the session runs. The error
// is the cause with which the call's siblings are to be aborted; nil: they go on.
func (c *Call) Run(ctx context.Context, outside func(func()) error, alone func() error) (abort error) {
	growStack()
	defer trace.StartRegion(ctx, "call").End()
	c.ahead.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = order{outside: outside, alone: alone}
	c.usage.spent(Waiting, c.accepted, c.accepted)
	env, rights := c.session.Begin(c)
	c.rights, c.rights.fresh = rights, true
	ended := c.noted(c.way(ctx, env))
	if errors.Is(context.Cause(ctx), ErrPassedOn) && !c.started.Load() {
		c.files.Release()
		c.session.PassedOn(c)
		return nil
	}
	c.files.Release()
	var seen map[string]workspace.State
	if env.Files != nil {
		seen = env.Files.ReadState()
	}
	defer trace.StartRegion(ctx, "record").End()
	c.session.End(c, ended, seen)
	return c.abort(ended)
}

// Skip ends a call whose turn never comes. It is the scheduler's other way out.
func (c *Call) Skip(cause error) {
	c.ahead.stop()
	if errors.Is(cause, ErrPassedOn) {
		c.session.PassedOn(c)
		return
	}
	ended := NotStarted(cause)
	ended.Usage.spent(Waiting, c.accepted, c.accepted)
	c.session.Skipped(c, ended)
}

// An order is what the scheduler offers a call that runs, and the call's place among those that take up the machine.
type order struct {
	outside func(wait func()) error
	alone   func() error
	loads   bool       // it is among them, or waits to be
	pass    *gate.Pass // nil: it has no place of its own there
}

func (c *Call) way(ctx context.Context, env *tools.Env) (ended Ended) {
	defer func() {
		if broken := recover(); broken != nil {
			ended = c.panicked(broken)
		}
		ended.Usage = c.usage.Usage
	}()
	defer c.order.leave()
	if err := c.permit(ctx, env); err != nil {
		c.notifyDenied(env, err)
		return refused(ctx, err)
	}
	if cause := context.Cause(ctx); cause != nil {
		return NotStarted(cause)
	}
	ended = c.afterwards(env, c.act(ctx, env))
	return ended.capped(env)
}

// permit takes the call from its check to the leave to start: state, hooks, verdict, question. An error denies it. After
// each wait everything is judged again, by what then holds: a yes counts for what was asked, and passes nothing that
// denies.
//
// A call that was accepted as one that may run beside others, and turns out to touch more than was known, goes on alone. It is
// judged again then too.
func (c *Call) permit(ctx context.Context, env *tools.Env) error {
	var yes *Question
	alone := c.runsAlone()
	for heard := ""; ; {
		if err := c.check(ctx, env); err != nil {
			return err
		}
		if c.parsed.input != heard {
			if err := c.notify(ctx, env); err != nil {
				return err
			}
			heard = c.parsed.input
		}
		v := c.checked.verdict
		var q Question
		switch v.Decision {
		case permission.Deny:
			return c.denial(v)
		case permission.Ask:
			q = c.question(v)
		}
		permitted := v.Decision == permission.Allow || yes != nil && yes.covers(q)
		switch {
		case permitted && (alone || c.keeps(c.parsed.effects) && !c.facts.Opaque):
			c.verdict = v
			if v.Decision == permission.Allow {
				c.session.Withdraw(c, "the question is no longer needed")
			}
			if waited, err := c.order.admit(ctx, c); err != nil || !waited {
				return err
			}
			continue
		case permitted:
			c.files.Release()
			c.order.leave()
			since := time.Now()
			err := c.order.alone()
			c.usage.spent(Waiting, c.accepted, since)
			if err != nil {
				return err
			}
			alone = true
			continue
		}
		var err error
		if yes, err = c.ask(ctx, q); err != nil && !errors.Is(err, ErrMoot) {
			return err
		}
	}
}

// check holds the call against the present state: what its effects come to, and whether the tool finds it possible. What
// a rule denies is not looked at any further.
func (c *Call) check(ctx context.Context, env *tools.Env) (err error) {
	if !c.rights.fresh {
		phase := trace.StartRegion(ctx, "settings")
		c.rights = c.session.Rights(c)
		phase.End()
	}
	c.rights.fresh = false
	defer trace.StartRegion(ctx, "verdict").End()
	env.Box = c.box(ctx, func() (sandbox.Policy, *gitWatch) { return shut, nil }) // it starts nothing
	env.Aliases = func() map[string]string { return c.rights.Confining.Git.Aliases(c.rights.Anchors.Home, env.Dir) }
	c.parsed.situate(env)
	if c.facts, err = c.look(ctx, env); err != nil {
		return err
	}
	c.checked.verdict = permission.Decide(c.facts, c.rights.Policy)
	if c.checked.verdict.Decision == permission.Deny && !c.checked.verdict.ByMode {
		return Denial(c.checked.verdict)
	}
	c.checked.preview, err = c.parsed.action.Check(ctx, env)
	c.facts.Check = c.checked.preview.Ask
	c.facts.Steer(c.reads.unknown)
	c.facts.Steer(c.checked.preview.Steered)
	c.facts.Steer(c.unconfined())
	if c.facts.Check != "" || c.facts.Steered != nil { // what it was judged by has changed
		c.checked.verdict = permission.Decide(c.facts, c.rights.Policy)
	}
	return err
}

// unconfined returns the commands that only count as read-only where the whole call may change nothing, if this one may, each
// with the reason as a clause.
func (c *Call) unconfined() map[int]string {
	if !c.facts.Opaque && len(c.parsed.effects.Writes) == 0 && c.rights.Confining.fully() && !c.rights.outside(c.facts) {
		return nil
	}
	steered := map[int]string{}
	for _, i := range c.reads.alone {
		if at := shell.Outermost(c.facts.Commands, i); c.facts.Steered[at] == "" {
			steered[at] = "it may run or write more than its words say, and this call is not confined to reading"
		}
	}
	return steered
}

// question returns the question for a verdict to ask.
func (c *Call) question(v permission.Verdict) Question {
	c.questions++
	rights := c.rights
	return Question{
		rights: &rights,
		ID:     fmt.Sprintf("%s.%d", c.Key, c.questions), Tool: c.Name, Title: c.Title(), Input: c.parsed.input,
		Digest: DigestOf(c.parsed.input), Diff: c.checked.preview.Diff, Shown: DigestOf(c.checked.preview.Diff), Touched: touched(c.facts), Facts: c.facts, Verdict: v,
		Suggestions: permission.Suggest(c.facts, v, c.rights.Anchors),
	}
}

// ask asks the question and waits, without a slot, for the answer. It returns what the yes is for:
// the question, or the one that the input of the answer would have led to.
func (c *Call) ask(ctx context.Context, q Question) (yes *Question, err error) {
	c.files.Release()
	c.order.leave()
	var input string
	since := time.Now()
	if gone := c.order.outside(func() { input, err = c.session.Ask(ctx, c, q) }); err == nil {
		err = gone
	}
	c.usage.spent(Asking, c.accepted, since)
	if err != nil {
		return nil, err
	}
	c.asked.Store(q.Verdict.Reasons)
	if input == "" {
		return &q, nil
	}
	if err := c.replace(json.RawMessage(input)); err != nil {
		return nil, err
	}
	c.opinions, c.context = nil, nil // they were about another input
	return &Question{Digest: DigestOf(input), edited: true}, nil
}

// replace replaces the call's input: by that of an answer, or of a hook. The new input must not
// conflict with more calls than the old one.
func (c *Call) replace(input json.RawMessage) error {
	other, err := c.parse(input)
	if err != nil {
		return err
	}
	if !c.keeps(other.effects) {
		return fault.Deniedf("widened_input",
			"The input was replaced by one that would change or read something else, but the call was accepted as one that may run beside others. Send it as a new call.")
	}
	other.sent = cmp.Or(c.parsed.sent, c.parsed.input)
	c.parsed = other
	return nil
}

// act records the start and runs the action under its time limit.
func (c *Call) act(ctx context.Context, env *tools.Env) Ended {
	defer c.order.leave()
	phase := trace.StartRegion(ctx, "policy")
	confined, err := c.enclose(ctx, env)
	phase.End()
	if err != nil {
		return refused(ctx, err)
	}
	back := c.order.pass.Away()
	err = c.session.Pace(ctx, c)
	back()
	if err != nil {
		return refused(ctx, err)
	}
	phase = trace.StartRegion(ctx, "start")
	err = recordStart(ctx, c, confined.Tier)
	phase.End()
	if err != nil {
		return refused(ctx, err)
	}
	env.Box.AddBefore(c.session.Before(c))
	ctx, watch, end := newStopwatch(ctx, c.parsed.limit)
	defer end()
	env.Ask, env.Box.Ask, env.Box.Secret = c.asking(watch), c.askingHosts(watch), askingSecrets(c)
	result, err := c.carryOut(ctx, env)
	ran := watch.addTo(&c.usage.Usage, c.accepted)
	c.usage.PeakMemory = env.Box.PeakMemory()
	c.order.pass.Took(c.usage.PeakMemory)
	if confined.Tier == "" && env.Box.Used() {
		confined, _ = c.confinement(env.Box) // it was found to be possible
	}
	confined.Denials = denials(env.Box.Denials())
	if err == nil && c.ReadOnly() { // such as the lock of git's index, or a cache: it did without
		confined.Denials = slices.DeleteFunc(confined.Denials, func(d SandboxDenial) bool { return d.Operation == sandbox.Writing && !d.IsAside() })
	}
	return settle(ctx, result, err, ran).confined(confined, c.rights.UserFile)
}

// carryOut runs the action. What other programs do in it sees the disk, and not what is unsaved in editors.
func (c *Call) carryOut(ctx context.Context, env *tools.Env) (tools.Result, error) {
	defer trace.StartRegion(ctx, "act").End()
	if !c.startsPrograms() {
		return c.watched(ctx, env)
	}
	back := c.order.pass.Away()
	note := c.session.SaveBuffers(ctx, c)
	back()
	if note != "" {
		c.context = append(c.context, note)
	}
	defer c.session.BuffersSaved(c)
	before := c.files.Begin()
	result, err := c.parsed.action.Run(ctx, env)
	c.locate(c.files.Made(context.WithoutCancel(ctx), before, env.Box.Created()))
	return result, err
}

// startsPrograms reports whether a program reads the disk in the call, here or in a server, even if
// it only reads.
func (c *Call) startsPrograms() bool {
	origin, effects := c.Tool.Spec().Origin, c.parsed.effects
	return origin == tools.Program || origin == tools.MCP || origin == tools.BuiltIn && (effects.Opaque || len(effects.Commands) > 0)
}

// watched runs an action that sees unsaved text in editors too, or runs where that text is. Errors
// that it causes in declared files are added to its result, if an Observer watches them.
func (c *Call) watched(ctx context.Context, env *tools.Env) (tools.Result, error) {
	if len(c.parsed.effects.Writes) == 0 {
		return c.parsed.action.Run(ctx, env)
	}
	news := c.session.Watch(ctx, c)
	result, err := c.parsed.action.Run(ctx, env)
	if err == nil && news != nil {
		if note := news(ctx); note != "" {
			c.context = append(c.context, note)
		}
	}
	return result, err
}

// unsent is the code of a fault for a call that was not sent anywhere, and so had no effect.
const unsent = "server_unavailable"

// settle decides how a started call has ended. A call that succeeded has won the race against whatever stopped it.
func settle(ctx context.Context, result tools.Result, err error, ran time.Duration) Ended {
	if err == nil {
		return Ended{Outcome: OK}.after(result)
	}
	found := fault.From(err)
	if cause := context.Cause(ctx); cause != nil {
		if found.Code == unsent && errors.Is(cause, tools.ErrTimeout) {
			return failed(TimedOut, found).after(result)
		}
		return stopped(cause, ran, result)
	}
	ended := failed(outcomeOf(found.Kind), found)
	if len(result.Content) > 0 {
		ended.Content = nil // the tool itself has reported it
	}
	return ended.after(result)
}

// noted adds how the use was changed on arrival, and the hooks' text for the model.
func (c *Call) noted(ended Ended) Ended {
	notes := c.context
	if c.parsed.note != "" {
		notes = append([]string{c.parsed.note}, notes...)
	}
	for _, note := range notes {
		ended.add(note)
	}
	return ended
}

// abort returns the cause with which the call's end aborts its siblings under the session's policy;
// nil: it does not. Only a call that was executed and failed aborts them.
func (c *Call) abort(ended Ended) error {
	if !c.started.Load() || ended.Outcome != Error && ended.Outcome != TimedOut {
		return nil
	}
	policy, aborts := c.session.Policy(c), c.Tool.Spec().OnFailure == tools.AbortSiblings
	if policy == AbortOnAny || aborts && (policy == AbortOnBash || policy == AbortOnMutatingBash && !c.ReadOnly()) {
		return &Stop{Outcome: Aborted, Reason: c.Title() + " failed in the same turn: " + because(ended), By: c.Use.ID}
	}
	return nil
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
