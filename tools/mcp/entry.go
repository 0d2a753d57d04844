// Package mcp connects a session to MCP servers and makes tools of what they offer. It starts servers, keeps them running, and
// carries calls to them. It does not know where entries come from, who approved them, or who permits a call.
//
// A Fleet is all of the daemon. It gives a Set for each session, which is told what servers there should be, and says at any
// moment which tools there are. Each server belongs to one goroutine, which connects, lists, listens and starts again; calls
// find the present connection through the server and wait for it when there is none.
package mcp

import (
	"cmp"
	"time"

	"github.com/toold/toold/tools/sandbox"
)

// The transports of an entry.
const (
	Stdio = "stdio" // a process that is started here
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // HTTP with server-sent events, of servers from before March 2025
)

// An Entry says how a server is reached and served. It is compared as a whole: whatever changes, the server starts again.
type Entry struct {
	Name      string
	Transport string // Stdio, HTTP or SSE; empty: by what is set, Stdio or HTTP
	// Command is a path, relative to Host.Dir when it has a slash, or a name to be found in PATH.
	Command string
	Args    []string
	Env     []string // NAME=value
	URL     string
	Headers map[string]string // sent with each request, to the URL's own scheme and host alone
	// Timeout is the time limit of its calls; 0: DefaultTimeout.
	Timeout    time.Duration
	AlwaysLoad bool // its tools are never deferred
	// Shared: sessions of one principal that have the same roots share it.
	Shared bool
	// CacheTTL is how long results of tools that say they only read are kept; 0: they are not.
	CacheTTL time.Duration
	// Confined: its process runs in the sandbox. It is Host.Open's to see to.
	Confined bool
	Origin   string // where the entry stands, for messages
}

// DefaultTimeout is the time limit of a call where the entry has none. It is what the reference implementations of the
// protocol give a request.
const DefaultTimeout = 60 * time.Second

func (e Entry) timeout() time.Duration { return cmp.Or(e.Timeout, DefaultTimeout) }

func (e Entry) transport() string {
	switch {
	case e.Transport != "":
		return e.Transport
	case e.Command == "" && e.URL != "":
		return HTTP
	}
	return Stdio
}

// A Host is the session that servers are started for. Its functions may be called from any goroutine, must not block, and are
// not called any more once the Set is closed.
type Host struct {
	Version string   // of the daemon, for servers
	Roots   []string // absolute paths, for roots/list
	Dir     string   // where processes start, absolute
	// Environ is the client's environment. A process gets the few names of it that no program works without, what its entry
	// declares, and no other.
	Environ []string
	// Open gives what starts the process of an entry, confined as the entry says. Each start of a process asks for one; of a
	// server that is shared, the session that has had it longest. nil: it is not to be started.
	Open func(Entry) *sandbox.Box
	// Changed hears that Tools gives something else now; nil: nobody wants to know.
	Changed func()
	// Notice hears what changed nothing but should be known; nil: nobody wants to know.
	Notice func(Notice)
}

// A Notice is news of a server, with a code of docs/errors.md.
type Notice struct{ Code, Server, Message string }

// A State is how a server is doing.
type State string

// The states. A server that was Ready once keeps its tools listed in all of them.
const (
	Starting   State = "starting"
	Ready      State = "ready"
	Restarting State = "restarting" // it was ready, has ended, and is started again
	Failed     State = "failed"     // it did not start; it is tried again, at last when a call wants it
)

// A Status says how one server is doing.
type Status struct {
	Name, Origin string
	State        State
	Why          string   // why it is not ready, or was not last; a sentence or more
	Tools        int      // listed now
	LeftOut      []string // what of its offer is not served, a sentence each
	Junk         int64    // lines of its standard output that were no messages
	Server       string   // what it says it is; empty: it has not said
}
