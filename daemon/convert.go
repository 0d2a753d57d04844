// The one place where the wire's messages and the daemon's own values become each other.

package daemon

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/text/ellipsis"
	"github.com/toold/toold/tools/text/redact"
)

// How many bytes of a text stand in a message: a person reads less, and the message stays far below 4 MiB, which is as
// much as most clients take.
const (
	shownName   = 100
	shownReason = 4 << 10
	shownInput  = 64 << 10
	shownDiff   = 512 << 10
	shownFault  = 64 << 10
	shownLines  = 100 // of what a call would do
)

// eventOf puts an event of a call, or of no call when use is nil, into a wire message without number and time.
func eventOf(use *pipeline.Use, event pipeline.Event) *tooldv1.ExecuteResponse {
	r := &tooldv1.ExecuteResponse{}
	if use != nil {
		r.Turn, r.TurnId = use.Turn, use.TurnID
	} else {
		use = &pipeline.Use{}
	}
	switch e := event.(type) {
	case pipeline.Accepted:
		r.Event = &tooldv1.ExecuteResponse_Accepted{Accepted: &tooldv1.Accepted{
			ToolUseId: use.ID, Name: short(use.Name), Index: uint32(use.Index), Batch: uint32(e.Batch), Concurrent: e.Concurrent,
			ParentToolUseId: e.Parent, Title: shortened(displayed(e.Title), shownReason),
		}}
	case pipeline.Asked:
		r.Event = &tooldv1.ExecuteResponse_Question{Question: questionOf(use, e.Question)}
	case pipeline.Withdrawn:
		r.Event = &tooldv1.ExecuteResponse_QuestionWithdrawn{QuestionWithdrawn: &tooldv1.QuestionWithdrawn{
			QuestionId: e.QuestionID, ToolUseId: use.ID, Reason: displayed(e.Reason),
		}}
	case pipeline.Started:
		r.Event = &tooldv1.ExecuteResponse_Started{Started: &tooldv1.Started{
			ToolUseId: use.ID, Sandbox: tierOf(e.Tier), Level: tooldv1.Level(e.Verdict.Level), Reason: shortened(displayed(e.Verdict.Text), shownReason),
			Grounds: groundsOf(e.Verdict.Reasons), Asked: e.Verdict.Decision == permission.Ask,
		}}
	case pipeline.Ended:
		r.Event = &tooldv1.ExecuteResponse_ToolResult{ToolResult: resultOf(use, e)}
	case pipeline.TurnEnded:
		r.Event = &tooldv1.ExecuteResponse_TurnEnded{TurnEnded: turnEndedOf(e)}
	case pipeline.Noticed:
		r.Event = &tooldv1.ExecuteResponse_Notice{Notice: &tooldv1.Notice{Code: e.Code, Message: displayed(e.Message), ToolUseId: clean(e.CallID), Details: structOf(e.Details)}}
	case pipeline.Changed:
		r.Event = &tooldv1.ExecuteResponse_SessionChanged{SessionChanged: changedOf(e)}
	}
	return r
}

func questionOf(use *pipeline.Use, q pipeline.Question) *tooldv1.Question {
	return &tooldv1.Question{
		QuestionId: q.ID, ToolUseId: use.ID, ToolName: q.Tool, Title: displayed(q.Title),
		InputJson: shortened(visible(q.Input), shownInput), InputDigest: q.Digest,
		Diff: shortened(visible(q.Diff), shownDiff), Reason: shortened(displayed(q.Verdict.Text), shownReason),
		Level: tooldv1.Level(q.Verdict.Level), Suggestions: each(q.Suggestions, suggestionOf), Grounds: groundsOf(q.Verdict.Reasons), Effects: effectsOf(q.Facts),
		FormSchemaJson: formOf(q.Form),
	}
}

// formOf returns the schema of what a tool wants to know, which is no longer than shownInput; empty: it wants nothing.
func formOf(form *tools.Form) string {
	if form == nil {
		return ""
	}
	return clean(cmp.Or(string(form.Schema), "{}"))
}

func suggestionOf(rule string) *tooldv1.Suggestion {
	return &tooldv1.Suggestion{Rule: visible(rule), List: permission.AllowList.String()}
}

// groundsOf returns grounds as long as there is room; the last then says how many more there are.
func groundsOf(grounds []permission.Reason) (list []*tooldv1.Ground) {
	left := room(shownNames)
	for i, g := range pipeline.ReasonsOf(grounds) {
		wire := &tooldv1.Ground{
			Code: g.Code, Text: shortened(displayed(g.Text), shownReason), Rule: visible(g.Rule), List: g.List, File: visible(g.File), Line: uint32(g.Line),
			Part: shortened(displayed(g.Part), shownReason),
		}
		if !left.takes(wire.Text, wire.Rule, wire.File, wire.Part) {
			return append(list, &tooldv1.Ground{Text: fmt.Sprintf("And %d more.", len(grounds)-i)})
		}
		list = append(list, wire)
	}
	return list
}

func turnEndedOf(e pipeline.TurnEnded) *tooldv1.TurnEnded {
	wire := &tooldv1.TurnEnded{
		Calls: uint32(e.Calls), Batches: uint32(e.Batches), Outcomes: map[string]uint32{},
		Wall: durationpb.New(e.Wall), Work: durationpb.New(e.Work),
	}
	for outcome, n := range e.Outcomes {
		wire.Outcomes[outcome.String()] = uint32(n)
	}
	return wire
}

func changedOf(e pipeline.Changed) *tooldv1.SessionChanged {
	wire := &tooldv1.SessionChanged{
		WorkingDirectory: clean(e.Dir), Exported: each(e.Exported, clean), Unexported: each(e.Unexported, clean),
		TodosChanged: e.TodosReplaced, Todos: each(e.Todos, todoOf), Closed: e.Closed, ActivatedTools: each(e.Activated, clean),
	}
	if e.Peer != nil {
		wire.Peer = &tooldv1.Peer{Uid: uint32(e.Peer.UID), ClientName: clean(e.Peer.Client), ClientVersion: clean(e.Peer.Version), Principal: clean(e.Peer.Principal)}
	}
	if e.Mode != nil {
		wire.PermissionMode = wireMode(*e.Mode)
	}
	return wire
}

func todoOf(todo tools.Todo) *tooldv1.Todo {
	return &tooldv1.Todo{Content: clean(todo.Content), Status: clean(todo.Status), ActiveForm: clean(todo.ActiveForm)}
}

func tierOf(t sandbox.Tier) tooldv1.SandboxTier {
	return tooldv1.SandboxTier(tooldv1.SandboxTier_value["SANDBOX_TIER_"+strings.ToUpper(string(t))])
}

// Options into the values that the rooms below take. What is unset is its default.

func feedOf(o *tooldv1.Options) scheduler.Feed {
	if o.GetStart() == tooldv1.Start_START_AT_END_OF_TURN {
		return scheduler.AtEndOfTurn
	}
	return scheduler.Streaming
}

func policyOf(o *tooldv1.Options) pipeline.Policy {
	if o.GetSiblingAbort() == tooldv1.SiblingAbort_SIBLING_ABORT_UNSPECIFIED {
		return pipeline.AbortOnBash
	}
	return pipeline.Policy(o.GetSiblingAbort() - 1)
}

func onTimeoutOf(o *tooldv1.Options) tools.OnTimeout {
	if o.GetBashOnTimeout() == tooldv1.OnTimeout_ON_TIMEOUT_BACKGROUND {
		return tools.Background
	}
	return tools.Kill
}

// merged returns base with every field that is set in change.
func merged(base, change *tooldv1.Options) *tooldv1.Options {
	into := proto.CloneOf(base)
	if change.GetTools() != nil {
		into.Tools = nil // a merge would append
	}
	proto.Merge(into, change)
	return into
}

// wireMode is a mode on the wire, where 0 is none.
func wireMode(m permission.Mode) tooldv1.PermissionMode { return tooldv1.PermissionMode(m + 1) }

// modeIn is the mode that options choose, if they do.
func modeIn(o *tooldv1.Options) (mode permission.Mode, chosen bool) {
	wire := o.GetPermissionMode()
	if wire == tooldv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED {
		return permission.Default, false
	}
	return permission.Mode(wire - 1), true
}

// listIn is the list that a rule to remember is for.
func listIn(r *tooldv1.Remember) (list permission.List, known bool) {
	list, known = map[string]permission.List{"": permission.AllowList, "allow": permission.AllowList, "ask": permission.AskList, "deny": permission.DenyList}[r.GetList()]
	return list, known
}

// levelIn is the level of the settings file that a scope stands for; false: it is none of a file.
func levelIn(scope tooldv1.Scope) (level settings.Level, ok bool) {
	level, ok = map[tooldv1.Scope]settings.Level{
		tooldv1.Scope_SCOPE_LOCAL: settings.Local, tooldv1.Scope_SCOPE_PROJECT: settings.Project, tooldv1.Scope_SCOPE_USER: settings.User,
	}[scope]
	return level, ok
}

// clean makes text valid UTF-8, as the wire wants it.
func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// each returns what f makes of each element; nil: there are none.
func each[T, U any](list []T, f func(T) U) (made []U) {
	for _, element := range list {
		made = append(made, f(element))
	}
	return made
}

// inDaemon is a warning about the daemon itself.
func inDaemon(text string) settings.Warning {
	return settings.Warning{Code: settings.InDaemon, Text: text}
}

// warningsOf returns warnings in both forms of the wire.
func warningsOf(list []settings.Warning) (texts []string, details []*tooldv1.Warning) {
	for _, w := range list {
		text := visible(w.Text)
		texts = append(texts, text)
		details = append(details, &tooldv1.Warning{Code: string(w.Code), Text: text, File: visible(w.File), Line: uint32(w.Line), Tool: visible(w.Tool)})
	}
	return texts, details
}

// displayed is visible with marks in place of what looks like a secret: for what the daemon itself says of a call. What a call was
// given and what it gives back stay as they are.
func displayed(text string) string { return visible(redact.Text(text)) }

// visible makes control and bidirectional characters visible, so that what is shown is what is there.
func visible(text string) string {
	var out strings.Builder
	for _, r := range clean(text) {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			out.WriteRune(0x2400 + min(r, 0x21)) // the pictures of control characters; 0x7f has the one after those
		case r >= 0x80 && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r == 0x61c:
			const hex = "0123456789ABCDEF"
			out.WriteString("<U+" + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]}) + ">")
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// shortened makes text valid UTF-8 of at most max bytes and, when it was longer, says how many are left out.
func shortened(text string, max int) string {
	text = clean(text)
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "") + fmt.Sprintf("\n[%d more bytes are not shown]", len(text)-max)
}

// short is a name that a client has made up, fit for one line of a message.
func short(name string) string {
	return ellipsis.Bytes(clean(name), shownName)
}

// The kinds of records, as the journal keeps them. Their numbers are on disk and never change.
const (
	kindAccepted journal.Kind = iota + 1
	kindQuestion
	kindWithdrawn
	kindStarted
	kindResult
	kindTurnEnded
	kindNotice
	kindChanged
)

// kinds are those of the events that are recorded, by what the contract calls them.
var kinds = map[string]journal.Kind{
	"accepted": kindAccepted, "question": kindQuestion, "question_withdrawn": kindWithdrawn, "started": kindStarted,
	"tool_result": kindResult, "turn_ended": kindTurnEnded, "notice": kindNotice, "session_changed": kindChanged,
}

// oneofIn returns which field of the oneof of that name is set, as the contract calls it.
func oneofIn(message proto.Message, oneof protoreflect.Name) string {
	wire := message.ProtoReflect()
	return string(wire.WhichOneof(wire.Descriptor().Oneofs().ByName(oneof)).Name())
}
