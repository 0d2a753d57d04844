// Package convert makes wire messages of the daemon's values, and values of messages. It is pure,
// and does not know sessions, streams or the journal.
package convert

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
)

// Event puts an event of a call, or of no call when use is nil, into a wire message without number
// and time.
func Event(use *pipeline.Use, event pipeline.Event) *tooldv1.ExecuteResponse {
	r := &tooldv1.ExecuteResponse{}
	if use != nil {
		r.Turn, r.TurnId = use.Turn, use.TurnID
	} else {
		use = &pipeline.Use{}
	}
	switch e := event.(type) {
	case pipeline.Accepted:
		r.Event = &tooldv1.ExecuteResponse_Accepted{Accepted: &tooldv1.Accepted{
			ToolUseId: use.ID, Name: Short(use.Name), Index: uint32(use.Index), Batch: uint32(e.Batch), Concurrent: e.Concurrent,
			WaitsFor: e.WaitsFor, ParentToolUseId: e.Parent, Title: Shortened(displayed(e.Title), ShownReason),
		}}
	case pipeline.Asked:
		r.Event = &tooldv1.ExecuteResponse_Question{Question: Question(use, e.Question)}
	case pipeline.Withdrawn:
		r.Event = &tooldv1.ExecuteResponse_QuestionWithdrawn{QuestionWithdrawn: &tooldv1.QuestionWithdrawn{
			QuestionId: e.QuestionID, ToolUseId: use.ID, Reason: displayed(e.Reason),
		}}
	case pipeline.Started:
		r.Event = &tooldv1.ExecuteResponse_Started{Started: &tooldv1.Started{
			ToolUseId: use.ID, Sandbox: Tier(e.Tier), Level: tooldv1.Level(e.Verdict.Level), Reason: Shortened(displayed(e.Verdict.Text), ShownReason),
			Grounds: groundsOf(e.Verdict.Reasons), Asked: e.Verdict.Decision == permission.Ask,
		}}
	case pipeline.Ended:
		r.Event = &tooldv1.ExecuteResponse_ToolResult{ToolResult: resultOf(use, e)}
	case pipeline.TurnEnded:
		r.Event = &tooldv1.ExecuteResponse_TurnEnded{TurnEnded: turnEndedOf(e)}
	case pipeline.Noticed:
		r.Event = &tooldv1.ExecuteResponse_Notice{Notice: &tooldv1.Notice{Code: e.Code, Message: displayed(e.Message), ToolUseId: Clean(e.CallID), Details: structOf(e.Details)}}
	case pipeline.Changed:
		r.Event = &tooldv1.ExecuteResponse_SessionChanged{SessionChanged: changedOf(e)}
	}
	return r
}

// Question returns a question as clients see it. Input and diff are shortened; the digest is of the
// whole input.
func Question(use *pipeline.Use, q pipeline.Question) *tooldv1.Question {
	return &tooldv1.Question{
		QuestionId: q.ID, ToolUseId: use.ID, ToolName: q.Tool, Title: displayed(q.Title),
		InputJson: Shortened(Visible(q.Input), ShownInput), InputDigest: q.Digest,
		Diff: Shortened(Visible(q.Diff), ShownDiff), Reason: Shortened(displayed(q.Verdict.Text), ShownReason),
		Level: tooldv1.Level(q.Verdict.Level), Suggestions: Each(q.Suggestions, suggestionOf), Grounds: groundsOf(q.Verdict.Reasons), Effects: effectsOf(q.Facts),
		FormSchemaJson: formOf(q.Form), Connection: connectionOf(q.Host), Secret: promptOf(q.Secret),
	}
}

// promptOf returns the program that waits for a hidden line; nil: the question is about something else.
func promptOf(prompt *sandbox.Prompt) *tooldv1.SecretPrompt {
	if prompt == nil {
		return nil
	}
	return &tooldv1.SecretPrompt{Program: displayed(prompt.Program), Command: displayed(prompt.Command)}
}

// connectionOf returns what a process wants to connect to; nil: the question is about something else.
func connectionOf(to *sandbox.Host) *tooldv1.Connection {
	if to == nil {
		return nil
	}
	return &tooldv1.Connection{Host: Clean(to.Name), Port: uint32(to.Port), Program: displayed(to.Program)}
}

// formOf returns the schema of what a tool wants to know, which is no longer than ShownInput;
// empty: it wants nothing.
func formOf(form *tools.Form) string {
	if form == nil {
		return ""
	}
	return Clean(cmp.Or(string(form.Schema), "{}"))
}

func suggestionOf(rule string) *tooldv1.Suggestion {
	return &tooldv1.Suggestion{Rule: Visible(rule), List: permission.AllowList.String()}
}

// groundsOf returns grounds as long as there is room; the last then reports how many more there
// are.
func groundsOf(grounds []permission.Reason) (list []*tooldv1.Ground) {
	left := Room(ShownNames)
	for i, g := range pipeline.ReasonsOf(grounds) {
		wire := &tooldv1.Ground{
			Code: g.Code, Text: Shortened(displayed(g.Text), ShownReason), Rule: Visible(g.Rule), List: g.List, File: Visible(g.File), Line: uint32(g.Line),
			Part: Shortened(displayed(g.Part), ShownReason),
		}
		if !left.Takes(wire.Text, wire.Rule, wire.File, wire.Part) {
			return append(list, &tooldv1.Ground{Text: fmt.Sprintf("And %d more.", len(grounds)-i)})
		}
		list = append(list, wire)
	}
	return list
}

func turnEndedOf(e pipeline.TurnEnded) *tooldv1.TurnEnded {
	wire := &tooldv1.TurnEnded{
		Calls: uint32(e.Calls), Batches: uint32(e.Batches), Outcomes: map[string]uint32{},
		Wall: durationpb.New(e.Wall), Work: durationpb.New(e.Work), Interrupted: e.Interrupted,
	}
	for outcome, n := range e.Outcomes {
		wire.Outcomes[outcome.String()] = uint32(n)
	}
	return wire
}

func changedOf(e pipeline.Changed) *tooldv1.SessionChanged {
	wire := &tooldv1.SessionChanged{
		WorkingDirectory: Clean(e.Dir), Exported: Each(e.Exported, Clean), Unexported: Each(e.Unexported, Clean),
		TodosChanged: e.TodosReplaced, Todos: Each(e.Todos, Todo), Closed: e.Closed, ActivatedTools: Each(e.Activated, Clean),
	}
	if e.Peer != nil {
		wire.Peer = &tooldv1.Peer{Uid: uint32(e.Peer.UID), ClientName: Clean(e.Peer.Client), ClientVersion: Clean(e.Peer.Version), Principal: Clean(e.Peer.Principal)}
	}
	if e.Mode != nil {
		wire.PermissionMode = wireMode(*e.Mode)
	}
	return wire
}

// Todo returns an entry of a todo list.
func Todo(todo tools.Todo) *tooldv1.Todo {
	return &tooldv1.Todo{Content: Clean(todo.Content), Status: Clean(todo.Status), ActiveForm: Clean(todo.ActiveForm)}
}

// Port is a port of a background task.
func Port(p tools.Port) *tooldv1.ServedPort {
	return &tooldv1.ServedPort{
		Port: uint32(p.Number), Url: p.URL, Program: Clean(p.Program), State: tooldv1.PortState(tooldv1.PortState_value["PORT_STATE_"+strings.ToUpper(string(p.State))]),
	}
}

// Tier returns how a process is confined.
func Tier(t sandbox.Tier) tooldv1.SandboxTier {
	return tooldv1.SandboxTier(tooldv1.SandboxTier_value["SANDBOX_TIER_"+strings.ToUpper(string(t))])
}

// Warnings returns warnings in both forms of the wire.
func Warnings(list []settings.Warning) (texts []string, details []*tooldv1.Warning) {
	for _, w := range list {
		text := Visible(w.Text)
		texts = append(texts, text)
		details = append(details, &tooldv1.Warning{Code: string(w.Code), Text: text, File: Visible(w.File), Line: uint32(w.Line), Tool: Visible(w.Tool)})
	}
	return texts, details
}
