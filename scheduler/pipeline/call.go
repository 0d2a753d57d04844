// Package pipeline carries one call from its turn to its one result: check, verdict, question,
// start, act, cap, record, in one straight function (run.go). It does not know in which order calls
// run, where records go, or what a client is.
package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/scheduler/gate"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// A Policy is whose failure stops the siblings of a call.
type Policy uint8

// The policies.
const (
	AbortOnBash         Policy = iota // a failed call of a tool with AbortSiblings: Bash
	AbortOnMutatingBash               // the same, unless the call was read-only
	AbortOnAny                        // any executed call
	AbortOnNone                       // nothing
)

// A Session is what a call needs of its session. Each part has one subject and may have its own
// owner. All of them are safe for concurrent use.
type Session struct {
	Judge
	Turns
	Asker
	Recorder
	Editors
	Observer
	Background
}

// A Judge has the rules and the state by which a call is judged. It changes nothing, so Explain
// needs nothing else.
type Judge interface {
	// Rights returns the present rules for the call. Its result is a snapshot and does not change.
	Rights(*Call) Rights
	// Peek returns the session's present state, before the call's turn has come, and the rules of
	// the same moment. It leaves Files unset.
	Peek(*Call) (*tools.Env, Rights)
}

// Turns are the turns that calls belong to, and when a call of one may begin.
type Turns interface {
	// Policy returns the sibling abort policy of the call's turn.
	Policy(*Call) Policy
	// StopTurn stops the other calls of the call's turn. reason is one sentence without a full
	// stop.
	StopTurn(c *Call, reason string)
	// Pace waits until the rate limits of the settings let the call begin. The error is a
	// *fault.Error if it may not begin at all, and otherwise the cause of ctx.
	Pace(context.Context, *Call) error
	// Enter has the call enter the machine's gate, or queue there. The key is equal for calls which are
	// expected to take the same of the machine. nil: it is inside already, as a part of another call.
	Enter(c *Call, key string) *gate.Pass
}

// An Asker asks clients questions.
type Asker interface {
	// Ask asks the question, unless the same one is open already, and waits for a yes. input is the
	// JSON to run instead of the input that was asked about; empty: that input. The error is a
	// *fault.Error if no client can answer, and otherwise the cause of ctx; a no stops the call.
	Ask(context.Context, *Call, Question) (input string, err error)
	// AskAhead asks the question and returns at once. It does nothing if no client can answer.
	AskAhead(*Call, Question)
	// Withdraw withdraws the call's open question, if there is one. reason is shown to clients.
	Withdraw(c *Call, reason string)
	// AskHost asks the question, which is about a host, unless one about the same host is open for
	// the call, and waits for a yes. The call may have ended, with processes that go on. The
	// answer is noted in answers, also when it comes after ctx has ended, whose methods must not
	// block. The error is ErrMoot if rules, settings, mode or an answer decide by now, a
	// *fault.Error if no client can answer or the answer is a no, and otherwise the cause of ctx.
	AskHost(ctx context.Context, c *Call, q Question, answers HostAnswers) error
	// AskSecret asks the question, which is about a hidden line, and waits for the line. The call may
	// have ended, with processes that go on. The error is a *fault.Error if no client can answer or the
	// answer is a no, and otherwise the cause of ctx.
	AskSecret(ctx context.Context, c *Call, q Question) (secret []byte, err error)
	// HostLimits returns how long connections may wait for answers.
	HostLimits() HostLimits
}

// A Recorder records the life of a call. For each call, either Begin, Start and End are called in
// this order, or only Skipped.
type Recorder interface {
	// Begin records that the call's turn has come, and returns the session's present state, and the
	// rules of the same moment. It leaves Files unset.
	Begin(*Call) (*tools.Env, Rights)
	// Recorded waits until it is recorded that the call was accepted. It comes before anything that
	// others can notice, other than the records themselves. After an error nothing may be noticed.
	Recorded(*Call) error
	// Start records that the call begins to act. The record is durable before Start returns, unless
	// the call is read-only. After an error the call must not act.
	Start(*Call, Started) error
	// Before returns what is called before a process of the call changes a file, as Box.Before is;
	// nil: nothing is. It is called once, after Start.
	Before(*Call) func(sandbox.Alteration)
	// End records the call's one result and applies its changes to the session, before it returns.
	// seen is the read state that the call has added, by real path.
	End(c *Call, ended Ended, seen map[string]workspace.State)
	// Skipped does what End does for a call whose turn never came, after it has returned.
	Skipped(*Call, Ended)
	// PassedOn notes, instead of End and of Skipped, that the call has not started and goes on in another program. It must
	// not block.
	PassedOn(*Call)
	// Notice records a message to clients about the call.
	Notice(*Call, Noticed)
	// Remark records a message to clients that no call's records hold. It may be called at any time.
	Remark(Noticed)
}

// Editors hold texts of files that are not saved.
type Editors interface {
	// SaveBuffers asks editors to save the texts that a process of the call would not see, and
	// waits until they have, or until a limit. note is a sentence about what the process still does
	// not see; empty: nothing. BuffersSaved must be called afterwards.
	SaveBuffers(context.Context, *Call) (note string)
	// BuffersSaved records that the process has ended.
	BuffersSaved(*Call)
}

// An Observer examines files that a call changes.
type Observer interface {
	// Watch is called before the call changes files. The returned function is called after the
	// change, and returns a text about the changed files for the model; a nil function means that
	// there is nothing to wait for.
	Watch(context.Context, *Call) func(context.Context) string
}

// Background runs work that no call waits for.
type Background interface {
	// Later runs f soon, on a goroutine that the session waits for before it ends. The context is
	// the session's.
	Later(f func(context.Context))
}

// Rights is what a session's calls are judged by, at one moment. It must not be modified.
type Rights struct {
	permission.Policy
	Anchors   permission.Anchors
	Places    *workspace.Workspace // where calls may access files
	ReadState *workspace.ReadState // what the session has read of them
	Hooks     *hook.Set
	Runner    hook.Runner // runs the hooks
	// Diagnosed reports whether a change of the file is followed by diagnostics of a language
	// server; nil: none is.
	Diagnosed func(real string) bool
	// UserFile is the user's settings file, or [SessionSettings]. Modes are the permission modes that a change of it
	// could set for the session.
	UserFile string
	Modes    []permission.Mode
	// Confining is how the processes of calls are confined.
	Confining Confining
	Common    hook.Input // the fields that all events share
	fresh     bool       // the call has just got them, and was not judged by them
}

// isNo reports whether the error of a question is a client's no.
func isNo(err error) (no *fault.Error, is bool) {
	no, is = errors.AsType[*fault.Error](err)
	return no, is && no.Code == "client_denied"
}

// ErrPassedOn is the cause that ends calls in this program which have not started: another one goes on with them.
var ErrPassedOn = errors.New("another program goes on with the call")

// ErrMoot means that a question was withdrawn because what it depends on has changed.
var ErrMoot = errors.New("what the question depends on has changed")

// A Use is a tool use with its position: in a session, a turn, and among the turn's calls.
type Use struct {
	ID      string // the client's
	Key     string // unique in the session, safe as a file name
	Turn    uint64
	TurnID  string // the client's name for the turn
	Parent  string // the client's id of the call that it is nested in; empty: none
	Index   int    // position in the turn
	Name    string
	Input   json.RawMessage // for New; a call does not keep it
	Timeout time.Duration   // requested by the client; 0: none
}

// DigestOf returns the digest of an input that a question shows and its answer repeats: SHA-256 of
// the text, in hexadecimal.
func DigestOf(input string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(input))) }

// A Call is one accepted, valid tool use. It is a scheduler's task.
type Call struct {
	Use
	Tool tools.Tool
	position
	session  Session
	accepted time.Time
	started  atomic.Bool // its action has begun
	ahead    lookout

	mu     sync.Mutex // held while the action is used
	parsed parsed
	order  order // that it runs in, since its turn came
	usage  struct {
		Usage
		room [2]Period // for the first of the periods
	}
	questions     int                  // that were made
	rights        Rights               // as they were at the latest check
	opinions      []permission.Opinion // of hooks
	facts         *permission.Facts    // as they were at the latest check
	files         *workspace.View      // what it may reach, since the latest check; nil before the first
	environ       []string             // of the session, since the latest check
	reads         reader               // what its commands need beside, as of the latest check
	checked       checked              // as of the latest check
	verdict       permission.Verdict   // the verdict that permitted the call
	overlooked    bool                 // not everything that rules deny reading was found
	git           gitChange            // what its git commands change, as of the latest check
	overlookedGit bool                 // not all git directories were found
	context       []string             // additional text of hooks for the model
	asked         atomic.Value         // []permission.Reason: what the user was asked about; nil: nothing
}

// checked is what a check has come to.
type checked struct {
	preview tools.Preview
	verdict permission.Verdict
}

// A lookout is an early judgement of a call before its turn. It must not delay the turn.
type lookout struct {
	mu     sync.Mutex
	over   bool // the call's turn has come
	cancel context.CancelFunc
}

// begin returns the context of the judgement.
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

// Waits reports whether the turn of c has not come.
func Waits(c *Call) bool {
	c.ahead.mu.Lock()
	defer c.ahead.mu.Unlock()
	return !c.ahead.over
}

// parsed is a parsed input. An answer may replace the input.
type parsed struct {
	input    string
	sent     string // the input that was accepted, if this one has taken its place; empty: it has not
	declared tools.Action
	action   tools.Action // its state at the latest check
	effects  tools.Effects
	limit    time.Duration // 0: none
	note     string        // how the use was changed on arrival; empty: unchanged
	title    string        // see Title
}

// New returns the call of a use of tool in session, or its refusal if the tool rejects its input.
func New(use Use, tool tools.Tool, session Session) (call *Call, refused *Ended) {
	c := &Call{Use: use, Tool: tool, session: session, accepted: time.Now()}
	c.usage.Periods = c.usage.room[:0]
	defer func() {
		if broken := recover(); broken != nil {
			call, refused = nil, new(c.panicked(broken))
		}
	}()
	var err error
	if c.parsed, err = c.parse(use.Input); err != nil {
		return nil, new(Refuse(err))
	}
	c.declared = c.parsed.effects
	c.concurrent = c.declared.Concurrent()
	c.Input = nil // parsed has it
	return c, nil
}

func (c *Call) parse(input json.RawMessage) (parsed, error) {
	action, err := c.Tool.Parse(input)
	if err != nil {
		return parsed{}, err
	}
	p := parsed{input: string(input), declared: action, action: action, effects: action.Effects()}
	p.title = label(c.Name, p.about())
	p.limit, p.note = limit(c.Tool.Spec(), c.Timeout, action.TimeLimit())
	return p, nil
}

// situate updates the action with the session's state in env.
func (p *parsed) situate(env *tools.Env) {
	if s, ok := p.declared.(tools.Situated); ok {
		p.action = s.At(env)
		p.effects = p.action.Effects()
	}
}

// limit returns the time limit of a call: the client's, otherwise the input's, otherwise the tool's
// own, but at most the tool's maximum. note reports a cut.
func limit(spec tools.Spec, client, input time.Duration) (limit time.Duration, note string) {
	most := max(spec.TimeLimit, spec.MaxTime)
	wanted := cmp.Or(max(client, 0), max(input, 0), spec.TimeLimit)
	if most > 0 && wanted > most {
		return most, fmt.Sprintf("The time limit of %s was cut to %s, the most that %s may have.", wanted, most, spec.Name)
	}
	return wanted, ""
}

// ID returns an id that is unique among the session's calls.
func (c *Call) ID() string { return c.Key }

// Turn returns the number of the call's turn.
func (c *Call) Turn() uint64 { return c.Use.Turn }

// Interruptible reports whether a user's interrupt stops the call: because of its tool, or because
// it has not begun to act.
func (c *Call) Interruptible() bool {
	return c.Tool.Spec().OnInterrupt == tools.Stop || !c.started.Load()
}

// ReadOnly reports whether the call changes nothing. Only the session's methods may call it, while
// they are called with c.
func (c *Call) ReadOnly() bool {
	return c.parsed.effects.ReadOnly() && (c.facts == nil || !c.facts.Opaque)
}

// Passive reports whether the call only looks: one of a built-in tool that changes nothing, here or
// elsewhere. Only the session's methods may call it, while they are called with c.
func (c *Call) Passive() bool {
	return c.Tool.Spec().Origin == tools.BuiltIn && c.parsed.effects.Concurrent() && c.ReadOnly()
}

// Files returns what the call may reach and change. Only the session's methods Start and End may
// call it, while they are called with c. nil: the call was never checked.
func (c *Call) Files() *workspace.View { return c.files }

// Hosts returns the hosts that the call declares it contacts, in lower case. It is for the
// session's method Pace.
func (c *Call) Hosts() (hosts []string) {
	for _, host := range c.facts.Hosts {
		hosts = append(hosts, strings.ToLower(host))
	}
	return hosts
}

// Written returns the real paths of the single files that the call declares it writes. It is for
// the session's method Watch.
func (c *Call) Written() (paths []string) {
	for _, a := range c.facts.Accesses {
		if a.Write && !a.Tree && !a.Dir {
			paths = append(paths, a.OnDisk())
		}
	}
	return paths
}

// recordStart records that the call begins to act. Before a client can see that, an interrupt does not stop the call any more whose
// tool is to finish; one that has come before ends it here.
func recordStart(ctx context.Context, c *Call, tier sandbox.Tier) error {
	c.started.Store(true)
	err := context.Cause(ctx)
	if err == nil {
		err = c.session.Start(c, Started{Tier: tier, Verdict: c.verdict, Loads: c.order.loads})
	}
	c.started.Store(err == nil)
	return err
}
