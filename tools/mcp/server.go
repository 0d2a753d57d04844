//go:build !no_mcp

// One server, for as long as its entry exists: it is started, listed, listened to, and started
// again when it ends. One goroutine does all of that; calls and status requests read what it has
// recorded.

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/ellipsis"
)

// Built reports that this build has the MCP client.
const Built = true

const (
	// defaultStart is how long a server may take to start and to list its tools.
	defaultStart = 30 * time.Second
	// firstPause and longestPause are the delays before a server that has ended is started again;
	// the delay doubles each time.
	firstPause, longestPause = 250 * time.Millisecond, 30 * time.Second
	// manyStarts is how many starts in a row may fail before the server is started only when a call
	// needs it.
	manyStarts = 5
	// steady is how long a server must have run for earlier failures to be forgotten.
	steady = time.Minute
)

var errSlow = errors.New("it has not started in time")

// A server is the server of one entry.
type server struct {
	entry  Entry
	start  time.Duration
	idle   time.Duration // how long it runs without a call
	kept   string        // the file of its list of tools; empty: the list is not kept
	listed string        // the sum of its present list; only run uses it
	stop   context.CancelFunc
	done   chan struct{} // closed: it has ended, and nothing of it is left
	read   chan struct{} // closed: its kept list was read, if there is one
	first  chan struct{} // closed: its tools are known, or the first start has failed
	wake   chan struct{} // of size 1: a call needs a server that is stopped or abandoned, or that waits for its next start
	quiet  *time.Timer   // expires when the server has been without a call for the idle time
	logs   *rate.Limiter // limits log messages

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when something below changes
	status  Status
	ready   bool // it has been ready once
	link    *link
	tools   []tools.Tool
	users   []*Set // the sets that use it
	uses    int    // calls that use it or wait for it
}

// newServer serves an entry, for its first user.
func (f *Fleet) newServer(e Entry, user *Set) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{
		entry: e, start: cmp.Or(f.StartLimit, defaultStart), idle: cmp.Or(e.IdleTimeout, f.IdleTimeout, DefaultIdleTimeout), kept: f.listPath(e, user),
		stop: stop, done: make(chan struct{}), read: make(chan struct{}), first: make(chan struct{}), wake: make(chan struct{}, 1),
		logs: rate.NewLimiter(1, 20), changed: make(chan struct{}), status: Status{Name: e.Name, Origin: e.Origin, State: NotStarted}, users: []*Set{user},
	}
	if s.idle < 0 {
		s.idle = math.MaxInt64
	}
	s.quiet = time.NewTimer(s.idle)
	go s.run(ctx)
	return s
}

// run serves until ctx ends. A server whose tools are known is not started before it is needed.
func (s *server) run(ctx context.Context) {
	defer close(s.done)
	once := sync.OnceFunc(func() { close(s.first) })
	if s.recall() {
		once()
		if !s.rest(ctx, 0, 0) {
			return
		}
	}
	for pause, failed := firstPause, 0; ; {
		began := time.Now()
		l, err := s.begin(ctx)
		if err != nil {
			failed++
			s.failed(ctx, err, failed)
		}
		once()
		if err == nil {
			failed = 0
			s.serve(ctx, l)
		}
		if time.Since(began) > steady {
			pause = firstPause
		}
		if !s.rest(ctx, pause, failed) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// rest waits before the next start, and reports whether there will be one.
func (s *server) rest(ctx context.Context, pause time.Duration, failed int) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		due, quiet := timer.C, s.quiet.C
		if failed >= manyStarts || s.stopped() {
			due, quiet = nil, nil
		}
		if s.listed == "" { // once it has listed its tools, it may stop
			quiet = nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-quiet:
			s.park()
			continue
		case <-s.wake:
		case <-due:
		}
		s.update(func() {
			s.status.State = Starting
			if s.ready {
				s.status.State = Restarting
			}
		})
		return true
	}
}

// begin connects and lists, within the limit for both.
func (s *server) begin(ctx context.Context) (*link, error) {
	if why := unfit(s.entry.Name); why != "" {
		return nil, errors.New(why)
	}
	life, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(s.start, func() { cancel(errSlow) })
	l, err := s.connect(life)
	if err == nil {
		l.quieten(life)
		if err = s.list(life, l); err == nil && !limit.Stop() {
			err = errSlow
		}
		if err != nil {
			l.release()
		}
	}
	if err != nil {
		if cause := context.Cause(life); errors.Is(cause, errSlow) {
			err = fmt.Errorf("%w, which is %s: %w", cause, s.start, err)
		}
		limit.Stop()
		cancel(nil)
		return nil, err
	}
	drop := l.cancel
	l.cancel = func() { drop(); cancel(nil) }
	s.update(func() {
		s.link, s.ready, s.status.State, s.status.Why = l, true, Ready, ""
		if s.uses == 0 {
			s.quiet.Reset(s.idle)
		}
	})
	return l, nil
}

// list requests the tools and records them.
func (s *server) list(ctx context.Context, l *link) error {
	offered, beyond, err := l.list(ctx)
	if err != nil {
		if l.ended() {
			return fmt.Errorf("%w; %s", err, l.why())
		}
		return err
	}
	now := listing{Tools: offered, Unread: beyond}
	if info := l.session.InitializeResult().ServerInfo; info != nil {
		now.Server = ellipsis.Runes(line(info.Name+" "+info.Version), 100)
	}
	return s.keep(now)
}

// serve listens until the connection or ctx has ended, or the server was stopped because nothing
// used it, and releases the connection.
func (s *server) serve(ctx context.Context, l *link) {
	s.tell(notify)
	// A server that changes its tools all the time is asked for them once a second.
	often := rate.NewLimiter(1, 3)
	for s.lasts(ctx, l) {
		if often.Wait(ctx) == nil {
			s.listAgain(ctx, l)
		}
	}
	if s.stopped() {
		l.release()
		return
	}
	if ctx.Err() == nil {
		why := l.why()
		s.update(func() { s.link, s.status.State, s.status.Why = nil, Restarting, why })
		s.notice("mcp_server_gone", "The MCP server %s has ended: %s. It is started again.", s.entry.Name, why)
	} else {
		s.update(func() { s.link = nil })
	}
	l.release()
}

func (s *server) listAgain(ctx context.Context, l *link) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.start, errSlow)
	defer cancel()
	if err := s.list(ctx, l); err != nil {
		if !l.ended() && ctx.Err() == nil {
			s.notice("mcp_left_out", "The MCP server %s reports that its tools have changed, but could not list them: %s. The previous ones stay listed.", s.entry.Name, s.entry.brief(err))
		}
		return
	}
	s.tell(notify)
}

// failed records a failed start.
func (s *server) failed(ctx context.Context, err error, times int) {
	if ctx.Err() != nil {
		return
	}
	why := ellipsis.Runes(clean(s.entry.words(err)), 1000)
	s.update(func() { s.status.State, s.status.Why = Failed, why })
	switch times {
	case 1:
		s.notice("mcp_server_failed", "The MCP server %s (%s) did not start: %s. More attempts follow.", s.entry.Name, s.entry.Origin, why)
	case manyStarts:
		s.notice("mcp_server_failed", "The MCP server %s (%s) did not start %d times in a row: %s. The next attempt is made when one of its tools is called, or its entry changes.", s.entry.Name, s.entry.Origin, times, why)
	}
}

// connected returns the present connection, other than the lost one. It waits while the server
// starts, until ctx ends, but does not wait for a start that is only delayed.
// The server counts as used.
func (s *server) connected(ctx context.Context, lost *link) (*link, error) {
	for hurried, woken := false, false; ; {
		s.mu.Lock()
		l, status, changed := s.link, s.status, s.changed
		s.mu.Unlock()
		switch {
		case l != nil && l != lost && !l.ended():
			return l, context.Cause(ctx)
		case context.Cause(ctx) != nil:
			return nil, s.late(ctx)
		case l == nil && status.State == Failed && woken:
			return nil, s.unavailable(status.Why)
		case l == nil && (status.State == Failed || status.State.resting()):
			woken = true
			signal(s.wake)
		case l == nil && status.State == Restarting && !hurried:
			hurried = true
			signal(s.wake)
		}
		select {
		case <-changed:
		case <-s.done:
			return nil, s.unavailable("its entry is gone")
		case <-ctx.Done():
			return nil, s.late(ctx)
		}
	}
}

// late returns the fault of a call that was not sent because its context has ended.
func (s *server) late(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), tools.ErrTimeout) {
		return s.unavailable("it was not ready when the call's time limit ran out")
	}
	return context.Cause(ctx)
}

// signal wakes the present or next receiver of c, which is of size 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *server) unavailable(why string) error {
	return fault.Failedf("server_unavailable", "The MCP server %s is not running, and the call was not sent: %s. The next call starts it again; if that fails too, its entry (%s) must be fixed.", s.entry.Name, why, s.entry.Origin)
}

// update changes what others read, and wakes those who wait for a change.
func (s *server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// receive reports warnings and errors that the server logs.
func (s *server) receive(level, text string) {
	switch level {
	case "debug", "info", "notice":
		return
	}
	if s.logs.Allow() {
		s.notice("mcp_log", "The MCP server %s logs, as %s: %s", s.entry.Name, line(level), text)
	}
}

// heard counts a line that is not a message, and reports the first.
func (s *server) heard(junk []byte) {
	s.mu.Lock()
	s.status.Junk++
	first := s.status.Junk == 1
	s.mu.Unlock()
	if first {
		s.notice("mcp_junk", "The MCP server %s prints lines to its standard output that are not messages of the protocol; they are ignored and should go to the standard error. The first was: %q", s.entry.Name, ellipsis.Runes(clean(string(junk[:min(len(junk), edge)])), 200))
	}
}

// tell calls f with the host of each set that uses the server.
func (s *server) tell(f func(Host)) {
	s.mu.Lock()
	users := slices.Clone(s.users)
	s.mu.Unlock()
	for _, user := range users {
		user.tell(f)
	}
}

func (s *server) notice(code, format string, args ...any) {
	n := Notice{Code: code, Server: s.entry.Name, Message: fmt.Sprintf(format, args...)}
	s.tell(func(host Host) {
		if host.Notice != nil {
			host.Notice(n)
		}
	})
}

// host returns the session that the server is started for: the one that has used it longest.
func (s *server) host() Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) == 0 { // the last user has left, and the server is ending
		return Host{Open: func(Entry) *sandbox.Box { return nil }}
	}
	return s.users[0].host
}

// leave removes a user and reports whether none is left.
func (s *server) leave(user *Set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = slices.DeleteFunc(s.users, func(other *Set) bool { return other == user })
	return len(s.users) == 0
}

// snapshot returns the present state and tools.
func (s *server) snapshot() (Status, []tools.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.LeftOut = slices.Clone(status.LeftOut)
	return status, s.tools
}

// end ends the server and returns when nothing of it is left.
func (s *server) end() {
	s.stop()
	<-s.done
}
