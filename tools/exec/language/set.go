//go:build !no_lsp

// The servers of one session: which there are, when one is started, and how all are ended.

package language

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
)

// ErrClosed is the error of all methods after Close.
var ErrClosed = errors.New("the session is closed")

var errReplaced = errors.New("settings name another command")

// A Set is the language servers of one session. It is safe for concurrent use. A nil Set is valid
// and has no servers.
type Set struct {
	host   Host
	limits limits
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // one for each server that runs or is being started

	mu     sync.Mutex
	places map[key]*place
	closed bool
}

// A key identifies a server.
type key struct{ root, language string }

// A place is a server's entry in a Set; one server may replace another there.
type place struct {
	live     *server       // the last that has started, though it may have ended; nil: none
	counted  bool          // its end was counted
	starting chan struct{} // closed when the present start has succeeded or failed; nil: no start in progress
	err      error         // why the last one did not start
	failures int           // failures in a row of servers that had not answered anything
	next     time.Time     // no start before that time
}

// NewSet returns a set without running servers.
func NewSet(host Host) *Set {
	ctx, cancel := context.WithCancel(context.Background())
	return &Set{host: host, limits: ordinary, ctx: ctx, cancel: cancel, places: map[key]*place{}}
}

// Close ends all servers and waits for their end.
func (s *Set) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}

// Unavailable returns, as a sentence, why no server can be used; empty: one can.
func (s *Set) Unavailable() string {
	if s == nil {
		return "This session has no language servers."
	}
	var names []string
	environ := sandbox.Environ(s.host.Environ())
	for _, spec := range s.host.Servers() {
		if len(spec.Command) == 0 {
			continue
		}
		if slices.ContainsFunc(s.host.Roots, func(root string) bool { _, err := find(spec, root, environ); return err == nil }) {
			return ""
		}
		names = append(names, spec.Command[0])
	}
	if len(names) == 0 {
		return `No language server is configured; settings name one in "lsp".`
	}
	return "None of the configured language servers is installed: " + strings.Join(names, ", ") + `. Install one, or name it in settings in "lsp".`
}

// Check reports whether a server is configured for the file. Its error is a fault no_language_server.
func (s *Set) Check(path string) error {
	if s == nil {
		return fault.Failedf("no_language_server", "This session has no language servers.")
	}
	_, err := For(s.host.Servers(), path)
	return err
}

// Runs reports whether the file's server runs.
func (s *Set) Runs(path string) bool { return s.running(path) != nil }

// Busy returns what the file's server is doing on its own, such as loading the project; empty:
// nothing, or it does not run.
func (s *Set) Busy(path string) string {
	if srv := s.running(path); srv != nil {
		return srv.loads.busy()
	}
	return ""
}

// rootOf returns the innermost root that holds the file, or else the first one.
func (s *Set) rootOf(path string) string {
	best := ""
	for _, root := range s.host.Roots {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) && len(root) > len(best) {
			best = root
		}
	}
	if best == "" && len(s.host.Roots) > 0 {
		best = s.host.Roots[0]
	}
	return best
}

// running returns the server of the file if it runs and is ready, or nil.
func (s *Set) running(path string) *server {
	if s == nil {
		return nil
	}
	spec, err := For(s.host.Servers(), path)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.places[key{s.rootOf(path), spec.Language}]
	if at == nil || at.live == nil || at.live.dying() {
		return nil
	}
	return at.live
}

// server returns the server of the file, and starts it if needed. A start continues after ctx has
// ended: the next call finds the server ready.
func (s *Set) server(ctx context.Context, path string) (*server, error) {
	spec, err := For(s.host.Servers(), path)
	if err != nil {
		return nil, err
	}
	root := s.rootOf(path)
	for {
		live, wait, err := s.look(key{root, spec.Language}, spec)
		if live != nil || err != nil {
			return live, err
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
}

// look returns the running server, or a function to wait before looking again, or why there will be
// none.
func (s *Set) look(k key, spec Server) (live *server, wait func(context.Context) error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	at := s.places[k]
	if at == nil {
		if len(s.places) >= maxServers {
			return nil, nil, fault.Failedf("language_server_failed", "The session has %d language servers, the most that it may have. Do without this one.", maxServers)
		}
		at = &place{}
		s.places[k] = at
	}
	if at.starting != nil {
		return nil, s.awaitStart(at), nil
	}
	if live := at.live; live != nil && !live.dying() && slices.Equal(live.spec.Command, spec.Command) {
		return live, nil, nil
	}
	if late := at.backOff(s.limits.firstBackOff); late > waitBackOff {
		return nil, nil, fault.Failedf("language_server_failed", "%s has ended %d times in a row without an answer. It is started again in %s; do without until then.",
			spec.name(), at.failures, late.Round(time.Second))
	} else if late > 0 {
		return nil, pause(late), nil
	}
	s.begin(at, k, spec)
	return nil, s.awaitStart(at), nil
}

// begin starts a server. mu is held.
func (s *Set) begin(at *place, k key, spec Server) {
	at.starting = make(chan struct{})
	before := at.live
	at.live, at.counted = nil, false
	s.work.Go(func() {
		if before != nil {
			before.end(errReplaced)
			<-before.gone
		}
		live, err := s.launch(s.ctx, spec, k.root)
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.live, at.err = live, err; err != nil && fault.From(err).Code == "language_server_failed" {
			at.failed(s.limits.firstBackOff)
		}
		close(at.starting)
		at.starting = nil
	})
}

// awaitStart returns a function that waits for the present start. mu is held, but not while it
// waits.
func (s *Set) awaitStart(at *place) func(context.Context) error {
	started := at.starting
	return func(ctx context.Context) error {
		select {
		case <-started:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.live != nil || at.starting != nil {
			return nil
		}
		if s.closed {
			return ErrClosed
		}
		return at.err
	}
}

// pause returns a function that waits for a time.
func pause(late time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(late)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// backOff counts the end of the last server, and returns how long no server is started. The set's
// mu is held.
func (p *place) backOff(first time.Duration) time.Duration {
	if p.live != nil && p.live.dying() && !p.counted {
		p.counted = true
		if p.live.proven.Load() {
			p.failures, p.next = 0, time.Time{}
		} else {
			p.failed(first)
		}
	}
	return time.Until(p.next)
}

// failed counts a failure and sets the delay of the next start: none after the first, then twice as
// long each time.
func (p *place) failed(first time.Duration) {
	p.failures++
	if p.failures > 1 {
		p.next = time.Now().Add(min(first<<min(p.failures-2, 16), maxBackOff))
	}
}
