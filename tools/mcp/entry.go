// Package mcp connects a session to MCP servers and turns what they list into tools. It starts
// servers, keeps them running, and sends calls to them. It does not know where entries come from,
// who approved them, or who permits a call.
//
// A Fleet holds all servers of the daemon. It makes a Set for each session. The Set is given the
// entries that are served, and returns their tools at any moment. One goroutine owns each server:
// it reads the kept list of its tools, connects when a call needs it, lists, listens, starts again,
// and disconnects when no call has used it for a while. Calls get the present connection from the
// server, and wait for it if there is none.
package mcp

import (
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
)

// The transports of an entry.
const (
	Stdio = "stdio" // a process that the daemon starts
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // HTTP with server-sent events, for servers from before March 2025
)

// An Entry is how a server is reached and used. It is compared as a whole: if anything changes, the
// server starts again.
type Entry struct {
	Name      string
	Transport string // Stdio, HTTP or SSE; empty: Stdio if there is a command, HTTP if there is a URL
	// Command is a path, relative to Host.Dir if it has a slash, or a name that is looked up in
	// PATH.
	Command string
	Args    []string
	Env     []string // NAME=value
	URL     string
	Headers map[string]string // sent with each request, only to the URL's own scheme and host
	// Timeout is the time limit of its calls; 0: DefaultTimeout.
	Timeout time.Duration
	// IdleTimeout is how long it runs without a call; 0: the Fleet's, negative: no limit.
	IdleTimeout time.Duration
	AlwaysLoad  bool // its tools are never deferred
	// Shared lets sessions of one principal with the same roots share the server.
	Shared bool
	// CacheTTL is how long results of read-only tools are cached; 0: not at all.
	CacheTTL time.Duration
	// Confined requests that the process runs in the sandbox. Host.Open must do that.
	Confined bool
	Origin   string // the position of the entry in its file, for messages
	Digest   string // changes when the entry is written differently; may be empty
}

// DefaultTimeout is the time limit of a call if the entry has none. The reference implementations
// of the protocol use the same limit for a request.
const DefaultTimeout = 60 * time.Second

// DefaultIdleTimeout is how long a server runs without a call if nothing else is set.
const DefaultIdleTimeout = 10 * time.Minute

func (e Entry) transport() string {
	switch {
	case e.Transport != "":
		return e.Transport
	case e.Command == "" && e.URL != "":
		return HTTP
	}
	return Stdio
}

// A Host is the session that servers are started for. Its functions must be safe for concurrent use
// and must not block. They are not called after the Set is closed.
type Host struct {
	Version string   // of the daemon, for servers
	Roots   []string // absolute paths, for roots/list
	Dir     string   // working directory of processes, absolute
	// Environ is the client's environment. A process gets only the few variables of it that most
	// programs need, and those that its entry declares.
	Environ []string
	// Open returns the Box that starts the process of an entry, confined as the entry requires. It
	// is called for each start of a process; for a shared server, on the session that has used it
	// longest. nil: the process must not be started.
	Open func(Entry) *sandbox.Box
	// Changed is called when Tools has a new result. It may be nil.
	Changed func()
	// Notice is called with events that change nothing but should be reported. It may be nil.
	Notice func(Notice)
}

// A Notice is a message about a server, with a code of docs/errors.md.
type Notice struct{ Code, Server, Message string }

// A State is the state of a server.
type State string

// The states. A server whose tools are known keeps them listed in all of them.
const (
	NotStarted  State = "not_started" // its tools are known from before; the first call starts it
	Starting    State = "starting"
	Ready       State = "ready"        // it runs
	Restarting  State = "restarting"   // it was ready, has ended, and is being started again
	Failed      State = "failed"       // it did not start; it is tried again, at the latest when a call needs it
	IdleStopped State = "idle_stopped" // it was without a call for the idle time; the next call starts it
)

// States are all states.
var States = []State{NotStarted, Starting, Ready, Restarting, Failed, IdleStopped}

// A Status is the state of one server.
type Status struct {
	Name, Origin string
	State        State
	Why          string   // why it is not ready, or was not the last time; a sentence or more
	Tools        int      // listed now
	LeftOut      []string // what it lists and is not served, a sentence each
	Junk         int64    // lines of its standard output that were not messages
	Server       string   // its own name and version; empty: not received
}
