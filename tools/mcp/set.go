//go:build !no_mcp

// The servers of one session, and their present tools.

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

// A Set is the servers of one session. It is safe for concurrent use.
type Set struct {
	fleet     *Fleet
	principal string
	host      Host
	leaving   sync.WaitGroup // servers that are being ended

	mu      sync.Mutex
	servers map[string]*server    // by the entry's name
	own     map[source]tools.Tool // in the session's own form
	closed  bool

	telling sync.RWMutex // read-locked while the host is called
	silent  bool         // the host is not called any more
}

// A source is a tool of a server, and its name in this session.
type source struct {
	tool tools.Tool
	name string
}

// Serve sets the entries that are served. A server is started when one of its tools is called, or at
// once if its tools are not known yet. Servers whose entry has changed or is gone are ended. Serve
// returns at once. Of entries with the same name the last counts.
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
		s.drop(name)
		fewer = true
	}
	for name, e := range wanted {
		s.servers[name] = s.fleet.take(e, s)
	}
	s.mu.Unlock()
	if fewer || len(wanted) > 0 {
		s.tell(notify)
	}
}

// drop ends a server for this set, and returns at once. mu is held.
func (s *Set) drop(name string) {
	server := s.servers[name]
	delete(s.servers, name)
	s.leaving.Go(func() { s.fleet.leave(server, s) })
}

// Await waits until the tools of each server are known, or its first start has failed, for which
// there is a limit, or until ctx ends.
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

// Revive starts a server that is not running, even an abandoned one, and waits for the result. The
// error is why it still does not run.
func (s *Set) Revive(ctx context.Context, name string) error {
	s.mu.Lock()
	server := s.servers[name]
	s.mu.Unlock()
	if server == nil {
		return fault.Failedf("server_unavailable", "There is no MCP server %s any more.", name)
	}
	defer server.use()()
	_, err := server.connected(ctx, nil)
	return err
}

// Reading reports whether a kept list is still being read. Changed is called after it was read.
func (s *Set) Reading() bool {
	return slices.ContainsFunc(s.sorted(), func(server *server) bool {
		select {
		case <-server.read:
			return false
		default:
			return true
		}
	})
}

// Resting reports whether no server runs, and none is about to.
func (s *Set) Resting() bool {
	return !slices.ContainsFunc(s.sorted(), func(server *server) bool { return !server.rests() })
}

// sorted returns the servers by name.
func (s *Set) sorted() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.servers), func(a, b *server) int { return cmp.Compare(a.entry.Name, b.entry.Name) })
}

// Servers returns the status of each server, by name.
func (s *Set) Servers() (all []Status) {
	for _, server := range s.sorted() {
		status, _ := server.snapshot()
		all = append(all, status)
	}
	return all
}

// Tools returns the tools of all servers, sorted by name, each name once. A server that is being
// restarted keeps its tools. The same tool is the same value in each result.
func (s *Set) Tools() []tools.Tool {
	servers := s.sorted()
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := map[string]bool{}
	now := map[source]tools.Tool{}
	for _, server := range servers {
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
			if now[key] = s.own[key]; now[key] == nil {
				now[key] = key.form(server.entry)
			}
		}
	}
	s.own = now
	return slices.SortedFunc(maps.Values(now), byName)
}

// form returns the session's own form of a tool.
func (k source) form(e Entry) tools.Tool {
	tool, spec := k.tool, k.tool.Spec()
	if spec.Name != k.name {
		spec.Name = k.name
		tool = renamed{tool, spec}
	}
	if e.CacheTTL > 0 && spec.ReadOnly {
		tool = tools.Cached(tool, e.CacheTTL)
	}
	return tool
}

// A renamed tool is one whose name another server's tool would have had too.
type renamed struct {
	tools.Tool
	spec tools.Spec
}

// Spec implements tools.Tool.
func (r renamed) Spec() tools.Spec { return r.spec }

// Close ends the servers that no other set uses. Nothing of them is left when it returns, and the
// host is not called any more.
func (s *Set) Close() {
	s.telling.Lock()
	s.silent = true
	s.telling.Unlock()
	s.mu.Lock()
	s.closed = true
	for name := range s.servers {
		s.drop(name)
	}
	s.mu.Unlock()
	s.leaving.Wait()
}

// tell calls f with the host, unless the set is closed.
func (s *Set) tell(f func(Host)) {
	s.telling.RLock()
	defer s.telling.RUnlock()
	if !s.silent {
		f(s.host)
	}
}

func notify(host Host) {
	if host.Changed != nil {
		host.Changed()
	}
}
