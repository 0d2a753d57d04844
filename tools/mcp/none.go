//go:build no_mcp

// The build without MCP: the same names, which start and contact nothing.

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

// A Fleet has no servers in this build.
type Fleet struct {
	// StartLimit has no effect in this build.
	StartLimit time.Duration
	// IdleTimeout has no effect in this build.
	IdleTimeout time.Duration
	// Lists has no effect in this build.
	Lists string
}

// Sweep does nothing.
func (f *Fleet) Sweep(time.Time) error { return nil }

// Set returns a set that starts no servers.
func (f *Fleet) Set(string, Host) *Set { return &Set{} }

// A Set records its entries, and reports that they are not served.
type Set struct {
	mu      sync.Mutex
	entries []Entry
}

// Serve records the entries.
func (s *Set) Serve(entries []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = entries
}

// Await returns at once.
func (s *Set) Await(context.Context) {}

// Revive returns an error: nothing can be started.
func (s *Set) Revive(_ context.Context, name string) error {
	return fault.Failedf("server_unavailable", "The MCP server %s is not available: this build of toold has no MCP client.", name)
}

// Reading returns false.
func (s *Set) Reading() bool { return false }

// Resting returns true.
func (s *Set) Resting() bool { return true }

// Tools returns nil.
func (s *Set) Tools() []tools.Tool { return nil }

// Servers returns a failed status for each entry.
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
