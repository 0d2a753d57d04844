//go:build !no_mcp

// What comes of the events of a session: results and progress go to the requests that wait for them, questions to the
// client. All of it happens on the bridge's goroutine. This file does not know how the stream is kept.

package main

import (
	"slices"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// take is what comes of one event.
func (b *bridge) take(event *tooldv1.ExecuteResponse) {
	b.last = max(b.last, event.GetSeq())
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Accepted:
		if c := b.calls[e.Accepted.GetToolUseId()]; c != nil {
			c.accepted = true
		}
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

// report puts the newest progress in the place of one that nobody has fetched.
func (c *mcpCall) report(p *tooldv1.Progress) {
	select {
	case <-c.progress:
	default:
	}
	c.progress <- p
}

func (b *bridge) conclude(result *tooldv1.ToolResult) {
	id := result.GetToolUseId()
	b.withdraw(func(a *elicited) bool { return a.question.GetToolUseId() == id })
	if c := b.calls[id]; c != nil {
		delete(b.calls, id)
		c.ended <- result
	}
}

func (b *bridge) noticed(n *tooldv1.Notice) {
	switch code := n.GetCode(); {
	case code == "tools_changed":
		b.changed()
	case slices.Contains(answerRefusals, code):
		b.askAgain(n.GetDetails().GetFields()["question_id"].GetStringValue(), n.GetMessage())
	default:
		b.app.noted("notice: %s (%s)", n.GetMessage(), code)
	}
}
