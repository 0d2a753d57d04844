package pipeline

// What happens to calls and turns, as data.

import (
	"time"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/sandbox"
)

// An Event is something that a client must not lose. The family is closed: these are all there are.
type Event interface{ event() }

// Accepted: a tool use became a call.
type Accepted struct {
	Batch      int // from 1; 0: it ends at once
	Concurrent bool
	Parent     string
	Title      string // one line; empty: it could not become a call
}

// Asked: a call needs an answer.
type Asked struct{ Question Question }

// Withdrawn: a question no longer matters.
type Withdrawn struct{ QuestionID, Reason string }

// Started: a call begins to act. Tier is empty when it starts no process.
type Started struct {
	Tier    sandbox.Tier
	Verdict permission.Verdict // Ask: the user was asked and said yes
}

// Ended: a call has its result.
type Ended struct {
	Outcome    Outcome
	Content    []tools.Block
	Fault      *fault.Error // nil for OK
	Structured any
	Spill      *tools.Spill
	Usage      Usage
	Changes    tools.Changes
	Confined   Confined
	Stack      []byte // of a tool that panicked, for the daemon's log
}

// TurnEnded: every call of a turn has its result.
type TurnEnded struct {
	Calls, Batches int
	Outcomes       map[Outcome]int
	Wall, Work     time.Duration
}

// Noticed is something that clients should be notified of.
type Noticed struct {
	Code, Message string
	CallID        string // the client's id of the call that it concerns; empty: none
	Details       any    // a struct that marshals to a JSON object; nil: none
}

// Changed: the session's state is another one. Only what has changed is set.
type Changed struct {
	Dir                  string
	Exported, Unexported []string // names
	Todos                []tools.Todo
	TodosReplaced        bool
	Mode                 *permission.Mode
	Activated            []string // deferred tools
	Closed               bool
	Peer                 *Peer
}

// A Peer is the client of a session, as far as it is known.
type Peer struct {
	UID             int
	Principal       string
	Client, Version string
}

func (Accepted) event()  {}
func (Asked) event()     {}
func (Withdrawn) event() {}
func (Started) event()   {}
func (Ended) event()     {}
func (TurnEnded) event() {}
func (Noticed) event()   {}
func (Changed) event()   {}

// Usage is what a call cost.
type Usage struct {
	Waited, Asked, Ran time.Duration
	OutputBytes        int64
	PeakMemory         int64
	Tier               sandbox.Tier
}

// A Question is a question about whether a call may run.
type Question struct {
	ID          string // unique in the session
	Tool        string
	Title       string // one line
	Input       string // JSON, whole
	Digest      string // of the input; an answer must repeat it
	Diff        string
	Facts       *permission.Facts // what the verdict was derived from; read only
	Verdict     permission.Verdict
	Suggestions []string // allow rules
	Shown       string   // digest of Diff
	Touched     string   // digest of the files that the call would touch, and of where commands would run
	// Form is a question of the tool itself; nil: the question is whether the call may run. The
	// answer's input then matches the form, and a no is an answer too.
	Form   *tools.Form
	edited bool // the answer brought this input
	rights *Rights
}

// Same reports that both questions ask for the same permission: to do this to these files, for this reason.
func (q Question) Same(other Question) bool {
	return q.Digest == other.Digest && q.Shown == other.Shown && q.Touched == other.Touched && q.Verdict.Text == other.Verdict.Text && q.Verdict.Level == other.Verdict.Level
}

// covers reports whether a yes to this question is one to other: it asks for the same, or the input came with the answer
// and does nothing that has to be asked about by itself.
func (q *Question) covers(other Question) bool {
	return q.edited && q.Digest == other.Digest && !other.Verdict.Firm() || q.Same(other)
}
