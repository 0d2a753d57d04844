//go:build no_mcp

// A build without MCP: the names that others need, and nothing behind them. It starts and contacts nobody.

package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// Built reports that this build has the MCP client.
const Built = false

// A Fleet would be all servers of the daemon.
type Fleet struct {
	// StartLimit would be how long a server may take to start.
	StartLimit time.Duration
}

// Set returns a set that serves nothing.
func (f *Fleet) Set(string, Host) *Set { return &Set{} }

// A Set knows what should be there, and says that it is not.
type Set struct {
	mu      sync.Mutex
	entries []Entry
}

// Serve notes what should be there.
func (s *Set) Serve(entries []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = entries
}

// Await returns at once.
func (s *Set) Await(context.Context) {}

// Revive says that there is nothing to start a server with.
func (s *Set) Revive(_ context.Context, name string) error {
	return fault.Failedf("server_unavailable", "The MCP server %s is not there: this build of toold has no MCP client.", name)
}

// Tools is empty.
func (s *Set) Tools() []tools.Tool { return nil }

// Servers returns of each entry that this build cannot serve it.
func (s *Set) Servers() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Status
	for _, e := range s.entries {
		all = append(all, Status{Name: e.Name, Origin: e.Origin, State: Failed, Why: "This build of toold has no MCP client."})
	}
	return all
}

// Close does nothing.
func (s *Set) Close() {}
