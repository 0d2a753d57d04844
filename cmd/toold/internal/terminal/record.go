// One event as one line, for the log and for watching a session.

package terminal

import (
	"fmt"
	"strings"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// CallOf is the call that an event is about; empty when it is about none.
func CallOf(event *tooldv1.ExecuteResponse) string {
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Accepted:
		return e.Accepted.GetToolUseId()
	case *tooldv1.ExecuteResponse_Question:
		return e.Question.GetToolUseId()
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		return e.QuestionWithdrawn.GetToolUseId()
	case *tooldv1.ExecuteResponse_Started:
		return e.Started.GetToolUseId()
	case *tooldv1.ExecuteResponse_Progress:
		return e.Progress.GetToolUseId()
	case *tooldv1.ExecuteResponse_ToolResult:
		return e.ToolResult.GetToolUseId()
	case *tooldv1.ExecuteResponse_Notice:
		return e.Notice.GetToolUseId()
	default:
		return ""
	}
}

// EventLine returns what happened, on one line of any length; empty for what the user need not see.
func EventLine(event *tooldv1.ExecuteResponse, k Ink) string {
	what := EventWords(event, k)
	if what == "" {
		return ""
	}
	at := ""
	if event.GetTime() != nil {
		at = event.GetTime().AsTime().Local().Format("2006-01-02 15:04:05.000")
	}
	turn := ""
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
		return id + " started" + tierWords(e.Started.GetSandbox())
	case *tooldv1.ExecuteResponse_Progress:
		if line := LastLine(progressText(e.Progress)); line != "" {
			return id + " " + k.Dim.Render("| "+line)
		}
		return ""
	case *tooldv1.ExecuteResponse_ToolResult:
		return resultWords(e.ToolResult, id, k)
	case *tooldv1.ExecuteResponse_TurnEnded:
		t := e.TurnEnded
		return fmt.Sprintf("turn ended: %s in %s, %s", Count(int(t.GetCalls()), "call"), Batches(t.GetBatches()), Span(t.GetWall().AsDuration()))
	case *tooldv1.ExecuteResponse_Notice:
		return k.Warn.Render("notice "+VisibleLine(e.Notice.GetCode())) + " " + VisibleLine(e.Notice.GetMessage())
	case *tooldv1.ExecuteResponse_SessionChanged:
		return changeWords(e.SessionChanged)
	default:
		return ""
	}
}

// Batches returns a number of batches with its noun.
func Batches(n uint32) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
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

func tierWords(t tooldv1.SandboxTier) string {
	if t == tooldv1.SandboxTier_SANDBOX_TIER_UNSPECIFIED {
		return ""
	}
	return ", sandbox " + TierName(t)
}

func resultWords(r *tooldv1.ToolResult, id string, k Ink) string {
	style, _ := OutcomeStyle(r.GetOutcome(), k)
	text := id + " ended: " + style.Render(OutcomeWord(r.GetOutcome()))
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
	if p := c.GetPeer(); p != nil {
		parts = append(parts, "used by "+PeerWords(p))
	}
	if dir := c.GetWorkingDirectory(); dir != "" {
		parts = append(parts, "working directory "+VisibleLine(dir))
	}
	if names := c.GetExported(); len(names) > 0 {
		parts = append(parts, "exported "+VisibleLine(strings.Join(names, ", ")))
	}
	if names := c.GetUnexported(); len(names) > 0 {
		parts = append(parts, "unexported "+VisibleLine(strings.Join(names, ", ")))
	}
	if c.GetTodosChanged() {
		parts = append(parts, "todo list of "+Count(len(c.GetTodos()), "line"))
	}
	if mode := c.GetPermissionMode(); mode != tooldv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED {
		parts = append(parts, "permission mode "+ModeName(mode))
	}
	if c.GetClosed() {
		parts = append(parts, "closed")
	}
	return "session: " + strings.Join(parts, "; ")
}
