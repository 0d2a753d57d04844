// Questions about hosts, asked while a process of a call waits to connect. What is asked, and what
// an answer opens to the call, is the pipeline's.

package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
)

// maxHostQuestions is how many questions about hosts a session has open: as many as a person can
// keep track of. Further hosts wait until one is closed.
const maxHostQuestions = 3

// hostQuestions begins the keys of questions about hosts; keys of calls begin otherwise.
const hostQuestions = "host:"

// hostsOf begins the keys of the questions about hosts for one call.
func hostsOf(call string) string { return hostQuestions + call + ":" }

// HostLimits returns how long connections may wait for answers.
func (ask *asker) HostLimits() pipeline.HostLimits {
	l := ask.s.daemon.limits
	return pipeline.HostLimits{Connection: l.HeldConnection, Call: l.HeldCall}
}

// AskHost puts the question, unless the call already asks about the host, and waits for a yes. The
// question stays open when ctx ends, until the call and its processes have ended: a late yes counts
// for the next attempt. The error is pipeline.ErrMoot if there is an answer by now.
func (ask *asker) AskHost(ctx context.Context, c *pipeline.Call, q pipeline.Question, answers pipeline.HostAnswers) error {
	for ctx.Err() == nil {
		var a *asked
		var next <-chan struct{} // when it is to be looked again
		var known bool
		ask.s.update(func(its *state) {
			if ctx.Err() != nil { // what asked has ended, and its questions were withdrawn
				next = ctx.Done()
				return
			}
			if known = answers.Answered(q.Host.Name) != ""; known { // another connection's question was answered a moment ago
				return
			}
			if a = ask.openHost(its, c, q, answers); a != nil {
				next = a.settled
			} else if ask.answerable(its) && its.questions.openUnder(hostQuestions) >= maxHostQuestions {
				next = its.questions.freed
			}
		})
		if known {
			return pipeline.ErrMoot
		}
		if next == nil {
			return ask.cannotAsk(q)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if a == nil {
			continue
		}
		if err := view(ask.s, func(*state) error { return a.err }); !errors.Is(err, errMoot) { // else its call has ended, and its process has not
			return err
		}
	}
	return context.Cause(ctx)
}

// openHost returns the open question about the host for the call, which it puts if there is none;
// nil: it cannot be put now.
func (ask *asker) openHost(its *state, c *pipeline.Call, q pipeline.Question, answers pipeline.HostAnswers) *asked {
	about := subject{key: hostsOf(c.Key) + q.Host.Name}
	if a := its.questions.asked[about.key]; a != nil && !a.done {
		return a
	}
	if its.stopping || its.questions.openUnder(hostQuestions) >= maxHostQuestions {
		return nil
	}
	if row := its.ledger.calls[c.Key]; row != nil && row.Open {
		about.use = &c.Use
	}
	about.answered = func(its *state, no *fault.Error) func() {
		delete(its.questions.asked, about.key)
		if no != nil {
			answers.Note(q.Host.Name, sandbox.NotPermitted)
		} else {
			answers.Note(q.Host.Name, sandbox.Permitted)
		}
		return nil
	}
	about.decided = func(r pipeline.Rights) permission.Decision { return r.DecideConnection(*q.Host).Decision }
	about.keeps = keepsHost
	q.ID = newID("host-")
	return ask.open(its, about, q)
}

// keepsHost refuses to open hosts by a file of the workspace, which any program that works there may write.
func keepsHost(k keeping) *apierror.Error {
	if k.List != permission.AllowList || !slices.Contains([]tooldv1.Scope{tooldv1.Scope_SCOPE_LOCAL, tooldv1.Scope_SCOPE_PROJECT}, k.scope) {
		return nil
	}
	return apierror.Preconditionf("workspace_opens_no_host", "remember.scope",
		"The rule %s would open a host to commands by a file of the workspace. Remember it for the session or the user.", k.Rule)
}

// withdrawHosts takes back the questions about hosts of a call of which nothing runs any more.
func (ask *asker) withdrawHosts(its *state, call string) {
	for key, a := range its.questions.asked {
		if strings.HasPrefix(key, hostsOf(call)) {
			ask.withdraw(its, a, errMoot, "the background task that asked has ended")
		}
	}
}
