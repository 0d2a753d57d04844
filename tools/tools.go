// Package tools is the contract between a tool and everything that runs it. A Tool parses an input
// into an Action. An Action declares its Effects, checks itself against the present state, and
// runs. The package does not know in which order calls run, who permits them, or how a result
// reaches its client.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/fs/workspace"
)

// A Tool is what a model can call. It is stateless and safe for concurrent use; New makes one.
type Tool interface {
	// Spec describes the tool. Every call returns the same value.
	Spec() Spec
	// Parse validates input against the tool's schema and binds it to an Action. It does no I/O.
	// Its error is a *fault.Error "invalid_input" that lists every violation.
	Parse(input json.RawMessage) (Action, error)
}

// ErrTimeout is the cause of a context that ends because the call's time limit has run out.
var ErrTimeout = errors.New("the time limit has run out")

// An Action is one parsed call. Its methods may be called from different goroutines, but never at
// the same time.
type Action interface {
	// Effects returns what the action declares it will touch. It is pure, and every call returns
	// the same value.
	Effects() Effects
	// TimeLimit returns the time limit that the input itself asks for; 0: none.
	TimeLimit() time.Duration
	// Check reports what depends on the present state: whether the file exists, was read, is
	// unchanged, and whether a match is unique. It has no side effects. It may be called long
	// before Run, and more than once; Run checks again on the file that it has opened. An error
	// ends the call before it has any effect.
	Check(ctx context.Context, env *Env) (Preview, error)
	// Run carries out the action. Its Result counts even when it returns an error: the content is
	// delivered together with the error. When ctx ends, Run stops what it started and returns soon;
	// the reason is context.Cause(ctx). Run is called at most once.
	Run(ctx context.Context, env *Env) (Result, error)
}

// A Situated is an Action that can be parsed more precisely with the state of its session.
type Situated interface {
	Action
	// At returns the action as it is with the session's state in env, whose Box starts no processes
	// yet. Apart from what env offers it does no I/O. It may be called more than once, and does not
	// change the receiver.
	At(env *Env) Action
}

// A Spec describes a tool to models, clients and the daemon.
type Spec struct {
	Name        string
	Description string          // Markdown, for a model
	InputSchema json.RawMessage // JSON Schema draft 2020-12; filled in by New
	// TimeLimit is how long a call may run if its input names no limit; 0: no limit. MaxTime is the
	// longest limit that an input may ask for; 0: TimeLimit.
	TimeLimit, MaxTime time.Duration
	// MaxResultChars is how many characters of text a result may hold inline; 0: 30,000.
	MaxResultChars int
	// ReadOnly is a hint for clients that all calls of the tool only read. Destructive is a hint
	// that a call may delete or overwrite something. What one call does is in its Effects.
	ReadOnly, Destructive bool
	// OpenWorld is a hint that a call may reach other programs or other machines, outside the roots
	// and the session.
	OpenWorld bool
	// OnInterrupt is what a user's interrupt does to a running call of this tool.
	OnInterrupt Interrupt
	// OnFailure is what a failed call of this tool does to its siblings under the default policy.
	OnFailure Failure
	// Origin is who carries out its calls; it orders the pool. AlwaysLoad excludes the tool from
	// being deferred.
	Origin     Origin
	AlwaysLoad bool
	// OnDemand means that a session has the tool, and that no list has it unless the client names it,
	// or asks for the form of a model that knows it.
	OnDemand bool
	// Available returns why the tool cannot be used in a session, as a sentence, or "" if it can be
	// used. A nil Available means always. Only the fields of Env that do not belong to a call are
	// set: Dir, Environ, Languages.
	Available func(*Env) string
}

// Origin is who carries out the calls of a tool.
type Origin uint8

// The origins, in the order of their blocks in a pool.
const (
	BuiltIn Origin = iota // the daemon
	Program               // a program that settings name
	MCP                   // an MCP server
	Client                // the client
)

// Interrupt is what happens to a running call when the user interrupts the turn.
type Interrupt uint8

const (
	// Finish lets the call run to its end.
	Finish Interrupt = iota
	// Stop stops the call.
	Stop
)

// Failure is what a failed call does to its siblings.
type Failure uint8

const (
	// Alone: siblings continue, unless the session's policy is that any failure aborts them.
	Alone Failure = iota
	// AbortSiblings: later calls of the turn are stopped, since they were probably meant to build
	// on this one.
	AbortSiblings
)

// A Path names a file that an action will touch: absolute, or relative to the working directory that the call starts in.
type Path struct {
	Name  string
	Tree  bool // includes everything below it
	Entry bool // the directory entry itself; a link there is not followed
	// Literal means that no link is followed, on the way to Name either: whatever acts on the path
	// follows none.
	Literal bool
	Names   bool // only names and metadata of what is below it are read, no content
	// Unnamed is set if the path stands for whatever else a command may read.
	Unnamed bool
	// Manner is how a command writes the file.
	Manner shell.Manner
	// By is 1 + the index in Commands of the command that names the path; 0: the action itself, or
	// a redirection.
	By int
	// Part is the part of a script that names the path, as written; empty: there is no script.
	Part string
}

// Effects is what an action declares it will touch. Concurrency, permission, the sandbox profile
// and checkpoints are derived from it and from nothing else.
type Effects struct {
	Reads, Writes []Path
	Commands      []shell.Command // the simple commands of a script, as far as the analysis found them
	Hosts         []string        // network hosts it contacts
	// External names a party outside the daemon that carries out the action and may do anything
	// meanwhile, such as an MCP server; empty: none. It has no influence on which calls run
	// concurrently.
	External string
	// Opaque is set if the action starts programs whose effects are unknown. It conflicts with
	// everything.
	Opaque bool
	// StartsNone is set if the programs of an Opaque action run already, or on another machine.
	StartsNone bool
	// Session is set if the action changes what later calls see of the session: working directory,
	// environment, background tasks.
	Session bool
	// State names the part of the session's state that the action changes, if no action but those
	// with the same State depends on it; empty: none. In the dependency ordering such actions keep
	// their order.
	State string
	// ReadsMore is set if the action reads more than Reads lists. It has no influence on
	// permission.
	ReadsMore bool
	// Unconfined is set if the action asks to run outside the sandbox.
	Unconfined bool
	// Spills is set if the action only reads, and its programs may make temporary files for that.
	Spills bool
	// Memory is what it reads and changes of the files of the tool Memory.
	Memory []memstore.Touch
	// Unknown is what a script runs or writes besides what is listed here. Then no rule can allow
	// the action by what is listed.
	Unknown shell.Unknown
	// Reason is why the action is not read-only, where the other fields do not show it.
	Reason string
}

// ReadOnly reports whether the action writes nothing, runs no unknown program and contacts no host.
func (e Effects) ReadOnly() bool {
	return len(e.Writes) == 0 && len(e.Hosts) == 0 && e.External == "" && !e.Opaque && !e.remembers()
}

// remembers reports whether the action changes what the tool Memory keeps.
func (e Effects) remembers() bool {
	return slices.ContainsFunc(e.Memory, func(t memstore.Touch) bool { return t.Write })
}

// Concurrent reports whether the action may run beside other concurrent ones: it changes nothing
// here. It may contact hosts.
func (e Effects) Concurrent() bool {
	return len(e.Writes) == 0 && !e.Opaque && !e.Session && !e.remembers()
}

// A Preview is what a question about the call shows.
type Preview struct {
	Diff string // unified diff of the change; empty if nothing would change or no diff can be made
	Ask  string // why the call needs a question in every mode; empty: it does not
	// Steered holds the commands, by their index in Effects, that do not count as read-only in the
	// present state, each with its reason as a clause. They need the same permission as any other
	// command.
	Steered map[int]string
}

// Env is what one call may reach: the session as it was when the call started, cut to the call's
// Effects. It belongs to the call and must not be used after Run has returned.
type Env struct {
	CallID   string            // unique in the daemon and safe as a file name
	Dir      string            // working directory, absolute
	Gone     string            // the session's directory if it has vanished and Dir replaces it; empty: Dir is the session's
	Environ  []string          // the client's environment with what earlier calls exported; not yet filtered for a child
	Programs map[string]string // the files that command words of the action resolved to, where the verdict depends on them
	// Aliases returns git's aliases by name, from the configuration of the user and of the
	// repository in Dir. Never nil.
	Aliases func() map[string]string
	Cursors map[string]int64 // how much of each background task's output was returned before, in bytes; read only
	Files   *workspace.View
	Spool   *spool.Dir      // where the session's output files are
	Box     *sandbox.Box    // starts processes, confined as the call's effects say
	Tasks   *background.Set // the session's background tasks
	// Ports returns the ports on which a background task listens now; nil: there is no task.
	Ports func(*background.Task) []Port
	// Languages are the session's language servers; nil if it has none.
	Languages *language.Set
	// Index is what earlier searches of the principal have found; nil: nothing is remembered.
	Index *index.Index
	// MaxChars is how many characters of text the result may hold inline.
	MaxChars int
	// OnTimeout is what Bash does at its time limit.
	OnTimeout OnTimeout
	// Output publishes the call's output file, so that clients can follow it while the call runs.
	Output func(*spool.Output)
	// Report publishes the progress of a long search or read; a newer step replaces an older one.
	// Never nil.
	Report func(Step)
	// First reports whether it is called with what for the first time in the session, so that a
	// notice appears once. Never nil.
	First func(what string) bool
	// Ask puts a question of the tool's own to a client that can answer and waits for the answer.
	// The call's time limit does not run meanwhile. It is nil outside Run.
	Ask func(context.Context, Form) (Reply, error)
	// Trace is what the call is traced under, as a traceparent of W3C Trace Context, for those that it calls; empty: nothing.
	Trace string
	// Parts runs calls as parts of this one, in the order in which they are given, and returns their
	// ends when all have ended. They are stopped with this call. It is nil outside Run.
	Parts func([]Part) []PartEnd
	// Deferred returns the tools that can be activated or have been, in the pool's order.
	Deferred func() []Spec
	// Memory is where the tool Memory keeps files. It is empty for actions that declare none.
	Memory memstore.Store
	// Principal is the owner of the session. What a tool keeps between calls it keeps for one
	// principal.
	Principal string
	// Reach limits the hosts that a tool itself contacts.
	Reach Reach
}

// Reach is what settings allow and deny of hosts, in the patterns of egress.Policy. Whether a call
// may contact a host is part of its verdict; Reach is checked again when the connection is made.
type Reach struct {
	// Allowed permits hosts that are not public: an address when it is asked for by address, and a
	// name without * for that name.
	Allowed []string
	Denied  []string // hosts and addresses that are never reached; it overrides Allowed
}

// A Form is a question of a tool in the middle of a call.
type Form struct {
	Message string          // for the user
	Schema  json.RawMessage // JSON Schema of the answer; empty: the question is yes or no
}

// A Reply is the answer to a Form.
type Reply struct {
	Yes     bool
	Content json.RawMessage // matches the form's schema; empty: no content was sent
	Why     string          // the user's reason for a no
}

// WorkingDir returns the directory in which a session whose directory is dir works: dir itself or,
// if that has vanished, the first of roots that exists. In the second case gone is dir. Verdict and
// action must use the same directory, so it is determined once for each call. disk maps a path of
// the session to its path on the disk.
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

// OnTimeout is what happens to a command at its time limit.
type OnTimeout uint8

const (
	// Kill ends the command.
	Kill OnTimeout = iota
	// Background lets the command continue as a background task.
	Background
)

// A Step is the progress of a long call. Total is 0 if it is unknown.
type Step struct {
	Message     string
	Done, Total int64
}

// A Todo is one entry of the session's list.
type Todo struct {
	Content    string `json:"content" jsonschema:"what is to be done, as an imperative"`
	Status     string `json:"status" jsonschema:"how far it is" enum:"pending,in_progress,completed"`
	ActiveForm string `json:"activeForm" jsonschema:"the same in the present continuous, shown while it is in progress"`
}

// A Result is what a call returns. Text is valid UTF-8.
type Result struct {
	Content    []Block
	Structured any // a struct that marshals to a JSON object with the same result for programs; nil: none
	// Spill is set if the tool itself has shortened its text. Otherwise the pipeline caps and
	// spills it.
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

// A Link points to a resource that the client may fetch itself.
type Link struct{ URI, Name string }

// Text returns a result of one text block.
func Text(text string) Result { return Result{Content: []Block{{Text: text}}} }

// TextWith returns a result of one text block for the model, with structured data for programs.
func TextWith(text string, structured any) Result {
	return Result{Content: []Block{{Text: text}}, Structured: structured}
}

// A Spill is what a shortened text leaves out, and the file that holds all of it.
type Spill struct {
	Path         string
	Bytes, Lines int64 // left out of the inline text
}

// Changes are a call's changes to its session. The session applies them, in the order in which the
// calls were submitted; a tool never does.
type Changes struct {
	Dir     string            // the new working directory; empty: unchanged
	Exports map[string]string // all exported variables of calls; nil: unchanged
	Restart bool              // directory and exports become what they were when the session began
	Todos   []Todo            // the new list; nil: unchanged
	Cursor  *Cursor           // how much of a background task's output has been returned; nil: unchanged
	Task    string            // a background task that the call started and that outlives it
	// Activated are the deferred tools that the session gets from the next tool use on.
	Activated []string
}

// A Cursor is a position in a background task's output, in bytes.
type Cursor struct {
	Task   string
	Offset int64
}
