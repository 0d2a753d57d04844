//go:build !no_mcp

// The servers of all sessions: which there should be for each, and which sessions share one. It does not know how a server is
// kept running.

package mcp

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/toold/toold/tools"
)

// A Fleet is all servers of the daemon. The zero value has none. Its methods may be used from any goroutine.
type Fleet struct {
	// StartLimit is how long a server may take to start and to list its tools; 0: 30 s. It is set before the first use.
	StartLimit time.Duration

	mu     sync.Mutex
	shared map[string]*server
}

// Set returns the set of a session that belongs to principal. It is the caller's to close.
func (f *Fleet) Set(principal string, host Host) *Set {
	return &Set{fleet: f, principal: principal, host: host, servers: map[string]*server{}, own: map[source]tools.Tool{}}
}

// take returns the server of an entry to a set: one that is shared if there is one, else a new one.
func (f *Fleet) take(e Entry, s *Set) *server {
	if !e.Shared {
		return newServer(e, f.StartLimit, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := s.shareKey(e)
	if there, ok := f.shared[key]; ok {
		there.join(s)
		return there
	}
	if f.shared == nil {
		f.shared = map[string]*server{}
	}
	server := newServer(e, f.StartLimit, s)
	f.shared[key] = server
	return server
}

// leave takes a set's part in a server away, and ends the server when it was the last. Nothing of the server is left then.
func (f *Fleet) leave(server *server, s *Set) {
	f.mu.Lock()
	last := server.leave(s)
	if key := s.shareKey(server.entry); last && f.shared[key] == server {
		delete(f.shared, key)
	}
	f.mu.Unlock()
	if last {
		server.end()
	}
}

// shareKey is the same for sets that may share the server of an entry: those of one principal that work in the same place. What
// a process may touch is decided by that.
func (s *Set) shareKey(e Entry) string {
	key, _ := json.Marshal([]any{s.principal, s.host.Dir, s.host.Roots, e})
	return string(key)
}
