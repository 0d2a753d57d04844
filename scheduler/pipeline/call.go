// Package pipeline is a call's way from the moment it is accepted to its one result: check, verdict, question, start,
// act, cap, record, in one straight function (run.go). It does not know in which order calls run, where records go,
// or what a client is.
package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/workspace"
)

// A Policy says whose failure stops the siblings.
type Policy uint8

// The policies.
const (
	AbortOnBash         Policy = iota // a failed call of a tool that says so: Bash
	AbortOnMutatingBash               // the same, unless the call was read-only
	AbortOnAny                        // any executed call
	AbortOnNone                       // nothing
)

// A Session is what a call needs of the session that it belongs to. Each part has one subject and may have an owner of its own.
// All of them are safe for concurrent use.
type Session struct {
	Judge
	Turns
	Asker
	Recorder
	Editors
	Observer
	Background
}

// A Judge says what a call is judged by, and what it would find. It changes nothing, so that Explain needs nothing else.
type Judge interface {
	// Rights returns what calls are judged by now.
	Rights(*Call) Rights
	// Peek returns the session's state as it is now, before the call's turn has come. Files is left to the call.
	Peek(*Call) *tools.Env
}

// Turns are the turns that calls belong to, and when a call of one may begin.
type Turns interface {
	// Policy returns the sibling abort policy of the call's turn.
	Policy(*Call) Policy
	// StopTurn stops the other calls of the call's turn.
	StopTurn(c *Call, reason string)
	// Pace waits until the call may begin, where settings limit its rate. The error is a *fault.Error when it may not begin
	// at all, else the cause of ctx.
	Pace(context.Context, *Call) error
}

// An Asker asks people.
type Asker interface {
	// Ask puts the question, unless the same is already put, and waits until it is answered with yes. input is what is
	// to be run instead, as JSON; empty: what was asked about. The error is a *fault.Error when nobody can answer, else
	// the cause of ctx; whoever says no stops the call.
	Ask(context.Context, *Call, Question) (input string, err error)
	// AskAhead puts the question and returns. It does nothing when nobody can answer.
	AskAhead(*Call, Question)
	// Withdraw takes back the call's open question, if there is one.
	Withdraw(c *Call, reason string)
}

// A Recorder records the life of a call. Per call, Begin, Start and End are called in this order, or Skipped alone.
type Recorder interface {
	// Begin records that the call's turn has come, and returns the session's state as it is now. Files is left to the call.
	Begin(*Call) *tools.Env
	// Start records that the call begins to act: durably, before it returns, unless the call is read-only. After an error
	// the call does not act.
	Start(*Call, Started) error
	// End records the call's one result and applies what it leaves behind, before it returns. seen is what it has
	// seen of files, by real path.
	End(c *Call, ended Ended, seen map[string]workspace.State)
	// Skipped does what End does for a call whose turn never came, after it has returned.
	Skipped(*Call, Ended)
	// Notice records something that clients should know about the call.
	Notice(*Call, Noticed)
}

// Editors hold texts of files that are not saved.
type Editors interface {
	// Settle has editors save what a process that the call is about to start would not see, for as long as they are given.
	// note says, as a sentence, what the process does not see all the same.
	SaveBuffers(context.Context, *Call) (note string)
	// Settled notes that the process has ended.
	BuffersSaved(*Call)
}

// An Observer looks at files that a call changes.
type Observer interface {
	// Watch is called before the call changes files. The function that it returns is called when they are changed, and
	// returns what should be known of them by then, as text; nil: there is nothing to wait for.
	Watch(context.Context, *Call) func(context.Context) string
}

// Background runs what no call waits for.
type Background interface {
	// Later runs f soon, on a goroutine that the session waits for before it ends. Its context is the session's.
	Later(f func(context.Context))
}

// Rights is what a session's calls are judged by, at one moment.
type Rights struct {
	permission.Policy
	Anchors   permission.Anchors
	Places    *workspace.Workspace // where calls may find files
	ReadState *workspace.ReadState // what they have seen of them
	Hooks     *hook.Set
	Runner    hook.Runner // runs them
	// UserFile is the user's settings file. Modes are the permission modes that a change of it could choose for the session.
	UserFile string
	Modes    []permission.Mode
	// Confining is how the processes of calls are confined.
	Confining Confining
	Common    hook.Input // what each of them is told
}

// ErrMoot says that a question was taken back because what it depends on has changed.
var ErrMoot = errors.New("what the question depends on has changed")

// A Use is a tool use that has found its place: in a session, a turn, and among the turn's calls.
type Use struct {
	ID      string // the client's
	Key     string // unique in the session, safe as a file name
	Turn    uint64
	TurnID  string // the client's name of the turn
	Index   int    // position in the turn
	Name    string
	Input   json.RawMessage // for New; a call does not keep it
	Timeout time.Duration   // what the client asks for; 0: nothing
}

// DigestOf is the digest of an input that a question shows and its answer repeats: SHA-256 of the text, in hex.
func DigestOf(input string) string {
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:])
}

// A Call is one accepted, valid tool use. It is a scheduler's task.
type Call struct {
	Use
	Tool       tools.Tool
	session    Session
	accepted   time.Time
	concurrent bool
	started    atomic.Bool // its act has begun
	ahead      lookout

	mu            sync.Mutex // held while the action is used
	parsed        parsed
	begun         bool                                // its turn has come
	questions     int                                 // that were made
	rights        Rights                              // as they were at the latest check
	opinions      []permission.Opinion                // of hooks
	facts         *permission.Facts                   // as they were at the latest check
	files         *workspace.View                     // what it may reach, as of the latest check; nil before the first
	environ       []string                            // of the session, as of the latest check
	reads         reader                              // what its commands need beside, as of the latest check
	preview       tools.Preview                       // of the latest check
	verdict       permission.Verdict                  // with which it was permitted
	overlooked    bool                                // not all that rules keep from being read was found
	git           gitChange                           // what its git commands change, as of the latest check
	overlookedGit bool                                // not all git directories were found
	context       []string                            // what hooks want the model to know
	asked         atomic.Pointer[[]permission.Reason] // what somebody was asked about; nil: nobody was
}

// A lookout is a look at a call before its turn, which must not keep the turn waiting.
type lookout struct {
	mu     sync.Mutex
	over   bool // the call's turn has come
	cancel context.CancelFunc
}

// begin returns the context of the look.
func (l *lookout) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, l.cancel = context.WithCancel(ctx)
	if l.over {
		l.cancel()
	}
	return ctx, l.cancel
}

// stop ends it, for good.
func (l *lookout) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over = true; l.cancel != nil {
		l.cancel()
	}
}

// parsed is what an input comes to. An answer may bring another input.
type parsed struct {
	input    string
	declared tools.Action
	action   tools.Action // declared, as it is with the session's state at the latest check
	effects  tools.Effects
	limit    time.Duration // 0: none
	note     string        // what was done to the use on its way in; empty: nothing
}

// New makes a call of session that runs tool, or says how the use ends when the tool refuses its input.
func New(use Use, tool tools.Tool, session Session) (call *Call, refused *Ended) {
	c := &Call{Use: use, Tool: tool, session: session, accepted: time.Now()}
	defer func() {
		if broken := recover(); broken != nil {
			ended := c.panicked(broken)
			call, refused = nil, &ended
		}
	}()
	var err error
	if c.parsed, err = c.parse(use.Input); err != nil {
		ended := Refuse(err)
		return nil, &ended
	}
	c.concurrent = c.parsed.effects.Concurrent()
	c.Input = nil // what is parsed holds it
	return c, nil
}

func (c *Call) parse(input json.RawMessage) (parsed, error) {
	action, err := c.Tool.Parse(input)
	if err != nil {
		return parsed{}, err
	}
	p := parsed{input: string(input), declared: action, action: action, effects: action.Effects()}
	p.limit, p.note = limit(c.Tool.Spec(), c.Timeout, action.TimeLimit())
	return p, nil
}

// situate looks at the action as it is with the session's state in env.
func (p *parsed) situate(env *tools.Env) {
	if s, ok := p.declared.(tools.Situated); ok {
		p.action = s.At(env)
		p.effects = p.action.Effects()
	}
}

// limit is the time limit of a call: what the client asks for, else what the input asks for, else the tool's own; at
// most the tool's most. The note says what was cut off.
func limit(spec tools.Spec, client, input time.Duration) (limit time.Duration, note string) {
	most := max(spec.TimeLimit, spec.MaxTime)
	wanted := spec.TimeLimit
	for _, asked := range []time.Duration{input, client} {
		if asked > 0 {
			wanted = asked
		}
	}
	if most > 0 && wanted > most {
		return most, fmt.Sprintf("The time limit of %s was cut to %s, the most that %s may have.", wanted, most, spec.Name)
	}
	return wanted, ""
}

// ID is unique among the session's calls.
func (c *Call) ID() string { return c.Key }

// Turn is the number of the call's turn.
func (c *Call) Turn() uint64 { return c.Use.Turn }

// Concurrent reports that the call may run beside others. It holds for the call's whole life.
func (c *Call) Concurrent() bool { return c.concurrent }

// Interruptible reports that a user's interrupt stops the call: its tool says so, or its act has not begun.
func (c *Call) Interruptible() bool {
	return c.Tool.Spec().OnInterrupt == tools.Stop || !c.started.Load()
}

// ReadOnly reports that the call changes nothing. For the session's methods, while they are called with c.
func (c *Call) ReadOnly() bool {
	return c.parsed.effects.ReadOnly() && (c.facts == nil || !c.facts.Opaque)
}

// Files is what the call may reach and change. For the session's methods Start and End, while they are called with c; nil:
// it was never looked at.
func (c *Call) Files() *workspace.View { return c.files }

// Hosts are the hosts that the call says it contacts, in lower case. For the session's method Pace.
func (c *Call) Hosts() (hosts []string) {
	for _, host := range c.facts.Hosts {
		hosts = append(hosts, strings.ToLower(host))
	}
	return hosts
}

// Written are the real paths of the files that the call says it writes, one by one. For the session's method Watch.
func (c *Call) Written() (paths []string) {
	for _, a := range c.facts.Accesses {
		if a.Write && !a.Tree && !a.Dir {
			paths = append(paths, a.OnDisk())
		}
	}
	return paths
}

// Title names the call for people in one line. For the session's methods, while they are called with c.
func (c *Call) Title() string { return label(c.Name, about(c.parsed.input)) }

// about is the part of an input that says what the call is about: the first of the fields that tools use for it.
func about(input string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return ""
	}
	for _, name := range []string{"command", "file_path", "notebook_path", "pattern", "path", "url", "query", "bash_id", "shell_id"} {
		var text string
		if json.Unmarshal(fields[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
