//go:build !no_lsp

// The servers of one session: which there are, when one is started, and how all are ended.

package language

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
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
}

// A key identifies a server.
type key struct{ root, language string }

// A place is a server's entry in a Set; one server may replace another there.
type place struct {
	last     *start
	counted  bool      // the end of its server was counted
	failures int       // failures in a row of servers that had not answered anything
	next     time.Time // no start before that time
}

// A start is one start of a server.
type start struct {
	done chan struct{} // closed when it has succeeded or failed; then one of the others is set
	live *server       // it may have ended
	err  error
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
	s.cancel()
	s.mu.Unlock()
	s.work.Wait()
}

// Used reports whether a server has been started.
func (s *Set) Used() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.places) > 0
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
	_, err := s.configured(path)
	return err
}

func (s *Set) configured(path string) (Server, error) {
	if s == nil {
		return Server{}, fault.Failedf("no_language_server", "This session has no language servers.")
	}
	return For(s.host.Servers(), path)
}

// Runs reports whether the file's server runs.
func (s *Set) Runs(path string) bool { return s.running(path) != nil }

// Busy returns what the file's server is doing on its own, such as loading the project; empty:
// nothing, or it does not run.
func (s *Set) Busy(path string) string {
	if srv := s.running(path); srv != nil {
		return srv.news.busy()
	}
	return ""
}

// rootOf returns the innermost root that holds the file, or else the first one.
func (s *Set) rootOf(path string) string {
	best := ""
	for _, root := range s.host.Roots {
		if pathname.Within(root, path) && len(root) > len(best) {
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
	spec, err := s.configured(path)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.places[key{s.rootOf(path), spec.Language}]; at != nil {
		return at.last.ready()
	}
	return nil
}

// Servers returns the servers that were started, by language and root.
func (s *Set) Servers() (all []Status) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, at := range s.places {
		status := Status{Language: k.language, Root: k.root, State: "starting"}
		switch {
		case at.last == nil || !at.last.isDone():
		case at.last.ready() != nil:
			status.State = "ready"
		default:
			status.State = "failed"
			if at.last.err != nil {
				status.Why = at.last.err.Error()
			}
		}
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Or(cmp.Compare(a.Language, b.Language), cmp.Compare(a.Root, b.Root)) })
	return all
}

// isDone reports whether it has succeeded or failed.
func (t *start) isDone() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// ready returns the server if it has started and not ended, or nil.
func (t *start) ready() *server {
	if t.isDone() && t.live != nil && !t.live.dying() {
		return t.live
	}
	return nil
}

// server returns the server of the file, and starts it if needed. A start continues after ctx has
// ended: the next call finds the server ready.
func (s *Set) server(ctx context.Context, path string) (*server, error) {
	spec, err := s.configured(path)
	if err != nil {
		return nil, err
	}
	for {
		last, err := s.look(key{s.rootOf(path), spec.Language}, spec)
		if err != nil {
			return nil, err
		}
		select {
		case <-last.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if last.err != nil {
			return nil, last.err
		}
		if live := last.ready(); live != nil && slices.Equal(live.spec.Command, spec.Command) {
			return live, nil
		}
	}
}

// look returns the start of the running server, or one that is in progress, or why there will be
// none. If it is too early for another start, it returns one that only waits.
func (s *Set) look(k key, spec Server) (*start, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, ErrClosed
	}
	at := s.places[k]
	if at == nil {
		if len(s.places) >= maxServers {
			return nil, failedf("The session has %d language servers, the most that it may have. Do without this one.", maxServers)
		}
		at = &place{}
		s.places[k] = at
		return s.begin(at, k, spec), nil
	}
	select {
	case <-at.last.done:
	default:
		return at.last, nil
	}
	if live := at.last.ready(); live != nil && slices.Equal(live.spec.Command, spec.Command) {
		return at.last, nil
	}
	switch late := at.backOff(s.limits.firstBackOff); {
	case late > waitBackOff:
		return nil, failedf("%s has ended %d times in a row without an answer. It is started again in %s; do without until then.",
			spec.name(), at.failures, late.Round(time.Second))
	case late > 0:
		wait := &start{done: make(chan struct{})}
		time.AfterFunc(late, func() { close(wait.done) })
		return wait, nil
	}
	return s.begin(at, k, spec), nil
}

// begin starts a server, once the last one has ended. mu is held.
func (s *Set) begin(at *place, k key, spec Server) *start {
	before, next := at.last, &start{done: make(chan struct{})}
	at.last, at.counted = next, false
	s.work.Go(func() {
		if before != nil && before.live != nil {
			before.live.end(errReplaced)
			<-before.live.gone
		}
		next.live, next.err = s.launch(s.ctx, spec, k.root)
		s.mu.Lock()
		defer s.mu.Unlock()
		if next.err != nil && fault.From(next.err).Code == "language_server_failed" {
			at.failed(s.limits.firstBackOff)
		}
		if next.err != nil && s.ctx.Err() != nil {
			next.err = ErrClosed
		}
		close(next.done)
	})
	return next
}

// backOff counts the end of the last server, and returns how long no server is started. The set's
// mu is held.
func (p *place) backOff(first time.Duration) time.Duration {
	if live := p.last.live; live != nil && live.dying() && !p.counted {
		p.counted = true
		if live.proven.Load() {
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
