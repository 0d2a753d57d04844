// Events: what happens to calls and turns, as data.

package pipeline

import (
	"time"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
)

// An Event is something that a client must not lose. The family is closed: the types of this file
// are all there are.
type Event interface{ event() }

// Accepted means that a tool use became a call. It is the first event of each call.
type Accepted struct {
	Batch      int      // within the turn, from 1; 0: the call ends at once
	Concurrent bool     // it may run beside its neighbours
	WaitsFor   []string // the client's ids of calls that it conflicts with; only in the Dependency ordering
	Parent     string   // the client's id of the call that it is nested in; empty: none
	Title      string   // one line; empty: it could not become a call
}

// Asked means that a call waits for an answer.
type Asked struct{ Question Question }

// Withdrawn means that a question is closed without an answer. Reason is one sentence without a
// full stop.
type Withdrawn struct{ QuestionID, Reason string }

// Started means that a call begins to act. A call that never acts has no such event.
type Started struct {
	Tier    sandbox.Tier       // of its processes; empty: it starts none
	Verdict permission.Verdict // Ask: the user was asked and said yes
	Loads   bool               // it has passed the machine's gate
}

// Ended is the result of a call, and its last event: nothing follows it for that call.
type Ended struct {
	Outcome    Outcome
	Content    []tools.Block // text is valid UTF-8
	Fault      *fault.Error  // nil for OK
	Structured any           // a struct that marshals to a JSON object; nil: none
	Spill      *tools.Spill  // what the inline text leaves out; nil: nothing
	Usage      Usage
	Changes    tools.Changes // applied to the session when the event is recorded
	Confined   Confined
	Stack      []byte // of a tool that panicked, for the daemon's log
}

// TurnEnded means that every call of a turn has its result. Turns end in their order.
type TurnEnded struct {
	Calls, Batches int
	Outcomes       map[Outcome]int // calls by outcome
	Wall, Work     time.Duration   // from its beginning to its last result; of all calls together
	Interrupted    bool            // by the end of the daemon
}

// Noticed is something that clients should be notified of.
type Noticed struct {
	Code, Message string
	CallID        string // the client's id of the call that it concerns; empty: none
	Details       any    // a struct that marshals to a JSON object; nil: none
}

// Changed means that the session's state has changed. Only what has changed is set.
type Changed struct {
	Dir                  string   // the new working directory
	Exported, Unexported []string // names of variables
	Todos                []tools.Todo
	TodosReplaced        bool // Todos is the new list, which may be empty
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
	Waited, Asked, Ran time.Duration // for its turn; for answers; acting
	Hooked             time.Duration // for hooks
	OutputBytes        int64
	PeakMemory         int64 // bytes, of its largest process; 0: not known
	// Periods are what these times consist of, in the order of their ends. That in which the call acted lasts from its
	// beginning to its end, also where it asked meanwhile.
	Periods []Period
}

// A Period is a part of a call's life.
type Period struct {
	Phase Phase
	Began time.Duration // since the call was accepted
	Took  time.Duration
}

// A Phase is what a call does in a period.
type Phase uint8

// The phases.
const (
	Waiting Phase = iota // for its turn, or until it is alone
	Asking               // waiting for an answer
	Hooking              // waiting for hooks
	Running              // acting
)

// String returns the name of the phase, as metrics and spans have it.
func (p Phase) String() string { return [...]string{"wait", "ask", "hooks", "run"}[p] }

// spent adds a period that ends now, of a call that was accepted then.
func (u *Usage) spent(phase Phase, accepted, began time.Time) {
	took := time.Since(began)
	u.Periods = append(u.Periods, Period{phase, began.Sub(accepted), took})
	switch phase {
	case Waiting:
		u.Waited += took
	case Asking:
		u.Asked += took
	case Hooking:
		u.Hooked += took
	}
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
	Suggestions []string // allow rules that would permit calls like this one
	Shown       string   // digest of Diff
	Touched     string   // digest of the files that the call would touch, and of where commands would run
	// Form is a question of the tool itself; nil: the question is whether the call may run. The
	// answer's input then matches the form, and a no is an answer too.
	Form *tools.Form
	// Host is what a process of the running call is about to connect to; nil: the question is about
	// something else. Form is set then.
	Host *sandbox.Host
	// Secret is the program that waits for a hidden line; nil: the question is about something else. Form
	// is set then. The line is never part of a Question.
	Secret *sandbox.Prompt
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
