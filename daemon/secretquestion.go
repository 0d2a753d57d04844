// Questions about hidden lines, and the way of a secret: from the answer to the one who has asked, in
// memory only.

package daemon

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// maxSecret is the longest secret, in bytes. A terminal takes 4,095 for a line.
const maxSecret = 1024

// AskSecret puts the question and waits for the line. It is withdrawn when ctx ends, and put again when its call
// has ended and the program still waits: a command on a terminal goes on as a background task.
func (ask *asker) AskSecret(ctx context.Context, c *pipeline.Call, q pipeline.Question) ([]byte, error) {
	secret, err := ask.askSecret(ctx, c, &c.Use, q)
	for errors.Is(err, errMoot) && ctx.Err() == nil {
		secret, err = ask.askSecret(ctx, c, nil, q)
	}
	return secret, err
}

// askSecret puts the question once. use is nil if its call has ended. The error is errMoot if it was withdrawn.
func (ask *asker) askSecret(ctx context.Context, c *pipeline.Call, use *pipeline.Use, q pipeline.Question) ([]byte, error) {
	q.ID = newID("secret-")
	about := subject{key: "secret:" + q.ID, keeps: keepsNothing}
	about.answered = func(its *state, _ *fault.Error) func() {
		delete(its.questions.asked, about.key)
		return nil
	}
	var a *asked
	ask.s.update(func(its *state) {
		if its.stopping || ctx.Err() != nil {
			return
		}
		if row := its.ledger.calls[c.Key]; row != nil && row.Open {
			about.use = use
		}
		a = ask.open(its, about, q)
	})
	if a == nil {
		return nil, ask.cannotAsk(q)
	}
	select {
	case <-a.settled:
	case <-ctx.Done():
		ask.s.update(func(its *state) {
			if its.questions.asked[a.key] == a {
				ask.withdraw(its, a, errMoot, "the program no longer waits for it")
			}
		})
		return nil, context.Cause(ctx)
	}
	var secret []byte
	var err error
	ask.s.update(func(*state) {
		secret, err = a.secret, a.err
		a.secret = nil
	})
	return secret, err
}

// keepsNothing refuses every rule of an answer to a question about a hidden line.
func keepsNothing(keeping) *apierror.Error {
	return apierror.Preconditionf("secret_keeps_no_rule", "remember", "An answer with a secret brings no rule. Send it without remember.")
}

// misplacedSecret returns why the secret of an answer does not fit the question, or why one is missing.
func (about *asked) misplacedSecret(wire *tooldv1.Answer) *apierror.Error {
	secret := wire.GetSecret()
	switch {
	case about.question.Secret == nil && secret != "":
		return apierror.Preconditionf("secret_not_asked", "secret", "The question does not ask for a secret. Nothing was done with it. Answer without one.")
	case about.question.Secret == nil || wire.GetDecision() != tooldv1.Decision_DECISION_ALLOW:
		return nil
	case secret == "":
		return apierror.Preconditionf("secret_needed", "secret", "The question asks for a line that is not shown when it is typed. Answer with secret, by a client that does not show it, or with DENY.")
	case len(secret) > maxSecret:
		return apierror.Invalidf("too_large", "secret", "The secret has %d bytes, but at most %d are taken.", len(secret), maxSecret)
	case strings.ContainsFunc(secret, unicode.IsControl):
		return apierror.Invalidf("invalid_secret", "secret", "The secret holds a control character. It must be one line, without its end.")
	}
	return nil
}
