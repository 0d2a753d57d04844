package pipeline

// The places on a call's way where users' hooks are heard. How they are run and what an answer means is the hook
// package's.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// always stands for the rule of a hook's "if" where only the number of hooks counts.
func always(permission.Rule) bool { return true }

// notify runs the hooks before the verdict: PreToolUse, and where it would come to a question PermissionRequest, which can
// say yes where a rule could, and no. What they say is kept with the call; another input takes the place of the call's.
// One that is not PreToolUse's own is put to PreToolUse too.
func (c *Call) notify(ctx context.Context, env *tools.Env, outside func(func()) error) error {
	if err := c.listen(ctx, env, outside, hook.Input{Event: hook.PreToolUse}); err != nil {
		return err
	}
	v := permission.Decide(c.facts, c.rights.Policy)
	if v.Decision != permission.Ask {
		return nil
	}
	rules := permission.Suggest(c.facts, v, c.rights.Anchors)
	input, before := c.parsed.input, len(c.opinions)
	if err := c.listen(ctx, env, outside, hook.Input{Event: hook.PermissionRequest, Suggestions: suggestions(rules)}); err != nil || c.parsed.input == input {
		return err
	}
	c.opinions = c.opinions[before:]
	return c.listen(ctx, env, outside, hook.Input{Event: hook.PreToolUse})
}

// listen runs the hooks of one event, without a slot, and has the call judged by what they say.
func (c *Call) listen(ctx context.Context, env *tools.Env, outside func(func()) error, in hook.Input) error {
	hooks := c.hooks(in.Event)
	if len(hooks) == 0 {
		return nil
	}
	var said hook.Result
	if err := outside(func() { said = c.run(ctx, env, hooks, in) }); err != nil {
		return err
	}
	c.context = append(c.context, said.Context...)
	c.opinions = append(c.opinions, opinionsOf(said)...)
	if said.Interrupt {
		c.session.StopTurn(c, "a hook did not allow "+c.Title()+" and stopped the turn")
	}
	if said.Input != nil && said.Decision != hook.Deny {
		before := c.parsed.input
		if err := c.replace(said.Input); err != nil {
			return err
		}
		c.notifyRewritten(before, in.Event)
	}
	return c.check(ctx, env)
}

// notifyRewritten lets clients know that hooks have given the call another input than was sent.
func (c *Call) notifyRewritten(before, event string) {
	if c.parsed.input == before {
		return
	}
	c.session.Notice(c, Noticed{Code: "input_rewritten", CallID: c.Use.ID, Message: fmt.Sprintf("A %s hook has changed the input of the call: it is %s now.", event, c.Title())})
}

// hooks returns those of an event that are for this call.
func (c *Call) hooks(event string) []*hook.Hook {
	return c.rights.Hooks.For(event, c.Name, func(rule permission.Rule) bool {
		if c.facts == nil {
			return false
		}
		facts := *c.facts // which others may read meanwhile
		facts.Input = scalars(c.parsed.input)
		return c.rights.Rules.Holds(rule, &facts)
	})
}

// afterwards runs the hooks for what has been executed, and puts what they say into the result.
func (c *Call) afterwards(env *tools.Env, ended Ended, ran time.Duration) Ended {
	in := hook.Input{Event: hook.PostToolUse, DurationMS: new(ran.Milliseconds())}
	switch {
	case !c.started.Load():
		return ended
	case ended.Outcome == OK:
	case ended.Outcome == Error, ended.Outcome == TimedOut:
		in.Event = hook.PostToolUseFailure
	default:
		return ended
	}
	hooks := c.hooks(in.Event)
	if len(hooks) == 0 {
		return ended
	}
	if ended.Outcome == OK {
		in.Response = ResponseOf(c.Name, ended)
	} else {
		in.Error, in.Interrupt = textOf(ended.Content), new(false)
	}
	var said hook.Result
	heard := make(chan struct{})
	c.session.Later(func(ctx context.Context) { // whoever stops the call stops no hook that may have something to hide
		defer close(heard)
		said = c.run(ctx, env, hooks, in)
	})
	<-heard
	if said.Output != nil { // it may be there to hide something, so nothing of the old one stays
		ended.Content, ended.Structured, ended.Spill = []tools.Block{{Text: *said.Output}}, nil, nil
	}
	for _, reason := range said.Reasons {
		if reason.Decision == hook.Deny {
			c.context = append(c.context, reason.Text)
		}
	}
	c.context = append(c.context, said.Context...)
	return ended
}

// notifyDenied lets the PermissionDenied hooks know. Nobody waits for them.
func (c *Call) notifyDenied(env *tools.Env, err error) {
	var found *fault.Error
	hooks := c.hooks(hook.PermissionDenied)
	if len(hooks) == 0 || !errors.As(err, &found) || found.Kind != fault.Denied {
		return
	}
	in := c.told(env, hook.Input{Event: hook.PermissionDenied, Reason: found.Message})
	runner := c.rights.Runner
	c.session.Later(func(ctx context.Context) { c.report(runner.Run(ctx, hooks, in)) })
}

// run runs hooks about this call, and lets clients know what went wrong with them.
func (c *Call) run(ctx context.Context, env *tools.Env, hooks []*hook.Hook, in hook.Input) hook.Result {
	said := c.rights.Runner.Run(ctx, hooks, c.told(env, in))
	c.report(said)
	return said
}

// told completes what a hook is told with the call itself.
func (c *Call) told(env *tools.Env, in hook.Input) hook.Input {
	in.Session, in.Mode, in.Dir = c.rights.Common.Session, c.rights.Common.Mode, env.Dir
	in.Tool, in.ToolUse, in.ToolInput = c.Name, c.Use.ID, absolute(c.parsed.input, env.Dir)
	return in
}

// report lets clients know of what hooks say beside their decision.
func (c *Call) report(said hook.Result) {
	for _, n := range Notices(said) {
		n.CallID = c.Use.ID
		c.session.Notice(c, n)
	}
}

// Notices puts what hooks say to the user, and what went wrong with them, into the form for clients.
func Notices(said hook.Result) (list []Noticed) {
	for _, text := range said.Failures {
		list = append(list, Noticed{Code: "hook_failed", Message: text})
	}
	for _, text := range said.Notes {
		list = append(list, Noticed{Code: "hook_note", Message: text})
	}
	for _, text := range said.System {
		list = append(list, Noticed{Code: "hook_message", Message: text})
	}
	if said.Stop != nil {
		list = append(list, Noticed{Code: "hook_stop", Message: *said.Stop})
	}
	return list
}

func suggestions(rules []string) (list []hook.Suggestion) {
	for _, rule := range rules {
		list = append(list, hook.Suggest(rule))
	}
	return list
}

func opinionsOf(said hook.Result) (list []permission.Opinion) {
	decisions := map[hook.Decision]permission.Decision{hook.Allow: permission.Allow, hook.Ask: permission.Ask, hook.Deny: permission.Deny}
	for _, reason := range said.Reasons {
		list = append(list, permission.Opinion{Decision: decisions[reason.Decision], Reason: reason.Text, Origin: reason.Origin})
	}
	return list
}

// absolute makes the paths in an input absolute, as hooks expect them.
func absolute(input, dir string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return json.RawMessage(input)
	}
	changed := false
	for _, name := range []string{"file_path", "notebook_path", "path"} {
		var path string
		if json.Unmarshal(fields[name], &path) != nil || path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "base64:") {
			continue
		}
		fields[name], _ = json.Marshal(filepath.Join(dir, path)) // a text always marshals
		changed = true
	}
	if !changed {
		return json.RawMessage(input)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(input)
	}
	return text
}

// Given is the call's input as JSON, as the latest replacement has it. For the session's methods, as ReadOnly.
func (c *Call) Given() json.RawMessage { return json.RawMessage(c.parsed.input) }

// ResponseOf is a result of the named tool as hooks are told it: the one for programs, with its text as "content" and,
// for Bash, as "stdout", as hooks written for Claude Code look for it.
func ResponseOf(tool string, ended Ended) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if text, err := json.Marshal(ended.Structured); err == nil && ended.Structured != nil {
		_ = json.Unmarshal(text, &fields) // what is no object has no fields
	}
	text, err := json.Marshal(textOf(ended.Content))
	if err != nil {
		return nil
	}
	fields["content"] = text
	if tool == "Bash" {
		fields["stdout"] = text
	}
	response, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return response
}

func textOf(content []tools.Block) string {
	var texts []string
	for _, block := range content {
		if block.Text != "" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}
