// Package pipeline is a call's way from the moment it is accepted to its one result: check, verdict, question, start,
// act, cap, record, in one straight function (run.go). It does not know in which order calls run, where records go,
// or what a client is.
package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

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

// A Session is what a call needs of the session it belongs to. Its methods are safe for concurrent use.
type Session interface {
	// Begin says that the call's turn has come, and gives the session's state as it is now. Files is left to the call.
	Begin(*Call) *tools.Env
	// Peek gives the same state before the call's turn has come.
	Peek(*Call) *tools.Env
	// Workspace is where the session's calls may find files, and what they have seen of them.
	Workspace() (*workspace.Workspace, *workspace.Memory)
	// Mode is the permission mode now, Policy the sibling abort policy of the call's turn.
	Mode() permission.Mode
	Policy(*Call) Policy
	// Ask puts the question, unless it is already put, and waits for the answer. Its error is a *fault.Error when
	// nobody can answer, else the cause of ctx.
	Ask(context.Context, *Call, Question) (Answer, error)
	// AskAhead puts the question and returns. It does nothing when nobody can answer.
	AskAhead(*Call, Question)
	// Withdraw takes back the call's open question, if there is one.
	Withdraw(c *Call, reason string)
	// Start records that the call begins to act: durably, before it returns, unless the call is read-only.
	Start(*Call, Started) error
	// End records the call's one result and applies what it leaves behind, before it returns. learned is what it has
	// seen of files, by real path.
	End(c *Call, ended Ended, learned map[string]workspace.State)
	// Skipped does what End does for a call whose turn never came, after it has returned.
	Skipped(*Call, Ended)
}

// A Use is a tool use that has been looked up and parsed.
type Use struct {
	ID     string // the client's
	Key    string // unique in the session, safe as a file name
	Turn   uint64
	TurnID string // the client's name of the turn
	Index  int    // position in the turn
	Name   string
	Input  json.RawMessage
	Digest string        // of the input
	Limit  time.Duration // 0: none
	Note   string        // what was done to the use on its way in, such as a clamped time limit; empty: nothing
	Tool   tools.Tool
	Action tools.Action
}

// DigestOf is the digest of an input that a question shows and its answer repeats: SHA-256 of the text, in hex.
func DigestOf(input string) string {
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:])
}

// A Call is one accepted, valid tool use. It is a scheduler's task.
type Call struct {
	Use
	session  Session
	accepted time.Time

	mu    sync.Mutex // held while the action is used
	begun bool       // its turn has come
	asked time.Duration
}

// New makes a call of session.
func New(use Use, session Session) *Call {
	return &Call{Use: use, session: session, accepted: time.Now()}
}

// ID is unique among the session's calls.
func (c *Call) ID() string { return c.Key }

// Turn is the number of the call's turn.
func (c *Call) Turn() uint64 { return c.Use.Turn }

// Concurrent reports that the call may run beside others. It holds for the call's whole life.
func (c *Call) Concurrent() bool { return c.Action.Effects().Concurrent() }

// Interruptible reports that a user's interrupt stops the call.
func (c *Call) Interruptible() bool { return c.Tool.Spec().OnInterrupt == tools.Stop }

// ReadOnly reports that the call changes nothing.
func (c *Call) ReadOnly() bool { return c.Action.Effects().ReadOnly() }

// Title names the call for people in one line.
func (c *Call) Title() string { return label(c.Name, c.about()) }

// about is the part of the input that says what the call is about: the first of the fields that tools use for it.
func (c *Call) about() string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.Input, &fields) != nil {
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
