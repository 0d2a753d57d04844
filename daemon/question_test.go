// Questions: asked ahead, answered once by the right hand, withdrawn when they no longer matter.

package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	allow = tooldv1.Decision_DECISION_ALLOW
	deny  = tooldv1.Decision_DECISION_DENY
)

// write sends a Write of a new file, which asks in the default mode.
func (c *conversation) write(h *house, id string) {
	c.t.Helper()
	c.use(id, "Write", fmt.Sprintf(`{"file_path":"%s/%s.txt","content":"%s\n"}`, h.root, id, id))
}

func (c *conversation) question(id string) *tooldv1.Question {
	c.t.Helper()
	return c.until(id + " asks").GetQuestion()
}

// TestQuestionNamesTheTarget: who is asked about a link learns where it leads, also when nothing is there yet.
func TestQuestionNamesTheTarget(t *testing.T) {
	h := serve(t)
	away := t.TempDir()
	target := filepath.Join(away, "new.txt")
	if err := os.Symlink(target, filepath.Join(h.root, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(h.root, "ls")); err != nil {
		t.Fatal(err)
	}
	c := h.join("s", nil)
	c.use("w", "Write", fmt.Sprintf(`{"file_path":"%s/dangling","content":"x"}`, h.root))
	q := c.question("w")
	want(t, q.GetReason(), "It writes "+h.root+"/dangling, which leads to "+target+", which is outside the roots.")
	c.reply(q, deny)
	c.use("w2", "Write", fmt.Sprintf(`{"file_path":"%s/ls/t.txt","content":"x"}`, h.root))
	q = c.question("w2")
	want(t, q.GetReason(), "It writes "+h.root+"/ls/t.txt, which leads to "+away+"/t.txt, which is outside the roots.")
	c.reply(q, deny)
	c.until("w2 DENIED")
}

// TestAskedAhead: three edits in a row are three questions at once, answered in any order; an answer fits its own
// question alone, and counts once.
func TestAskedAhead(t *testing.T) {
	h := serve(t)
	c := h.join("s", nil)
	for _, id := range []string{"a", "b", "c"} {
		c.write(h, id)
	}
	c.endTurn()
	questions := map[string]*tooldv1.Question{}
	for len(questions) < 3 {
		if q := c.until("").GetQuestion(); q != nil {
			questions[q.GetToolUseId()] = q
		}
	}
	if q := questions["a"]; !strings.Contains(q.GetDiff(), "+a") || q.GetLevel() != tooldv1.Level_LEVEL_CONFIRM || q.GetTitle() == "" || q.GetReason() == "" {
		t.Errorf("question %v, want its diff, level, title and reason", q)
	}
	c.reply(questions["c"], deny, func(a *tooldv1.Answer) { a.Message = "not this one" })
	denied := c.until("c DENIED client_denied").GetToolResult()
	if text := denied.GetContent()[0].GetText(); !strings.Contains(text, "not this one") {
		t.Errorf("text %q, want what the user said", text)
	}
	c.reply(questions["c"], allow)
	c.until("notice question_closed")
	c.reply(questions["b"], allow, func(a *tooldv1.Answer) { a.InputDigest = questions["a"].GetInputDigest() })
	c.until("notice digest_mismatch")
	c.reply(questions["b"], tooldv1.Decision_DECISION_ASK)
	c.until("notice invalid_decision")
	c.reply(questions["b"], allow, func(a *tooldv1.Answer) { a.Remember = []*tooldv1.Remember{{Rule: "Write(x)"}} })
	c.until("notice invalid_rule")
	c.reply(questions["b"], allow)
	c.reply(questions["a"], allow)
	c.until("turn 1")
	want(t, outcomes(resultsOf(c.events)), map[string]string{"a": "OK", "b": "OK", "c": "DENIED client_denied"})
	asks := 0
	for _, told := range story(c.events) {
		if strings.HasSuffix(told, " asks") {
			asks++
		}
	}
	want(t, asks, 3)
}

// TestUpdatedInput: the answer's own input is what runs, and is judged like any other.
func TestUpdatedInput(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", nil)
	c.write(h, "a")
	c.reply(c.question("a"), allow, func(a *tooldv1.Answer) {
		a.UpdatedInputJson = `{"file_path":"` + h.root + `/other.txt","content":"other\n"}`
	})
	c.until("a OK")
	if text, err := os.ReadFile(h.root + "/other.txt"); err != nil || string(text) != "other\n" {
		t.Errorf("%q, %v; want what the answer said", text, err)
	}
	c.write(h, "b")
	c.reply(c.question("b"), allow, func(a *tooldv1.Answer) { a.UpdatedInputJson = `{"file_path":7}` })
	c.until("b INVALID invalid_input")
	outside := t.TempDir() + "/secret"
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.use("c", "Read", `{"file_path":"`+outside+`"}`)
	c.reply(c.question("c"), allow)
	c.until("c OK")
	c.use("d", "Bash", `{"command":"cat `+outside+`"}`)
	c.reply(c.question("d"), allow, func(a *tooldv1.Answer) { a.UpdatedInputJson = `{"command":"rm ` + outside + `"}` })
	c.until("d DENIED widened_input")
}

// TestDenyAndInterrupt: a no that stops the turn ends the rest of it as cancelled.
func TestDenyAndInterrupt(t *testing.T) {
	h := serve(t)
	c := h.join("s", nil)
	c.write(h, "a")
	c.write(h, "b")
	c.reply(c.question("a"), deny, func(a *tooldv1.Answer) { a.InterruptTurn = true })
	c.endTurn()
	c.until("turn 1")
	want(t, outcomes(resultsOf(c.events)), map[string]string{"a": "DENIED client_denied", "b": "CANCELLED cancelled"})
}

// TestCannotAsk: without anybody who can answer a call is denied at once, also when the last one has lost the power.
func TestCannotAsk(t *testing.T) {
	h := serve(t)
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}})
	c.write(h, "a")
	c.until("a DENIED cannot_ask")
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{}}})
	c.until("notice cannot_answer")
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	c = h.join("s", nil)
	c.write(h, "b")
	c.question("b")
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	want(t, outcomes(resultsOf(c.events)), map[string]string{"b": "DENIED cannot_ask"})
}

// TestAnsweredFromBeside: a watcher, SessionService.Answer and a companion can all answer; whoever sees a question sees
// that it was answered.
func TestAnsweredFromBeside(t *testing.T) {
	h := serve(t)
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}})
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := h.sessions().Watch(ctx, &tooldv1.WatchRequest{SessionId: "s", AfterSeq: new(uint64), Answers: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil { // it is there
		t.Fatal(err)
	}
	c.write(h, "a")
	q := c.question("a")
	answer := &tooldv1.Answer{QuestionId: q.GetQuestionId(), InputDigest: "another", Decision: allow}
	_, err = h.sessions().Answer(t.Context(), &tooldv1.AnswerRequest{SessionId: "s", Answer: answer})
	refused(t, err, codes.FailedPrecondition, "digest_mismatch")
	answer.InputDigest = q.GetInputDigest()
	if _, err := h.sessions().Answer(t.Context(), &tooldv1.AnswerRequest{SessionId: "s", Answer: answer}); err != nil {
		t.Fatal(err)
	}
	c.until("a withdrawn: answered: allowed")
	c.until("a OK")
	cancel()
	companion := h.converse()
	companion.attach(&tooldv1.Attach{SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION, Capabilities: &tooldv1.Capabilities{Answers: true}})
	companion.use("mine", "Read", `{}`)
	companion.until("notice not_main")
	c.write(h, "b")
	companion.reply(companion.question("b"), allow)
	companion.until("b OK")
	c.endTurn()
	c.until("turn 1 ended 2/2")
}

// TestMootQuestions are withdrawn: when the call is cancelled, when the mode decides, when what is asked has changed.
func TestMootQuestions(t *testing.T) {
	h := serve(t)
	c := h.join("s", nil)
	c.write(h, "a")
	c.question("a")
	c.cancelCall("a")
	c.until("a withdrawn: its call has ended")
	c.until("a CANCELLED cancelled")

	c.write(h, "b")
	c.question("b")
	companion := h.converse()
	companion.attach(&tooldv1.Attach{SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION, Options: &tooldv1.Options{
		PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS.Enum(),
	}})
	c.until("b withdrawn: it is allowed now")
	c.until("b OK")
	companion = h.converse()
	companion.attach(&tooldv1.Attach{SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION, Options: &tooldv1.Options{
		PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT.Enum(),
	}})
	c.write(h, "c")
	c.question("c")
	companion = h.converse()
	companion.attach(&tooldv1.Attach{SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION, Options: &tooldv1.Options{
		PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_PLAN.Enum(),
	}})
	c.until("c withdrawn: it is denied now")
	c.until("c DENIED mode_denied")
}

// TestYesIsForWhatWasAsked: a yes that was given ahead does not count when the call has come to reach further.
func TestYesIsForWhatWasAsked(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	outside := t.TempDir()
	if err := os.Mkdir(h.root+"/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	c := h.join("s", nil)
	c.pass("gate", reads)
	g.await(t, "gate")
	c.use("w", "Write", `{"file_path":"`+h.root+`/dir/f","content":"x"}`)
	first := c.question("w")
	c.reply(first, allow)
	c.until("w withdrawn: answered: allowed")
	if err := os.Remove(h.root + "/dir"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, h.root+"/dir"); err != nil {
		t.Fatal(err)
	}
	g.open("gate")
	second := c.question("w")
	if second.GetQuestionId() == first.GetQuestionId() || second.GetReason() == first.GetReason() {
		t.Errorf("asked again with %v, want a question of its own", second)
	}
	c.reply(second, deny)
	c.until("w DENIED client_denied")
	if _, err := os.Stat(outside + "/f"); err == nil {
		t.Error("it wrote outside of the root")
	}
}

// TestQuestionWaitsForTheClient: the client of a named session may go and come back, and is asked again.
func TestQuestionWaitsForTheClient(t *testing.T) {
	h := serve(t)
	c := h.join("s", nil)
	c.write(h, "a")
	first := c.question("a")
	c.cancel()
	c = h.join("s", nil)
	again := c.question("a")
	want(t, again.GetQuestionId(), first.GetQuestionId())
	c.reply(again, allow)
	c.until("a OK")
}

// TestDetachedQuestionIsGivenUp when nobody comes back in time.
func TestDetachedQuestionIsGivenUp(t *testing.T) {
	h := prepare(t)
	h.limit(`"detached_question": 0.05`)
	h.start()
	c := h.join("s", nil)
	c.write(h, "a")
	c.question("a")
	watch, err := h.sessions().Watch(t.Context(), &tooldv1.WatchRequest{SessionId: "s", AfterSeq: new(uint64)})
	if err != nil {
		t.Fatal(err)
	}
	c.cancel()
	for {
		response, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if response.GetEvent().GetToolResult() != nil {
			want(t, tell(response.GetEvent()), "a DENIED cannot_ask")
			return
		}
	}
}
