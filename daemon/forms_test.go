// What a tool asks in the middle of its call: taken back, too long to be shown, thought about for long, and answered with a no
// that stops more than itself.

package daemon_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestFormTakenBack: a question that a server does not wait for any more is withdrawn, while its call goes on.
func TestFormTakenBack(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free())
	c.use("d", "mcp__kit__doubt", `{}`)
	q := c.until("d asks").GetQuestion()
	c.use("h", "mcp__kit__hush", `{}`)
	c.until("d withdrawn: its answer is no longer needed")
	_, err := h.sessions().Answer(t.Context(), &tooldv1.AnswerRequest{SessionId: "s", Answer: &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: allow}})
	refused(t, err, codes.FailedPrecondition, "question_closed")
	c.use("h2", "mcp__kit__hush", `{}`)
	if text := c.until("d OK").GetToolResult().GetContent()[0].GetText(); text != "never mind" {
		t.Errorf("the call gave %q", text)
	}
}

// TestFormInterrupts: a no to a form may stop the turn, and with it the call that has asked.
func TestFormInterrupts(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free())
	c.use("a", "mcp__kit__ask", `{}`)
	c.use("b", "mcp__kit__act", `{}`)
	c.reply(c.until("a asks").GetQuestion(), deny, func(a *tooldv1.Answer) { a.InterruptTurn = true })
	c.endTurn()
	c.until("turn 1")
	told := outcomes(resultsOf(c.events))
	if told["a"] != "OK" { // the server may have been quick to go on without an answer
		want(t, told["a"], "CANCELLED cancelled")
	}
	want(t, told["b"], "CANCELLED cancelled")
}

// TestLongForm: nobody is asked to agree to a form that is too long to be shown.
func TestLongForm(t *testing.T) {
	h := kit(t, 0, "")
	c := h.mixed(free())
	c.use("a", "mcp__kit__ask_much", `{}`)
	if text := c.until("a OK").GetToolResult().GetContent()[0].GetText(); text != "cancel" {
		t.Errorf("the server heard %q", text)
	}
	for _, told := range story(c.events) {
		if strings.HasSuffix(told, " asks") {
			t.Errorf("somebody was asked: %q", told)
		}
	}
}

// TestFormTakesNoTime: the time limit of a call stands still while somebody thinks about what its tool has asked.
func TestFormTakesNoTime(t *testing.T) {
	t.Parallel()
	h := kit(t, 0, "")
	c := h.mixed(free())
	asks := text("mcp__kit__ask", `{}`)
	asks.Id, asks.Timeout = "a", durationpb.New(2*time.Second)
	c.ask(asks)
	q := c.until("a asks").GetQuestion()
	other := h.join("other", free())
	other.use("longer", "Bash", `{"command":"sleep 1000","timeout":2100}`) // begun after it, with more time
	other.until("longer TIMED_OUT timed_out")
	c.reply(q, allow, func(a *tooldv1.Answer) { a.UpdatedInputJson = `{"name":"toold"}` })
	result := c.until("a OK").GetToolResult()
	if text := result.GetContent()[0].GetText(); text != "accept toold" {
		t.Errorf("the server heard %q", text)
	}
	if u := result.GetUsage(); u.GetAsked().AsDuration() < 2*time.Second || u.GetRan().AsDuration() >= 2*time.Second {
		t.Errorf("it ran for %s and waited for an answer for %s", u.GetRan().AsDuration(), u.GetAsked().AsDuration())
	}
}
