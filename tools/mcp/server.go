//go:build !no_mcp

// One server, from its entry's coming to its going: it is started, listed, listened to, and started again when it ends. One
// goroutine does all of that; calls and questions about it read what it has set. It does not know which sessions there are.

package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/ellipsis"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/sandbox"
)

// Built reports that this build has the MCP client.
const Built = true

const (
	// defaultStart is how long a server may take to start and to list its tools.
	defaultStart = 30 * time.Second
	// firstPause and longestPause are what a server that has ended is left before it is started again, doubled each time.
	firstPause, longestPause = 250 * time.Millisecond, 30 * time.Second
	// manyStarts is how many starts in a row may fail before a server is left alone until a call wants it.
	manyStarts = 5
	// steady is how long a server must have run for its past to be forgotten.
	steady = time.Minute
)

var errSlow = errors.New("it has not started in time")

// A server is one entry's.
type server struct {
	entry Entry
	start time.Duration
	stop  context.CancelFunc
	done  chan struct{} // closed: it has ended, and nothing of it is left
	first chan struct{} // closed: the first start has come to something
	wake  chan struct{} // of size 1: a call wants a server that was given up, or that rests
	logs  *rate.Limiter // of what it logs

	mu      sync.Mutex
	changed chan struct{} // closed, and made again, when something below changes
	status  Status
	ready   bool // it was, once
	link    *link
	tools   []tools.Tool
	junk    bool   // its junk was told
	users   []*Set // who learns of it
}

// newServer begins to serve an entry, for its first user.
func newServer(e Entry, start time.Duration, user *Set) *server {
	if start == 0 {
		start = defaultStart
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &server{
		entry: e, start: start, stop: stop, done: make(chan struct{}), first: make(chan struct{}), wake: make(chan struct{}, 1),
		logs: rate.NewLimiter(1, 20), changed: make(chan struct{}), status: Status{Name: e.Name, Origin: e.Origin, State: Starting}, users: []*Set{user},
	}
	go s.run(ctx)
	return s
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context) {
	defer close(s.done)
	pause, failed := firstPause, 0
	for once := sync.OnceFunc(func() { close(s.first) }); ; {
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

// rest waits before the next start, and reports that there is to be one.
func (s *server) rest(ctx context.Context, pause time.Duration, failed int) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	due := timer.C
	if failed >= manyStarts {
		due = nil
	}
	select {
	case <-ctx.Done():
		return false
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

// begin connects and lists, within the time for both.
func (s *server) begin(ctx context.Context) (*link, error) {
	if why := unfit(s.entry.Name); why != "" {
		return nil, errors.New(why)
	}
	life, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(s.start, func() { cancel(errSlow) })
	l, err := connect(life, s.entry, s.host(), s.receive, s.heard)
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
		if info := l.session.InitializeResult().ServerInfo; info != nil {
			s.status.Server = ellipsis.Runes(line(info.Name+" "+info.Version), 100)
		}
	})
	return l, nil
}

// list asks for the tools and takes them.
func (s *server) list(ctx context.Context, l *link) error {
	offered, beyond, err := l.list(ctx)
	if err != nil {
		if l.ended() {
			return fmt.Errorf("%w; %s", err, l.why())
		}
		return err
	}
	defined, leftOut := define(s.entry, offered, s.call)
	leftOut = append(leftOut, beyond...)
	s.mu.Lock()
	news := slices.ContainsFunc(leftOut, func(text string) bool { return !slices.Contains(s.status.LeftOut, text) })
	s.tools, s.status.Tools, s.status.LeftOut = defined, len(defined), leftOut
	s.mu.Unlock()
	if news {
		s.notice(Notice{Code: "mcp_left_out", Message: fmt.Sprintf("Not all that the MCP server %s offers is served. %s", s.entry.Name, some(leftOut))})
	}
	return nil
}

// some returns a few of several sentences.
func some(sentences []string) string {
	const few = 3
	text := ""
	for _, sentence := range sentences[:min(few, len(sentences))] {
		text += sentence + " "
	}
	if more := len(sentences) - few; more > 0 {
		text += fmt.Sprintf("(%d more.) ", more)
	}
	return text[:len(text)-1]
}

// serve listens until the connection or ctx has ended, and leaves nothing of it.
func (s *server) serve(ctx context.Context, l *link) {
	s.notify()
	// Who changes tools all the time is asked for them once a second.
	often := rate.NewLimiter(1, 3)
	for open := true; open; {
		select {
		case <-ctx.Done():
			open = false
		case <-l.gone:
			open = false
		case <-l.broken:
			open = false
		case <-l.relist:
			if often.Wait(ctx) == nil {
				s.listAgain(ctx, l)
			}
		}
	}
	if ctx.Err() == nil {
		why := l.why()
		s.update(func() { s.link, s.status.State, s.status.Why = nil, Restarting, why })
		s.notice(Notice{Code: "mcp_server_gone", Message: fmt.Sprintf("The MCP server %s has ended: %s. It is started again.", s.entry.Name, why)})
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
			s.notice(Notice{Code: "mcp_left_out", Message: fmt.Sprintf("The MCP server %s says that its tools have changed, and could not say which there are: %s. Those from before stay listed.", s.entry.Name, ellipsis.Runes(line(s.entry.words(err)), 300))})
		}
		return
	}
	s.notify()
}

// failed notes that a start has come to nothing.
func (s *server) failed(ctx context.Context, err error, times int) {
	if ctx.Err() != nil {
		return
	}
	why := ellipsis.Runes(clean(s.entry.words(err)), 1000)
	given := times == manyStarts
	s.update(func() { s.status.State, s.status.Why = Failed, why })
	switch {
	case times == 1:
		s.notice(Notice{Code: "mcp_server_failed", Message: fmt.Sprintf("The MCP server %s (%s) did not start: %s. It is tried again a few times.", s.entry.Name, s.entry.Origin, why)})
	case given:
		s.notice(Notice{Code: "mcp_server_failed", Message: fmt.Sprintf("The MCP server %s (%s) did not start %d times in a row: %s. It is left alone now until one of its tools is called, or its entry changes.", s.entry.Name, s.entry.Origin, times, why)})
	}
}

// connected returns the present connection, which is another than the lost one. It waits while the server starts, as long as ctx
// lets it, and does not wait for a start that is only put off.
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
		case l == nil && status.State == Failed:
			woken = true
			signal(s.wake)
		case l == nil && status.State == Restarting && !hurried:
			hurried = true
			signal(s.wake)
		}
		select {
		case <-changed:
		case <-s.done:
			return nil, s.unavailable("it is served no more")
		case <-ctx.Done():
			return nil, s.late(ctx)
		}
	}
}

// late is why a call was not sent whose context has ended.
func (s *server) late(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), tools.ErrTimeout) {
		return s.unavailable("it was not ready when the call's time limit ran out")
	}
	return context.Cause(ctx)
}

// signal tells whoever waits, or will, at c, which is of size 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *server) unavailable(why string) error {
	return fault.Failedf("server_unavailable", "The MCP server %s is not there, and the call was not sent: %s. It is started again when it is called again; if it stays so, its entry (%s) has to be fixed.", s.entry.Name, why, s.entry.Origin)
}

// update changes what others read, and tells those who wait.
func (s *server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// receive passes on what the server logs of trouble.
func (s *server) receive(level, text string) {
	switch level {
	case "debug", "info", "notice":
		return
	}
	if s.logs.Allow() {
		s.notice(Notice{Code: "mcp_log", Message: fmt.Sprintf("The MCP server %s logs, as %s: %s", s.entry.Name, line(level), text)})
	}
}

// heard counts what is no message, and tells of the first.
func (s *server) heard(junk []byte) {
	s.mu.Lock()
	s.status.Junk++
	told := s.junk
	s.junk = true
	s.mu.Unlock()
	if !told {
		s.notice(Notice{Code: "mcp_junk", Message: fmt.Sprintf("The MCP server %s prints to its standard output what is no message of the protocol, and it is left out. It should go to the standard error. The first was: %q", s.entry.Name, ellipsis.Runes(clean(string(junk[:min(len(junk), edge)])), 200))})
	}
}

// listeners are the sets that hear of the server.
func (s *server) listeners() []*Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users)
}

func (s *server) notice(n Notice) {
	n.Server = s.entry.Name
	for _, user := range s.listeners() {
		user.notice(n)
	}
}

// notify says that the tools are others, or may be.
func (s *server) notify() {
	for _, user := range s.listeners() {
		user.notify()
	}
}

func (s *server) join(user *Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, user)
}

// host is the session that the server is started for: of those that share it the one that has longest.
func (s *server) host() Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) == 0 { // the last has left, and the end is on its way
		return Host{Open: func(Entry) *sandbox.Box { return nil }}
	}
	return s.users[0].host
}

// leave takes a user away and reports that there is none left.
func (s *server) leave(user *Set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = slices.DeleteFunc(s.users, func(other *Set) bool { return other == user })
	return len(s.users) == 0
}

// snapshot returns the state and the tools as they are.
func (s *server) snapshot() (Status, []tools.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.LeftOut = slices.Clone(status.LeftOut)
	return status, s.tools
}

// end ends the server and waits until nothing of it is left.
func (s *server) end() {
	s.stop()
	<-s.done
}
