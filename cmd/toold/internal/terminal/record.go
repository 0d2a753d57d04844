// One event as one line, for the log and for watching a session.

package terminal

import (
	"cmp"
	"fmt"
	"strings"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// CallOf is the call that an event is about; empty when it is about none.
func CallOf(e *tooldv1.ExecuteResponse) string {
	return cmp.Or(
		e.GetAccepted().GetToolUseId(), e.GetQuestion().GetToolUseId(), e.GetQuestionWithdrawn().GetToolUseId(), e.GetStarted().GetToolUseId(),
		e.GetProgress().GetToolUseId(), e.GetToolResult().GetToolUseId(), e.GetNotice().GetToolUseId(),
	)
}

// EventLine returns what happened, on one line of any length; empty for what the user need not see.
func EventLine(event *tooldv1.ExecuteResponse, k Ink) string {
	what := EventWords(event, k)
	if what == "" {
		return ""
	}
	at, turn := "", ""
	if event.GetTime() != nil {
		at = event.GetTime().AsTime().Local().Format("2006-01-02 15:04:05.000")
	}
	if event.GetTurn() > 0 {
		turn = fmt.Sprintf("turn %d", event.GetTurn())
	}
	return fmt.Sprintf("%s  %-8s %s", k.Dim.Render(at), turn, what)
}

// EventWords returns what happened, without its time and turn; empty for what the user need not see.
func EventWords(event *tooldv1.ExecuteResponse, k Ink) string {
	id := k.Name.Render(VisibleLine(CallOf(event)))
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Attached:
		return "attached to " + VisibleLine(e.Attached.GetSessionId())
	case *tooldv1.ExecuteResponse_Accepted:
		return acceptedWords(e.Accepted, id)
	case *tooldv1.ExecuteResponse_Question:
		return id + " asks: " + VisibleLine(e.Question.GetTitle()) + reasonWords(e.Question.GetReason())
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		return id + " asks no more" + reasonWords(e.QuestionWithdrawn.GetReason())
	case *tooldv1.ExecuteResponse_Started:
		if tier := e.Started.GetSandbox(); tier != tooldv1.SandboxTier_SANDBOX_TIER_UNSPECIFIED {
			return id + " started, sandbox " + Word(tier)
		}
		return id + " started"
	case *tooldv1.ExecuteResponse_Progress:
		if line := LastLine(progressText(e.Progress)); line != "" {
			return id + " " + k.Dim.Render("| "+line)
		}
		return ""
	case *tooldv1.ExecuteResponse_ToolResult:
		return resultWords(e.ToolResult, id, k)
	case *tooldv1.ExecuteResponse_TurnEnded:
		return "turn ended: " + CallsInBatches(e.TurnEnded) + ", " + Span(e.TurnEnded.GetWall().AsDuration())
	case *tooldv1.ExecuteResponse_Notice:
		return k.Warn.Render("notice "+VisibleLine(e.Notice.GetCode())) + " " + VisibleLine(e.Notice.GetMessage())
	case *tooldv1.ExecuteResponse_SessionChanged:
		return changeWords(e.SessionChanged)
	default:
		return ""
	}
}

// CallsInBatches counts what was in a turn.
func CallsInBatches(t *tooldv1.TurnEnded) string {
	batches := "1 batch"
	if n := t.GetBatches(); n != 1 {
		batches = fmt.Sprintf("%d batches", n)
	}
	return Count(int(t.GetCalls()), "call") + " in " + batches
}

func acceptedWords(a *tooldv1.Accepted, id string) string {
	how := "serial"
	if a.GetConcurrent() {
		how = "concurrent"
	}
	where := fmt.Sprintf("batch %d, %s", a.GetBatch(), how)
	if a.GetBatch() == 0 {
		where = "invalid"
	}
	return fmt.Sprintf("%s accepted: %s (%s)", id, VisibleLine(a.GetName()), where)
}

func reasonWords(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + VisibleLine(reason) + ")"
}

func resultWords(r *tooldv1.ToolResult, id string, k Ink) string {
	style, _ := OutcomeStyle(r.GetOutcome(), k)
	text := id + " ended: " + style.Render(Word(r.GetOutcome()))
	if code := r.GetError().GetCode(); code != "" {
		text += " " + VisibleLine(code) + ": " + VisibleLine(r.GetError().GetMessage())
	}
	if ran := r.GetUsage().GetRan(); ran != nil {
		text += " " + k.Dim.Render(Span(ran.AsDuration()))
	}
	return text
}

func changeWords(c *tooldv1.SessionChanged) string {
	var parts []string
	add := func(changed bool, what string) {
		if changed {
			parts = append(parts, what)
		}
	}
	add(c.GetPeer() != nil, "used by "+PeerWords(c.GetPeer()))
	add(c.GetWorkingDirectory() != "", "working directory "+VisibleLine(c.GetWorkingDirectory()))
	add(len(c.GetExported()) > 0, "exported "+VisibleLine(strings.Join(c.GetExported(), ", ")))
	add(len(c.GetUnexported()) > 0, "unexported "+VisibleLine(strings.Join(c.GetUnexported(), ", ")))
	add(c.GetTodosChanged(), "todo list of "+Count(len(c.GetTodos()), "line"))
	mode := c.GetPermissionMode()
	add(mode != tooldv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED, "permission mode "+ModeName(mode))
	add(c.GetClosed(), "closed")
	return "session: " + strings.Join(parts, "; ")
}
