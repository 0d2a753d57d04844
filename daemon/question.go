package daemon

// Questions: put to whoever can answer, settled by the first answer, withdrawn when they no longer matter. What is
// asked about is the pipeline's.

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// asked is an open question. Its fields but the channel are guarded by the session's mu.
type asked struct {
	call     *pipeline.Call
	question pipeline.Question
	settled  chan struct{} // closed when answer or err is there
	answer   pipeline.Answer
	err      error
	done     bool
}

func (a *asked) settle(answer pipeline.Answer, err error) {
	a.answer, a.err, a.done = answer, err, true
	close(a.settled)
}

// Ask puts the question, unless it is already put, and waits.
func (s *session) Ask(ctx context.Context, c *pipeline.Call, q pipeline.Question) (pipeline.Answer, error) {
	s.mu.Lock()
	a := s.asked[c.Key]
	if a == nil {
		a = s.pose(c, q)
	}
	s.mu.Unlock()
	if a == nil {
		return pipeline.Answer{}, cannotAsk(q)
	}
	defer func() {
		s.mu.Lock()
		delete(s.asked, c.Key)
		s.mu.Unlock()
	}()
	select {
	case <-a.settled:
	case <-ctx.Done():
		s.Withdraw(c, "its call was stopped")
		return pipeline.Answer{}, context.Cause(ctx)
	}
	if a.answer.InterruptTurn && !a.answer.Allow {
		s.queue.StopTurn(c.Use.Turn, &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the user did not allow " + c.Title() + " and stopped the turn"}, nil)
	}
	return a.answer, a.err
}

// AskAhead puts the question before the call's turn has come.
func (s *session) AskAhead(c *pipeline.Call, q pipeline.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[c.Use.Turn]; t != nil && t.open[c.Key] != nil && s.asked[c.Key] == nil {
		s.pose(c, q)
	}
}

// pose records the question; nil when nobody can answer. mu is held.
func (s *session) pose(c *pipeline.Call, q pipeline.Question) *asked {
	if !s.answerable() {
		return nil
	}
	a := &asked{call: c, question: q, settled: make(chan struct{})}
	s.asked[c.Key] = a
	s.enqueue(s.entry(&c.Use, pipeline.Asked{Question: q}))
	return a
}

// Withdraw takes back the call's open question, if there is one.
func (s *session) Withdraw(c *pipeline.Call, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.asked[c.Key]
	delete(s.asked, c.Key)
	if a != nil && !a.done {
		a.settle(pipeline.Answer{}, fault.Deniedf("cannot_ask", "The question was withdrawn: %s.", reason))
		s.enqueue(s.entry(&c.Use, pipeline.Withdrawn{QuestionID: a.question.ID, Reason: reason}))
	}
}

// settleQuestion takes an answer from a client; the refusal says why it does not count.
func (s *session) settleQuestion(wire *tooldv1.Answer) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	var a *asked
	for _, open := range s.asked {
		if open.question.ID == wire.GetQuestionId() && !open.done {
			a = open
		}
	}
	switch {
	case a == nil:
		return refuse(codes.FailedPrecondition, "question_closed", "The question %q is not open: it was answered or withdrawn, or never asked.", clean(wire.GetQuestionId())).at("question_id")
	case wire.GetInputDigest() != a.question.Digest:
		return refuse(codes.FailedPrecondition, "digest_mismatch", "The answer is not for the input that question %q shows. Answer with the question's own input_digest.", a.question.ID).at("input_digest")
	case len(wire.GetRemember()) > 0:
		return refuse(codes.FailedPrecondition, "not_served", "Remembered rules are not served by this daemon yet. Answer without remember.").at("remember")
	case wire.GetDecision() != tooldv1.Decision_DECISION_ALLOW && wire.GetDecision() != tooldv1.Decision_DECISION_DENY:
		return refuse(codes.InvalidArgument, "invalid_decision", "An answer decides DECISION_ALLOW or DECISION_DENY.").at("decision")
	}
	a.settle(answerOf(wire), nil)
	verb := "denied"
	if wire.GetDecision() == tooldv1.Decision_DECISION_ALLOW {
		verb = "allowed"
	}
	s.enqueue(s.entry(&a.call.Use, pipeline.Withdrawn{QuestionID: a.question.ID, Reason: "answered: " + verb}))
	return nil
}

// answerable says whether somebody can answer, or could a while ago and may come back. mu is held.
func (s *session) answerable() bool {
	for stream := range s.streams {
		if stream.answers && !stream.halfClosed {
			return true
		}
	}
	return s.main == nil && s.canAsk && s.keeps() && time.Since(s.detached) < s.daemon.limits.DetachedQuestion
}

// reviewQuestions gives up the open questions when nobody can answer them any more. mu is held.
func (s *session) reviewQuestions() {
	if s.answerable() {
		return
	}
	for _, a := range s.asked {
		if !a.done {
			a.settle(pipeline.Answer{}, cannotAsk(a.question))
			s.enqueue(s.entry(&a.call.Use, pipeline.Withdrawn{QuestionID: a.question.ID, Reason: "nobody is left who can answer"}))
		}
	}
}

func cannotAsk(q pipeline.Question) error {
	return fault.Deniedf("cannot_ask", "%s", fmt.Sprintf(
		"This call needs an answer, and no attached client can give one. %s Attach with capabilities.answers, or choose a permission_mode that allows it.", q.Reason))
}
