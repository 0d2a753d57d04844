package pipeline

// The places on a call's way where users' hooks are heard. How they are run and what an answer means is the hook
// package's.

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// always stands for the rule of a hook's "if" where only the number of hooks counts.
func always(permission.Rule) bool { return true }

// hear runs the PreToolUse hooks. What they say is noted in the facts; another input takes the place of the call's.
func (c *Call) hear(ctx context.Context, env *tools.Env, rights Rights) error {
	hooks := c.hooks(rights, hook.PreToolUse)
	if len(hooks) == 0 {
		return nil
	}
	said := c.run(ctx, env, rights, hooks, hook.Input{Event: hook.PreToolUse})
	c.context = append(c.context, said.Context...)
	if said.Input != nil && said.Decision != hook.Deny {
		if err := c.replace(ctx, env, rights, said.Input); err != nil {
			return err
		}
	}
	c.facts.Opinions = opinionsOf(said)
	return nil
}

// hearRequest runs the PermissionRequest hooks before somebody is asked. They can say yes where a rule could, and no.
func (c *Call) hearRequest(ctx context.Context, env *tools.Env, rights Rights, v permission.Verdict) (permission.Verdict, error) {
	hooks := c.hooks(rights, hook.PermissionRequest)
	if len(hooks) == 0 {
		return v, nil
	}
	said := c.run(ctx, env, rights, hooks, hook.Input{
		Event: hook.PermissionRequest, Suggestions: suggestions(permission.Suggest(c.facts, v, rights.Anchors)),
	})
	before := c.facts.Opinions
	if said.Input != nil && said.Decision == hook.Allow {
		if err := c.replace(ctx, env, rights, said.Input); err != nil {
			return v, err
		}
	}
	c.facts.Opinions = slices.Concat(before, opinionsOf(said))
	return permission.Decide(c.facts, rights.Policy), nil
}

// hooks gives those of an event that are for this call.
func (c *Call) hooks(rights Rights, event string) []*hook.Hook {
	return rights.Hooks.For(event, c.Name, func(rule permission.Rule) bool { return rights.Rules.Holds(rule, c.facts) })
}

// afterwards runs the hooks for what has been executed, and puts what they say into the result.
func (c *Call) afterwards(ctx context.Context, env *tools.Env, rights Rights, ended Ended, ran time.Duration) Ended {
	in := hook.Input{Event: hook.PostToolUse, DurationMS: new(ran.Milliseconds())}
	switch ended.Outcome {
	case OK:
	case Error, TimedOut:
		in.Event = hook.PostToolUseFailure
	default:
		return ended
	}
	hooks := c.hooks(rights, in.Event)
	if len(hooks) == 0 {
		return ended
	}
	if ended.Outcome == OK {
		in.Response = ResponseOf(ended)
	} else {
		in.Error, in.Interrupt = textOf(ended.Content), new(false)
	}
	said := c.run(ctx, env, rights, hooks, in)
	if said.Output != nil {
		ended.Content = []tools.Block{{Text: *said.Output}}
	}
	for _, reason := range said.Reasons {
		if reason.Decision == hook.Deny {
			c.context = append(c.context, reason.Text)
		}
	}
	c.context = append(c.context, said.Context...)
	return ended
}

// tellDenied lets the PermissionDenied hooks know. Nobody waits for them.
func (c *Call) tellDenied(env *tools.Env, rights Rights, err error) {
	var found *fault.Error
	hooks := rights.Hooks.For(hook.PermissionDenied, c.Name, always)
	if len(hooks) == 0 || !errors.As(err, &found) || found.Kind != fault.Denied {
		return
	}
	in := c.told(env, rights, hook.Input{Event: hook.PermissionDenied, Reason: found.Message})
	c.session.Later(func(ctx context.Context) { c.report(rights.Runner.Run(ctx, hooks, in)) })
}

// run runs hooks about this call, and lets clients know what went wrong with them.
func (c *Call) run(ctx context.Context, env *tools.Env, rights Rights, hooks []*hook.Hook, in hook.Input) hook.Result {
	said := rights.Runner.Run(ctx, hooks, c.told(env, rights, in))
	c.report(said)
	return said
}

// told completes what a hook is told with the call itself.
func (c *Call) told(env *tools.Env, rights Rights, in hook.Input) hook.Input {
	in.Session, in.Mode, in.Dir = rights.Common.Session, rights.Common.Mode, env.Dir
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

// ResponseOf is a result as hooks are told it: for programs if there is such a form, else its text; nil when it cannot be
// told.
func ResponseOf(ended Ended) json.RawMessage {
	response := ended.Structured
	if response == nil {
		response = struct {
			Content string `json:"content"`
		}{textOf(ended.Content)}
	}
	text, err := json.Marshal(response)
	if err != nil {
		return nil
	}
	return text
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
