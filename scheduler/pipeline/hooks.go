// The places on a call's way where users' hooks are heard. How they are run and what an answer means is the hook
// package's.

package pipeline

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

// notify runs the hooks before the verdict: PreToolUse and, if the verdict would be a question,
// PermissionRequest, which can allow what a rule could, and deny. The opinions are kept with the
// call. An input that a hook has rewritten replaces the call's; PreToolUse hooks run again for one
// that is not their own.
func (c *Call) notify(ctx context.Context, env *tools.Env) error {
	if err := c.listen(ctx, env, hook.Input{Event: hook.PreToolUse}); err != nil {
		return err
	}
	v := c.checked.verdict
	if v.Decision != permission.Ask {
		return nil
	}
	in := hook.Input{Event: hook.PermissionRequest}
	for _, rule := range permission.Suggest(c.facts, v, c.rights.Anchors) {
		in.Suggestions = append(in.Suggestions, hook.Suggest(rule))
	}
	input, before := c.parsed.input, len(c.opinions)
	if err := c.listen(ctx, env, in); err != nil || c.parsed.input == input {
		return err
	}
	c.opinions = c.opinions[before:]
	return c.listen(ctx, env, hook.Input{Event: hook.PreToolUse})
}

// listen runs the hooks of one event, without a slot, and judges the call with their opinions.
func (c *Call) listen(ctx context.Context, env *tools.Env, in hook.Input) error {
	hooks := c.hooks(in.Event)
	if len(hooks) == 0 {
		return nil
	}
	if err := c.session.Recorded(c); err != nil {
		return err
	}
	var said hook.Result
	since := time.Now()
	err := c.order.outside(func() { said = c.run(ctx, env, hooks, in) })
	c.usage.spent(Hooking, c.accepted, since)
	if err != nil {
		return err
	}
	c.context = append(c.context, said.Context...)
	c.opinions = append(c.opinions, said.Reasons...)
	if said.Interrupt {
		c.session.StopTurn(c, "a hook did not allow "+c.Title()+" and stopped the turn")
	}
	if before := c.parsed.input; said.Input != nil {
		if err := c.replace(said.Input); err != nil {
			return err
		}
		if c.parsed.input != before {
			c.session.Notice(c, Noticed{Code: "input_rewritten", CallID: c.Use.ID, Message: fmt.Sprintf("A %s hook has changed the input of the call: it is %s now.", in.Event, c.Title())})
		}
	}
	return c.check(ctx, env)
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

// afterwards runs the hooks for an executed call, and adds their answers to the result.
func (c *Call) afterwards(env *tools.Env, ended Ended) Ended {
	in := hook.Input{Event: hook.PostToolUse, DurationMS: new(c.usage.Ran.Milliseconds())}
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
	_ = c.session.Recorded(c) // the hooks may have to withhold something from the result, recorded or not
	var said hook.Result
	since, heard := time.Now(), make(chan struct{})
	c.session.Later(func(ctx context.Context) { // stopping the call does not stop a hook that may have to withhold something
		defer close(heard)
		said = c.run(ctx, env, hooks, in)
	})
	<-heard
	c.usage.spent(Hooking, c.accepted, since)
	if said.Output != nil { // it may be there to hide something, so nothing of the old one stays
		ended.Content, ended.Structured, ended.Spill = []tools.Block{{Text: *said.Output}}, nil, nil
	}
	for _, reason := range said.Reasons {
		if reason.Decision == permission.Deny {
			c.context = append(c.context, reason.Reason)
		}
	}
	c.context = append(c.context, said.Context...)
	return ended
}

// notifyDenied runs the PermissionDenied hooks. The call does not wait for them.
func (c *Call) notifyDenied(env *tools.Env, err error) {
	hooks := c.hooks(hook.PermissionDenied)
	found, denied := errors.AsType[*fault.Error](err)
	if len(hooks) == 0 || !denied || found.Kind != fault.Denied || c.session.Recorded(c) != nil {
		return
	}
	in := c.told(env, hook.Input{Event: hook.PermissionDenied, Reason: found.Message})
	runner := c.rights.Runner
	c.session.Later(func(ctx context.Context) { c.report(runner.Run(ctx, hooks, in)) })
}

// run runs hooks about this call, and notifies clients of failures.
func (c *Call) run(ctx context.Context, env *tools.Env, hooks []*hook.Hook, in hook.Input) hook.Result {
	said := c.rights.Runner.Run(ctx, hooks, c.told(env, in))
	c.report(said)
	return said
}

// told adds the call to an event for hooks.
func (c *Call) told(env *tools.Env, in hook.Input) hook.Input {
	in.Session, in.Mode, in.Dir = c.rights.Common.Session, c.rights.Common.Mode, env.Dir
	in.Tool, in.ToolUse, in.ToolInput = c.Name, c.Use.ID, absolute(c.parsed.input, env.Dir)
	return in
}

// report notifies clients of what hooks returned beside their decision.
func (c *Call) report(said hook.Result) {
	for _, n := range Notices(said) {
		n.CallID = c.Use.ID
		c.session.Notice(c, n)
	}
}

// Notices converts the hooks' messages to the user, and their failures, to notices for clients.
func Notices(said hook.Result) (list []Noticed) {
	add := func(n Noticed, texts []string) {
		for _, n.Message = range texts {
			list = append(list, n)
		}
	}
	add(Noticed{Code: "hook_failed"}, said.Failures)
	add(Noticed{Code: "hook_note"}, said.Notes)
	add(Noticed{Code: "hook_message"}, said.System)
	if said.Stop != nil {
		list = append(list, Noticed{Code: "hook_stop", Message: *said.Stop})
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
		if json.Unmarshal(fields[name], &path) == nil && path != "" && !filepath.IsAbs(path) && !strings.HasPrefix(path, "base64:") {
			fields[name], _ = json.Marshal(filepath.Join(dir, path)) // a text always marshals
			changed = true
		}
	}
	if text, err := json.Marshal(fields); changed && err == nil {
		return text
	}
	return json.RawMessage(input)
}

// Given is the call's input as JSON, as the latest replacement has it. For the session's methods, as ReadOnly.
func (c *Call) Given() json.RawMessage { return json.RawMessage(c.parsed.input) }

// ResponseOf returns a result of the named tool for hooks: the structured one, with its text as
// "content" and, for Bash, as "stdout", which hooks written for Claude Code expect.
func ResponseOf(tool string, ended Ended) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if text, err := json.Marshal(ended.Structured); err == nil && ended.Structured != nil {
		_ = json.Unmarshal(text, &fields) // a value that is not an object has no fields
	}
	fields["content"], _ = json.Marshal(textOf(ended.Content)) // a text always marshals
	if tool == "Bash" {
		fields["stdout"] = fields["content"]
	}
	response, _ := json.Marshal(fields) // so does what was JSON
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
