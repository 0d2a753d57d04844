//go:build !no_mcp

// The servers of all sessions: which ones each session needs, and which sessions share one.

package mcp

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/toold/toold/tools"
)

// A Fleet holds all servers of the daemon. The zero value has none. It is safe for concurrent use.
type Fleet struct {
	// StartLimit is how long a server may take to start and to list its tools; 0: 30 s. It must be
	// set before the first use.
	StartLimit time.Duration
	// IdleTimeout is how long a server runs without a call if its entry has no time of its own; 0:
	// DefaultIdleTimeout, negative: no limit. It must be set before the first use.
	IdleTimeout time.Duration
	// Lists is the directory in which lists of tools are kept; it is made if need be. Empty: none is
	// kept, and each server is started at once. It must be set before the first use.
	Lists string

	mu     sync.Mutex
	shared map[string]*server
}

// Set returns the set of a session that belongs to principal. The caller closes it.
func (f *Fleet) Set(principal string, host Host) *Set {
	return &Set{fleet: f, principal: principal, host: host, servers: map[string]*server{}, own: map[source]tools.Tool{}}
}

// take returns the server of an entry for a set: a shared one if there is one, otherwise a new one.
func (f *Fleet) take(e Entry, s *Set) *server {
	if !e.Shared {
		return f.newServer(e, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := s.shareKey(e)
	if there, ok := f.shared[key]; ok {
		there.mu.Lock()
		defer there.mu.Unlock()
		there.users = append(there.users, s)
		return there
	}
	if f.shared == nil {
		f.shared = map[string]*server{}
	}
	server := f.newServer(e, s)
	f.shared[key] = server
	return server
}

// leave removes a set from a server's users, and ends the server if it was the last. It returns
// when nothing of the server is left.
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

// shareKey returns the same key for sets that may share the server of an entry: those of one
// principal in the same place, which decides what a process may touch.
func (s *Set) shareKey(e Entry) string {
	key, _ := json.Marshal([]any{s.principal, s.host.Dir, s.host.Roots, e})
	return string(key)
}
