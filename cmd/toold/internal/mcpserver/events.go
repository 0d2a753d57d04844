package mcpserver

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// take is what comes of one event.
func (b *bridge) take(event *tooldv1.ExecuteResponse) {
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		b.resumed(e.Attached)
	case *tooldv1.ExecuteResponse_Progress:
		if c := b.calls[e.Progress.GetToolUseId()]; c != nil {
			c.report(e.Progress)
		}
	case *tooldv1.ExecuteResponse_Question:
		b.ask(e.Question, "")
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		b.withdraw(func(a *elicited) bool { return a.question.GetQuestionId() == e.QuestionWithdrawn.GetQuestionId() })
	case *tooldv1.ExecuteResponse_ToolResult:
		b.conclude(e.ToolResult)
	case *tooldv1.ExecuteResponse_Notice:
		b.noticed(e.Notice)
	}
}

// resumed notifies the client of a session's warnings once, and of the tools that another daemon may have.
func (b *bridge) resumed(attached *tooldv1.Attached) {
	if b.begun {
		b.changed()
		return
	}
	b.begun = true
	for _, warning := range attached.GetWarnings() {
		b.Console.Say("warning: %s", warning)
		b.log("warning", warning)
	}
}

// report replaces progress that is not written yet with the newest.
func (c *call) report(p *tooldv1.Progress) {
	if c.meter.token == nil || c.silent || c.newest.Swap(p) != nil {
		return
	}
	c.progress()
}

func (b *bridge) conclude(result *tooldv1.ToolResult) {
	id := result.GetToolUseId()
	b.withdraw(func(a *elicited) bool { return a.question.GetToolUseId() == id })
	if c := b.calls[id]; c != nil {
		delete(b.calls, id)
		c.newest.Store(nil)
		c.answer(result)
	}
}

func (b *bridge) noticed(n *tooldv1.Notice) {
	switch code := n.GetCode(); {
	case code == "tools_changed":
		b.changed()
	case slices.Contains(turn.AnswerRefusals, code):
		id := n.GetDetails().GetFields()["question_id"].GetStringValue()
		if a := b.elicits[id]; a != nil && a.answered { // the daemon has refused the answer
			b.ask(a.question, n.GetMessage())
		}
	default:
		b.Console.Noted("notice: %s (%s)", n.GetMessage(), code)
		b.log("notice", n.GetMessage())
	}
}

// log has the client told, if it has asked for messages of that level.
func (b *bridge) log(level mcp.LoggingLevel, text string) {
	b.asks.Go(func() {
		_ = b.client.Log(b.ctx, &mcp.LoggingMessageParams{Level: level, Logger: "toold", Data: terminal.VisibleText(text)}) // the client is gone
	})
}
