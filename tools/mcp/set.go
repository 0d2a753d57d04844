//go:build !no_mcp

// The servers of one session, and the tools that they have at a moment. It does not know what a server does to have them.

package mcp

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// A Set is the servers of one session. Its methods may be used from any goroutine.
type Set struct {
	fleet     *Fleet
	principal string
	host      Host
	leaving   sync.WaitGroup // servers that are being ended

	mu      sync.Mutex
	servers map[string]*server    // by the entry's name
	own     map[source]tools.Tool // in the form that the session has of it
	closed  bool

	telling sync.RWMutex // held for reading while the host is told of something
	silent  bool         // the host is told nothing any more
}

// A source is a tool as its server has it, and the name that it has here.
type source struct {
	tool tools.Tool
	name string
}

// Serve says which servers there are to be. It starts those that are new, starts again those whose entry has changed, ends those
// that are gone, and returns at once. Of entries with the same name the last counts.
func (s *Set) Serve(entries []Entry) {
	wanted := map[string]Entry{}
	for _, e := range entries {
		wanted[e.Name] = e
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	fewer := false
	for name, server := range s.servers {
		if e, ok := wanted[name]; ok && reflect.DeepEqual(e, server.entry) {
			delete(wanted, name)
			continue
		}
		delete(s.servers, name)
		s.leaving.Go(func() { s.fleet.leave(server, s) })
		fewer = true
	}
	for name, e := range wanted {
		s.servers[name] = s.fleet.take(e, s)
	}
	s.mu.Unlock()
	if fewer || len(wanted) > 0 {
		s.notify()
	}
}

// Await waits until each server has started or failed once, which has a deadline, or until ctx ends.
func (s *Set) Await(ctx context.Context) {
	for _, server := range s.sorted() {
		select {
		case <-server.first:
		case <-server.done:
		case <-ctx.Done():
			return
		}
	}
}

// Revive has a server start that is not there, also one that was given up, and waits for what comes of it. The error says why
// it still is not there.
func (s *Set) Revive(ctx context.Context, name string) error {
	s.mu.Lock()
	server := s.servers[name]
	s.mu.Unlock()
	if server == nil {
		return fault.Failedf("server_unavailable", "There is no MCP server %s any more.", name)
	}
	_, err := server.connected(ctx, nil)
	return err
}

// sorted returns the servers by name.
func (s *Set) sorted() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.servers), func(a, b *server) int { return cmp.Compare(a.entry.Name, b.entry.Name) })
}

// Servers returns how each server is doing, by name.
func (s *Set) Servers() (all []Status) {
	for _, server := range s.sorted() {
		status, _ := server.snapshot()
		all = append(all, status)
	}
	return all
}

// Tools returns the tools of all servers, by name, each name once. A server that is being restarted keeps its own. The same tool is
// the same value from one call to the next.
func (s *Set) Tools() []tools.Tool {
	taken := map[string]bool{}
	now := map[source]tools.Tool{}
	var all []tools.Tool
	for _, server := range s.sorted() {
		_, offered := server.snapshot()
		for _, tool := range offered {
			key := source{tool, tool.Spec().Name}
			if taken[key.name] {
				key.name = marked(server.entry.Name, key.name)
			}
			if taken[key.name] {
				continue
			}
			taken[key.name] = true
			now[key] = s.made(key, server.entry)
			all = append(all, now[key])
		}
	}
	s.mu.Lock()
	s.own = now
	s.mu.Unlock()
	slices.SortFunc(all, byName)
	return all
}

// made returns the session's own form of a tool.
func (s *Set) made(key source, e Entry) tools.Tool {
	s.mu.Lock()
	tool, ok := s.own[key]
	s.mu.Unlock()
	if ok {
		return tool
	}
	spec := key.tool.Spec()
	tool = key.tool
	if spec.Name != key.name {
		spec.Name = key.name
		tool = renamed{tool, spec}
	}
	if e.CacheTTL > 0 && spec.ReadOnly {
		tool = tools.Cached(tool, e.CacheTTL)
	}
	return tool
}

// A renamed tool has a name that another server's would have had too.
type renamed struct {
	tools.Tool
	spec tools.Spec
}

// Spec implements tools.Tool.
func (r renamed) Spec() tools.Spec { return r.spec }

// Close ends the servers that nobody else shares. Nothing of them is left when it returns, and the host learns of nothing more.
func (s *Set) Close() {
	s.telling.Lock()
	s.silent = true
	s.telling.Unlock()
	s.mu.Lock()
	s.closed = true
	for name, server := range s.servers {
		delete(s.servers, name)
		s.leaving.Go(func() { s.fleet.leave(server, s) })
	}
	s.mu.Unlock()
	s.leaving.Wait()
}

func (s *Set) notice(n Notice) {
	s.telling.RLock()
	defer s.telling.RUnlock()
	if !s.silent && s.host.Notice != nil {
		s.host.Notice(n)
	}
}

func (s *Set) notify() {
	s.telling.RLock()
	defer s.telling.RUnlock()
	if !s.silent && s.host.Changed != nil {
		s.host.Changed()
	}
}
