// Questions: asked of all clients that can answer, closed by the first answer, withdrawn when they
// no longer matter. What is asked about, and what a yes is worth, is the pipeline's and not known
// here.

package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// An asker asks people: about calls, about servers of a workspace, and for what tools want to know.
type asker struct {
	s         *session
	approving sync.Mutex // held while servers are asked about, so that the newest settings are the last to count
}

// asked is a question that is open, or answered with yes and not yet taken up: a call's by the call
// when its turn comes. Used in the session's update alone, but for settled.
type asked struct {
	subject
	question pipeline.Question // without Input and Diff, if it is about a call
	settled  chan struct{}     // closed when done
	done     bool
	secret   []byte // of an answer, until AskSecret has it; in no record
	input    string // what is to be run instead, as JSON; empty: as asked
	err      error  // why it was not allowed
}

// A subject is what a question is about, and what follows from its end.
type subject struct {
	key string        // unique among the session's questions: that of a call, or one that no call has
	use *pipeline.Use // the call among whose records the question stands; nil: it is about no call
	// answered is called in the update in which an answer closes the question. no is the error of a
	// no; nil: a yes. After a yes the question stays among the session's, closed, until it is
	// deleted. then runs after the update; nil: nothing does.
	answered func(its *state, no *fault.Error) (then func())
	// decided returns what rules, settings and mode decide by now; Allow and Deny withdraw the
	// question with ErrMoot. nil: only an answer decides.
	decided func(pipeline.Rights) permission.Decision
	// keeps refuses a rule of the answer that must not be kept where the answer says. nil: none is.
	keeps func(keeping) *apierror.Error
}

// Ask puts the question, unless the same is already put, and waits for a yes.
func (ask *asker) Ask(ctx context.Context, c *pipeline.Call, q pipeline.Question) (input string, err error) {
	if isOwn(c) {
		return "", nil
	}
	if q.Form != nil && len(q.Form.Schema) > convert.ShownInput {
		return "", fault.Invalidf("too_large", "The form that %s wants to be filled in has %d bytes, but at most %d are shown. It was not asked.", c.Name, len(q.Form.Schema), convert.ShownInput)
	}
	var a *asked
	ask.s.update(func(its *state) {
		if a = its.questions.asked[c.Key]; a != nil && a.question.Same(q) {
			a.question.Facts, a.decided = q.Facts, ask.ofCall(c, q).decided // of one that the program before has asked they were not known
			return
		} else if a != nil {
			ask.withdraw(its, a, errMoot, "what it asks for has changed")
		}
		a = ask.open(its, ask.ofCall(c, q), q)
	})
	if a == nil {
		return "", ask.cannotAsk(q)
	}
	select {
	case <-a.settled:
	case <-ctx.Done():
		ask.s.update(func(its *state) { // other questions than forms end with their calls
			if q.Form != nil && its.questions.asked[a.key] == a {
				ask.withdraw(its, a, errMoot, "its answer is no longer needed")
			}
		})
		return "", context.Cause(ctx)
	}
	ask.s.update(func(its *state) {
		delete(its.questions.asked, c.Key)
		input, err = a.input, a.err
	})
	return input, err
}

// AskAhead puts the question before the call's turn has come.
func (ask *asker) AskAhead(c *pipeline.Call, q pipeline.Question) {
	if isOwn(c) {
		return
	}
	ask.s.update(func(its *state) {
		if its.ledger.calls[c.Key].Open && its.questions.asked[c.Key] == nil {
			ask.open(its, ask.ofCall(c, q), q)
		}
	})
}

// ofCall is the subject of a call's own question. A no stops the call, whether its turn has come or
// not; a no to a form is an answer, and what follows from it is the tool's.
func (ask *asker) ofCall(c *pipeline.Call, q pipeline.Question) subject {
	about := subject{key: c.Key, use: &c.Use}
	if q.Form != nil {
		return about
	}
	about.answered = func(_ *state, no *fault.Error) func() {
		if no == nil {
			return nil
		}
		return func() { ask.s.queue.Stop(c.Key, no) }
	}
	about.decided = func(r pipeline.Rights) permission.Decision { return permission.Decide(q.Facts, r.Policy).Decision }
	return about
}

// open records a question; nil: no client can answer.
func (ask *asker) open(its *state, about subject, q pipeline.Question) *asked {
	if !ask.answerable(its) {
		return nil
	}
	its.ledger.append(entry(about.use, pipeline.Asked{Question: q}))
	ask.s.startHooks(hook.Input{Event: hook.Notification, Message: q.Title + " needs your permission.", NotificationType: "permission_prompt"}, "permission_prompt")
	if about.use != nil {
		q.Input, q.Diff = "", "" // they can be large, and the records of the call have them
	}
	a := &asked{subject: about, question: q, settled: make(chan struct{})}
	its.questions.asked[about.key] = a
	return a
}

// askAgain puts the open questions that are about no call once more, under new ids, for a stream
// that was not there when they were put. Those about a call stand among the call's records.
func (ask *asker) askAgain(its *state) {
	for _, a := range its.questions.asked {
		if a.use == nil && !a.done {
			its.ledger.append(entry(nil, pipeline.Withdrawn{QuestionID: a.question.ID, Reason: "it is asked again"}))
			a.question.ID = newID("question-")
			its.ledger.append(entry(nil, pipeline.Asked{Question: a.question}))
		}
	}
}

// withdrawOf takes back all questions among the records of a call.
func (ask *asker) withdrawOf(its *state, use *pipeline.Use, reason string) {
	for _, a := range its.questions.asked {
		if a.use != nil && a.use.Key == use.Key {
			ask.withdraw(its, a, errMoot, reason)
		}
	}
}

// Withdraw takes back the call's question, if there is one.
func (ask *asker) Withdraw(c *pipeline.Call, reason string) {
	ask.s.update(func(its *state) {
		if a := its.questions.asked[c.Key]; a != nil {
			ask.withdraw(its, a, errMoot, reason)
		}
	})
}

// withdraw takes back a question; err is what its call ends with, if it waits.
func (ask *asker) withdraw(its *state, a *asked, err error, reason string) {
	delete(its.questions.asked, a.key)
	a.err = err
	ask.close(its, a, reason)
}

// close marks a question as closed.
func (ask *asker) close(its *state, a *asked, reason string) {
	if a.done {
		return
	}
	a.done = true
	ask.s.daemon.Metrics.Answered(decisionOf(a.err))
	close(a.settled)
	close(its.questions.freed)
	its.questions.freed = make(chan struct{})
	its.ledger.append(entry(a.use, pipeline.Withdrawn{QuestionID: a.question.ID, Reason: reason}))
}

// answered takes an answer from a stream; the refusal explains why it does not count.
func (st *stream) answered(wire *tooldv1.Answer) *apierror.Error {
	able := view(st.session, func(*state) bool { return st.answers && !st.halfClosed })
	if !able {
		return apierror.Preconditionf("cannot_answer", "", "This stream did not say that it answers questions, or has been half-closed. Attach with capabilities.answers.")
	}
	if refused := st.session.asker.mayAnswer(access.AncestryOf(st.pid), wire); refused != nil {
		return refused
	}
	return st.session.asker.resolve(wire)
}

// resolve takes an answer from a client; the refusal explains why it does not count.
func (ask *asker) resolve(wire *tooldv1.Answer) *apierror.Error {
	rules, refused := ask.parseRules(wire.GetRemember())
	if refused != nil {
		return refused
	}
	var a *asked
	var title string
	var then func()
	yes := wire.GetDecision() == tooldv1.Decision_DECISION_ALLOW
	ask.s.update(func(its *state) {
		if its.passing {
			refused = upgrading() // which asks again
			return
		}
		if a, refused = its.questions.openQuestion(wire); refused != nil {
			return
		}
		if refused = a.misplacedSecret(wire); refused != nil {
			return
		}
		if refused = a.refuse(rules); refused != nil {
			return
		}
		title, rules = a.question.Title, ask.anchorRules(rules, a.question.Suggestions)
		then = ask.answer(its, a, wire)
		if len(rules) > 0 {
			ask.s.Later(func(context.Context) { ask.keepRules(rules) }) // it waits for the disk, and cancels share the wire with answers
		}
	})
	if refused != nil {
		return refused
	}
	if then != nil {
		then()
	}
	if !yes && a.use != nil && wire.GetInterruptTurn() {
		ask.s.queue.StopTurn(a.use.Turn, &pipeline.Stop{Outcome: pipeline.Cancelled, Reason: "the user did not allow " + title + " and stopped the turn"}, nil)
	}
	return nil
}

// answer closes a question with an answer. It returns what is to be run after the update; nil:
// nothing is.
func (ask *asker) answer(its *state, a *asked, wire *tooldv1.Answer) (then func()) {
	var no *fault.Error
	if wire.GetDecision() == tooldv1.Decision_DECISION_ALLOW {
		if input := wire.GetUpdatedInputJson(); pipeline.DigestOf(input) != a.question.Digest { // some clients send it always
			a.input = input
		}
		if a.question.Secret != nil {
			a.secret, a.input = []byte(wire.GetSecret()), ""
		}
		ask.close(its, a, "answered: allowed")
	} else {
		no = denied(wire.GetMessage())
		ask.withdraw(its, a, no, "answered: denied")
	}
	if a.answered == nil {
		return nil
	}
	return a.answered(its, no)
}

// refuse returns why the question's answer must not bring one of the rules; nil: it may.
func (about *subject) refuse(rules []keeping) *apierror.Error {
	for _, k := range rules {
		if about.keeps == nil {
			break
		}
		if refused := about.keeps(k); refused != nil {
			return refused
		}
	}
	return nil
}

// denied is the error of a call that an answer denied.
func denied(message string) *fault.Error {
	if message == "" {
		return fault.Deniedf("client_denied", "The user did not allow this call.")
	}
	return fault.Deniedf("client_denied", "The user did not allow this call, and says: %s", convert.Shortened(message, convert.ShownAnswer))
}

// openQuestion finds the question that an answer is for; the refusal explains why there is none, or
// why the answer does not fit it.
func (q *questions) openQuestion(wire *tooldv1.Answer) (a *asked, refused *apierror.Error) {
	for _, question := range q.asked {
		if question.question.ID == wire.GetQuestionId() && !question.done {
			a = question
		}
	}
	switch {
	case a == nil:
		return nil, apierror.Preconditionf("question_closed", "question_id", "The question %q is not open: it was answered or withdrawn, or never asked.", convert.Short(wire.GetQuestionId()))
	case wire.GetInputDigest() != a.question.Digest:
		return nil, apierror.Preconditionf("digest_mismatch", "input_digest", "The answer is not for the input that question %q shows. Answer with the question's own input_digest.", a.question.ID)
	case wire.GetDecision() != tooldv1.Decision_DECISION_ALLOW && wire.GetDecision() != tooldv1.Decision_DECISION_DENY:
		return nil, apierror.Invalidf("invalid_decision", "decision", "An answer decides DECISION_ALLOW or DECISION_DENY.")
	case len(wire.GetUpdatedInputJson()) > maxInput:
		return nil, apierror.Invalidf("too_large", "updated_input_json", "The updated input has %d bytes, but at most %d are taken.", len(wire.GetUpdatedInputJson()), maxInput)
	}
	return a, nil
}

// openUnder returns how many questions are open whose keys begin so.
func (q *questions) openUnder(prefix string) (n int) {
	for key, a := range q.asked {
		if strings.HasPrefix(key, prefix) && !a.done {
			n++
		}
	}
	return n
}

// answerable reports whether a client can answer, or could a while ago and may come back.
func (ask *asker) answerable(its *state) bool {
	for stream := range its.clients.streams {
		if stream.answers && !stream.halfClosed {
			return true
		}
	}
	if ask.s.daemon.sessions.watchers.answer(ask.s.meta.owner()) {
		return true
	}
	return its.clients.main == nil && its.questions.canAsk && ask.s.attachments.keeps(its) && time.Since(its.clients.detached) < ask.s.daemon.limits.DetachedQuestion
}

// reviewQuestions withdraws the open questions when no client can answer them any more.
func (ask *asker) reviewQuestions(its *state) {
	if its.passing || ask.answerable(its) {
		return
	}
	for _, a := range its.questions.asked {
		if !a.done {
			ask.withdraw(its, a, ask.cannotAsk(a.question), "no client is left that can answer")
		}
	}
}

// errMoot is that of questions whose calls do not wait for them.
var errMoot = fault.Deniedf("cannot_ask", "The question was withdrawn.")

// cannotAsk is the error of a call for which no client can answer. It names what to change and
// where, so that following it is enough.
func (ask *asker) cannotAsk(q pipeline.Question) error {
	way := "A user must answer, on a terminal or by a client that attaches with capabilities.answers, or a permission_mode that allows it must be chosen."
	if q.Verdict.Firm() {
		way = "No rule and no permission_mode passes that. A user must answer, on a terminal or by a client that attaches with capabilities.answers."
	}
	if len(q.Suggestions) > 0 {
		rules := "The rule " + strconv.Quote(q.Suggestions[0])
		if len(q.Suggestions) > 1 {
			rules = fmt.Sprintf("The rules %q, together,", q.Suggestions)
		}
		way = rules + " in permissions.allow of the settings would allow the like of it; so would an answer, on a terminal or by a client that attaches with capabilities.answers."
	}
	advice := q.Advice()
	words := strings.TrimSpace(fmt.Sprintf("%s To answer, run `toold attach %s` on a terminal and send the call again.", advice.Words(), ask.s.name))
	return fault.Deniedf("cannot_ask",
		"This call needs an answer, and no attached client can give one. %s %s %s", q.Verdict.Text, way, words).With(pipeline.Refusal{Grounds: pipeline.ReasonsOf(q.Verdict.Reasons), Advice: advice})
}

// rejudge takes back the open questions that rules, settings or mode decide by now. Their calls are
// judged again, by what holds when their turn has come.
func (ask *asker) rejudge(st *policySnapshot) {
	ask.s.update(func(its *state) {
		rights := ask.s.judge.rights(its.basis(), st)
		for _, a := range its.questions.asked {
			if a.done || a.decided == nil || its.passing {
				continue
			}
			switch a.decided(rights) {
			case permission.Allow:
				ask.withdraw(its, a, pipeline.ErrMoot, "it is allowed now")
			case permission.Deny:
				ask.withdraw(its, a, pipeline.ErrMoot, "it is denied now")
			}
		}
	})
}
