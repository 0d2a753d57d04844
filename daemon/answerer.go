// Who answers: the process, and whether it belongs to what started the session's client. An agent could otherwise allow from
// its own shell what it was not allowed. It goes by descent, so it does not see a process that has left its parents.

package daemon

import (
	"github.com/toold/toold/daemon/convert"
	"go.uber.org/zap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// mayAnswer refuses an answer of a process that belongs to what has started the session's client. Each answer is logged with
// the process that gives it.
func (ask *asker) mayAnswer(pid int, wire *tooldv1.Answer) *apierror.Error {
	by := view(ask.s, func(its *state) access.Owner { return its.clients.owner })
	fields := []zap.Field{
		zap.String("session", ask.s.name), zap.String("question", convert.Short(wire.GetQuestionId())), zap.Stringer("decision", wire.GetDecision()),
		zap.Int("pid", pid), zap.String("program", access.ProgramOf(pid)),
	}
	if by.Holds(pid) {
		ask.s.daemon.Log.Warn("an answer was refused: own_question", append(fields, zap.Int("client", by.Client.PID), zap.Int("parent", by.Parent.PID))...)
		return apierror.Preconditionf("own_question", "", "Process %d was started by process %d, which has also started the client that the question is about. Answer from a terminal of your own, or in that client.", pid, by.Parent.PID)
	}
	ask.s.daemon.Log.Info("an answer", fields...)
	return nil
}
