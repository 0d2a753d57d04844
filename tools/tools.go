// Package tools is the contract between a tool and everything that runs it: a Tool turns input into an Action, an
// Action says what it will touch, checks itself against the present, and runs. The package does not know in which
// order calls run, who permits them, or how a result travels.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/toold/toold/tools/background"
	"github.com/toold/toold/tools/language"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/shell"
	"github.com/toold/toold/tools/spool"
	"github.com/toold/toold/tools/workspace"
)

// A Tool is what a model can name. It is stateless and safe for concurrent use; New makes one.
type Tool interface {
	// Spec describes the tool. It is the same at every call.
	Spec() Spec
	// Parse checks input against the tool's schema and binds it to an Action. It does no I/O. Its error is a
	// *fault.Error "invalid_input" that lists every violation.
	Parse(input json.RawMessage) (Action, error)
}

// ErrTimeout is the cause of a context that ends because the call's time limit has run out.
var ErrTimeout = errors.New("the time limit has run out")

// An Action is one parsed call. Its methods may be called from different goroutines, never at the same time.
type Action interface {
	// Effects is what the action declares it will touch; pure, and the same at every call.
	Effects() Effects
	// TimeLimit is the time limit that the input itself asks for; 0: none.
	TimeLimit() time.Duration
	// Check says what only the present state can tell (the file is there, was read, has not changed, the match is
	// unique), without side effects. It may be asked long before Run, and more than once; Run checks again on what
	// it has opened. An error ends the call before it had any effect.
	Check(ctx context.Context, env *Env) (Preview, error)
	// Run acts. With an error the Result still counts: what it holds is delivered beside the error. When ctx ends,
	// Run stops what it started and returns soon; the reason is context.Cause(ctx).
	Run(ctx context.Context, env *Env) (Result, error)
}

// A Situated is an Action of which more can be told when its turn has come.
type Situated interface {
	Action
	// At returns the action as it is with the session's state in env, whose Box starts nothing yet. It does no I/O beside
	// what env offers, and may be asked more than once.
	At(env *Env) Action
}

// A Spec describes a tool to models, clients and the daemon.
type Spec struct {
	Name        string
	Description string          // Markdown, for a model
	InputSchema json.RawMessage // JSON Schema draft 2020-12; filled in by New
	// TimeLimit is how long a call may run when it names no limit itself; 0: none. MaxTime is the most that a call
	// may ask for; 0: TimeLimit.
	TimeLimit, MaxTime time.Duration
	// MaxResultChars is how many characters of text a result may hold inline; 0: 30,000.
	MaxResultChars int
	// ReadOnly: all its calls are read-only. Destructive: a call may take away what was there. These are hints for
	// clients; what holds for one call is in its Effects.
	ReadOnly, Destructive bool
	// OpenWorld: a call may reach what is neither in the roots nor in the session: other programs, other machines.
	OpenWorld bool
	// OnInterrupt says what a user's interrupt does to a running call of this tool.
	OnInterrupt Interrupt
	// OnFailure says whose siblings a failed call of this tool aborts under the default policy.
	OnFailure Failure
	// Origin says who carries its calls out; it orders the pool. AlwaysLoad: the tool is never deferred.
	Origin     Origin
	AlwaysLoad bool
	// Available says, as a sentence, why the tool cannot be used in a session; empty: it can. nil: it always can. Of the Env
	// it has what does not belong to one call: Dir, Environ, Languages.
	Available func(*Env) string
}

// Origin is who carries calls of a tool out.
type Origin uint8

// The origins, in the order of their blocks in a pool.
const (
	BuiltIn Origin = iota // the daemon
	Program               // a program that settings name
	MCP                   // an MCP server
	Client                // the client
)

// Interrupt is what becomes of a running call when the user breaks in.
type Interrupt uint8

const (
	// Finish lets the call run to its end.
	Finish Interrupt = iota
	// Stop stops the call.
	Stop
)

// Failure is what a failed call means for its siblings.
type Failure uint8

const (
	// Alone: siblings go on, unless the session's policy says that any failure aborts.
	Alone Failure = iota
	// AbortSiblings: what follows in the turn was probably meant to build on this call.
	AbortSiblings
)

// A Path names a file that an action will touch: absolute, or relative to the working directory that the call starts in.
type Path struct {
	Name  string
	Tree  bool // everything below it too
	Entry bool // the entry of that name itself, where others would be followed to what a link there leads to
	Names bool // of what is below it only names and facts are read, no content
	// Unnamed: it stands for whatever else a command may read.
	Unnamed bool
	// Manner is how a command writes it.
	Manner shell.Manner
	// By says which of the Commands names it: 1 + its index. 0: the action itself, or a redirection.
	By int
	// Part is the part of a script that names it, as written; empty: there is no script.
	Part string
}

// Effects is what an action declares it will touch. Concurrency, permission, the sandbox profile and checkpoints are
// derived from it, and from nothing else.
type Effects struct {
	Reads, Writes []Path
	Commands      []shell.Command // the simple commands of a script, as far as they are known
	Hosts         []string        // network hosts it contacts
	// Foreign names somebody else who carries it out and may do anything meanwhile, such as an MCP server; empty: nobody.
	// What may run beside other calls does not follow from it.
	External string
	// Opaque: it starts programs whose effects are not known. It conflicts with everything.
	Opaque bool
	// Session: it changes what later calls see of the session (working directory, environment, background tasks).
	Session bool
	// Unconfined: it asks to run outside the sandbox.
	Unconfined bool
	// Hidden says why no rule can allow the action by what is listed here: it runs or writes something else besides.
	// Empty: all is listed.
	Hidden string
	// Unread: some of the script was not understood at all; Hidden says why.
	Unread bool
	// Reason says why the action is not read-only, when that is not plain from the rest.
	Reason string
	// Blame is the part of a script that decided this, if it was one.
	Blame shell.Reason
}

// ReadOnly reports that the action writes nothing, runs nothing unknown and contacts nobody.
func (e Effects) ReadOnly() bool {
	return len(e.Writes) == 0 && len(e.Hosts) == 0 && e.External == "" && !e.Opaque
}

// Concurrent reports that the action may run beside other concurrent ones: it changes nothing here. It may contact somebody.
func (e Effects) Concurrent() bool { return len(e.Writes) == 0 && !e.Opaque && !e.Session }

// A Preview is what a question about the call shows, and whether the check itself wants one.
type Preview struct {
	Diff string // unified diff of what would change; empty when nothing would, or none can be made
	Ask  string // why somebody must be asked whatever the mode allows; empty: no such reason
	// Steered holds the commands of the effects, by their index, that as things stand do not count as read-only, each with
	// the reason as a clause. They then need what any other command needs.
	Steered map[int]string
}

// Env is what one call may reach: the session as it was when the call started, cut to the call's Effects.
// It belongs to the call and is dead after Run has returned.
type Env struct {
	CallID   string            // unique in the daemon and safe as a file name
	Dir      string            // working directory, absolute
	Gone     string            // the session's own, when it has vanished and Dir stands in for it; empty: Dir is the session's
	Environ  []string          // the client's environment with what earlier calls exported; not yet filtered for a child
	Programs map[string]string // the files that command words of the action lead to, as far as a verdict rests on that
	// Aliases returns git's aliases, by name, as the configuration of the user and of the repository in Dir has them. Never nil.
	Aliases func() map[string]string
	Cursors map[string]int64 // how far each background task's output has been given, in bytes; read only
	Files   *workspace.View
	Spool   *spool.Dir      // where the session's output files are
	Box     *sandbox.Box    // starts processes, confined as the call's effects say
	Tasks   *background.Set // the session's background tasks
	// Languages are the session's language servers; nil: it has none.
	Languages *language.Set
	// MaxChars is how many characters of text the result may hold inline.
	MaxChars int
	// OnTimeout says what Bash does at its time limit.
	OnTimeout OnTimeout
	// Output publishes the call's output file, so that clients can follow it while the call runs.
	Output func(*spool.Output)
	// Report publishes a step of a long search or read; the newest wins. Never nil.
	Report func(Step)
	// First reports whether a call of the session says something for the first time. Never nil.
	First func(what string) bool
	// Ask puts a question of the tool's own, in the middle of its call, to whoever can answer, and waits; the call's time limit
	// stands still meanwhile. nil when it cannot be used: outside Run.
	Ask func(context.Context, Form) (Reply, error)
	// Deferred gives the tools that can be activated, and those that were, in the pool's order.
	Deferred func() []Spec
	// Principal is whose session it is. What a tool keeps from one call to another it keeps for one principal.
	Principal string
	// Reach is what the session's settings say of the hosts that a tool itself contacts.
	Reach Reach
}

// Reach is what settings say of hosts, in patterns as egress.Policy has them. Whether a call may contact a host is its
// verdict's; this is for the moment in which it is connected.
type Reach struct {
	// Allowed opens what is not public: an address to who asks for it by that address, a name without * for that name.
	Allowed []string
	Denied  []string // hosts and addresses that are not reached, whatever else is said
}

// A Form is what a tool wants to know in the middle of a call.
type Form struct {
	Message string          // for a person
	Schema  json.RawMessage // JSON Schema of what is to be given; empty: only yes or no is wanted
}

// A Reply is what was answered.
type Reply struct {
	Yes     bool
	Content json.RawMessage // as the form's schema wants it; empty: nothing was given
	Why     string          // what somebody who said no has said
}

// WorkingDir is where a session that stands in dir works now: there, or when that has vanished in the first of its roots
// that is there. gone is dir then. Verdict and act have to go by the same one, so it is settled once for each call. disk
// returns where on the disk a path of the session's lies.
func WorkingDir(dir string, roots []string, disk func(path string) string) (now, gone string) {
	for _, place := range append([]string{dir}, roots...) {
		if info, err := os.Stat(disk(place)); err == nil && info.IsDir() {
			if place != dir {
				gone = dir
			}
			return place, gone
		}
	}
	return dir, ""
}

// OnTimeout is what becomes of a command at its time limit.
type OnTimeout uint8

const (
	// Kill stops it.
	Kill OnTimeout = iota
	// Background lets it go on as a background task.
	Background
)

// A Step is how far a long call has come. Total 0: not known.
type Step struct {
	Message     string
	Done, Total int64
}

// A Todo is one entry of the session's list.
type Todo struct {
	Content    string `json:"content" jsonschema:"what is to be done, as an imperative"`
	Status     string `json:"status" jsonschema:"pending, in_progress or completed"`
	ActiveForm string `json:"activeForm" jsonschema:"the same in the present continuous, shown while it is in progress"`
}

// A Result is what a call gives back. Text is valid UTF-8.
type Result struct {
	Content    []Block
	Structured any // a struct that marshals to a JSON object: the same result for programs; nil: none
	// Spill is set when the tool itself has shortened its text; otherwise the pipeline caps and spills.
	Spill   *Spill
	Changes Changes
}

// A Block is one piece of content: exactly one of its fields is set.
type Block struct {
	Text     string
	Image    *Blob
	Document *Blob
	Link     *Link
}

// A Blob is bytes with their media type.
type Blob struct {
	MediaType string
	Data      []byte
}

// A Link points at a resource that the client may fetch itself.
type Link struct{ URI, Name string }

// Text is a result of one text block.
func Text(text string) Result { return Result{Content: []Block{{Text: text}}} }

// A Spill says what a shortened text leaves out, and where the whole of it is.
type Spill struct {
	Path         string
	Bytes, Lines int64 // left out of the inline text
}

// Changes is what a call leaves behind in the session. It is applied by the session, in submission order, never by the tool.
type Changes struct {
	Dir     string            // the new working directory; empty: unchanged
	Exports map[string]string // exported environment of calls, whole; nil: unchanged
	Todos   []Todo            // the new list; nil: unchanged
	Cursor  *Cursor           // how far a background task's output has been given; nil: unchanged
	Task    string            // a background task that the call started and that outlives it
	// Activated are deferred tools that the session is to have from the next tool use on.
	Activated []string
}

// A Cursor is a position in a background task's output, in bytes.
type Cursor struct {
	Task   string
	Offset int64
}
