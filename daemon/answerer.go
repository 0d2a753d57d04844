package daemon

// Who answers: the process, and whether it belongs to what started the session's client. An agent could otherwise allow from
// its own shell what it was not allowed. It goes by descent, so it does not see a process that has left its parents.

import (
	"context"
	"os"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A process is one for as long as it lives: numbers are used again.
type process struct {
	pid   int // 0: not known, as of a client that comes over TCP
	start uint64
}

// An owner is the main client of a session and what has started it.
type owner struct{ client, parent process }

// pidOf returns the process that sent a request; 0: it is not known.
func pidOf(ctx context.Context) int {
	if from, ok := grpcpeer.FromContext(ctx); ok {
		if who, ok := from.AuthInfo.(peer); ok {
			return who.pid
		}
	}
	return 0
}

// ownerOf returns the client that sent a request, with its parent. A parent that adopts orphans, or that has started the daemon
// itself, is not one that counts: others descend from it too.
func ownerOf(ctx context.Context) (o owner) {
	pid := pidOf(ctx)
	if pid == 0 {
		return o
	}
	client, above, err := processOf(pid)
	if err != nil {
		return o
	}
	o.client = client
	if parent, _, err := processOf(above); err == nil && above > 1 && above != os.Getppid() {
		o.parent = parent
	}
	return o
}

// holds reports whether a process descends from the client's parent and is not the client itself.
func (o owner) holds(pid int) bool {
	if pid == 0 || o.parent.pid == 0 {
		return false
	}
	self, above, err := processOf(pid)
	if err != nil || self == o.client {
		return false
	}
	for above > 1 {
		ancestor, next, err := processOf(above)
		if err != nil {
			return false
		}
		if ancestor == o.parent {
			return true
		}
		above = next
	}
	return false
}

// mayAnswer refuses an answer of a process that belongs to what has started the session's client. Each answer is logged with
// the process that gives it.
func (ask *asker) mayAnswer(pid int, wire *tooldv1.Answer) *refusal {
	by := view(ask.s, func(its *state) owner { return its.clients.owner })
	fields := []zap.Field{
		zap.String("session", ask.s.name), zap.String("question", short(wire.GetQuestionId())), zap.Stringer("decision", wire.GetDecision()),
		zap.Int("pid", pid), zap.String("program", programOf(pid)),
	}
	if by.holds(pid) {
		ask.s.daemon.Log.Warn("an answer was refused: own_question", append(fields, zap.Int("client", by.client.pid), zap.Int("parent", by.parent.pid))...)
		return refuse(codes.FailedPrecondition, "own_question",
			"Process %d was started by process %d, which has also started the client that the question is about. Answer from a terminal of your own, or in that client.", pid, by.parent.pid)
	}
	ask.s.daemon.Log.Info("an answer", fields...)
	return nil
}
