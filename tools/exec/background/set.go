// Package background holds the processes of a session that outlive the calls that started them. It
// does not know what they run, who reads their output, or how a client is notified of their end.
package background

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/exec/terminal"
)

// maxAlive is how many tasks of one session may run at the same time.
const maxAlive = 32

// maxLeft is how many processes that scripts have left running may run in one session at the same time.
const maxLeft = 8

// maxEnded is how many ended tasks can still be found by their ids; older ones are forgotten.
const maxEnded = 256

// ErrTooMany and ErrClosed are why Add accepts no task.
var (
	ErrTooMany = fmt.Errorf("%d background tasks are running, the limit of a session", maxAlive)
	ErrClosed  = errors.New("the session is closed")
)

// An Origin is where a task comes from.
type Origin struct {
	Call    string // the id of the call that started it
	Command string // what it runs, as the model wrote it
	Output  *spool.Output
}

// A Task is one background process. It is safe for concurrent use, also after its end.
type Task struct {
	Origin
	ID      string // unique among all daemons' tasks
	Started time.Time
	// Terminal is that of an interactive program; nil: it has none.
	Terminal *terminal.Terminal

	process *sandbox.Process
	done    chan struct{}
	exit    sandbox.Exit
	told    atomic.Bool // TakeAside has returned what was found at the end
}

// Done returns a channel that is closed when the task has ended, nothing of it is left, and its
// output is complete.
func (t *Task) Done() <-chan struct{} { return t.done }

// Exit returns how the task has ended; ok is false while it has not.
func (t *Task) Exit() (exit sandbox.Exit, ok bool) {
	select {
	case <-t.done:
		return t.exit, true
	default:
		return sandbox.Exit{}, false
	}
}

// TakeAside returns what the task has left at protected paths, since the last call of TakeAside.
func (t *Task) TakeAside() []sandbox.Denial {
	aside := t.process.TakeAside()
	if exit, ended := t.Exit(); ended && t.told.CompareAndSwap(false, true) {
		aside = append(aside, exit.Aside()...)
	}
	return aside
}

// Stop ends the task and everything that it has started, and returns at once: see Done.
func (t *Task) Stop() { t.process.Stop() }

// Listening returns the TCP ports on which processes of the task listen now.
func (t *Task) Listening() []sandbox.Listening { return t.process.Listening() }

// Dial connects to the server that listens on the port in the network of the task.
func (t *Task) Dial(ctx context.Context, port int) (*net.TCPConn, error) {
	return t.process.Dial(ctx, port)
}

// AwaitMore returns when more than seen bytes have been printed, when the task has ended, or when
// ctx ends.
func (t *Task) AwaitMore(ctx context.Context, seen int64) {
	for {
		changed := t.Output.Changed()
		if t.Output.Total() > seen {
			return
		}
		select {
		case <-changed:
			if t.Output.Ended() {
				<-t.done // which follows at once, so that the caller sees the exit as well
			}
		case <-ctx.Done():
			return
		}
		if _, ended := t.Exit(); ended {
			return
		}
	}
}

// A Set is the background tasks of one session. It is safe for concurrent use.
type Set struct {
	events Events
	work   sync.WaitGroup

	mu     sync.Mutex
	tasks  []*Task // oldest first
	alive  int
	left   int // see Leave
	closed bool
}

// Events are called on a goroutine of the task, which Close waits for. nil: not called.
type Events struct {
	Ended    func(*Task) // once for each task that ends
	Listened func(*Task) // after a process of the task has begun to listen on a TCP port, also before it was a task
}

// NewSet returns an empty set.
func NewSet(events Events) *Set { return &Set{events: events} }

// Add makes a task of the process that start returns, with its terminal or nil. If there is no room for one, start is not
// called; an error of start is returned. The task closes its output when it ends.
func (s *Set) Add(from Origin, start func() (*sandbox.Process, *terminal.Terminal, error)) (*Task, error) {
	if err := s.reserve(); err != nil {
		return nil, err
	}
	process, screen, err := start()
	if err != nil {
		s.mu.Lock()
		s.alive--
		s.mu.Unlock()
		s.work.Done()
		return nil, err
	}
	t := &Task{Origin: from, ID: newID(), Started: time.Now(), Terminal: screen, process: process, done: make(chan struct{})}
	s.mu.Lock()
	s.tasks = append(s.tasks, t)
	closed := s.closed
	s.mu.Unlock()
	if closed {
		t.Stop() // Close has begun meanwhile, and is waiting
	}
	go s.follow(t)
	return t, nil
}

// newID returns an id that is short enough for a model to copy, and random so that a task of a
// later daemon has another one.
func newID() string { return "bash_" + uuid.NewString()[:8] }

func (s *Set) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.alive >= maxAlive:
		return ErrTooMany
	}
	s.alive++
	s.work.Add(1)
	return nil
}

// follow waits for the end of a task.
func (s *Set) follow(t *Task) {
	defer s.work.Done()
	s.announce(t)
	t.exit = t.process.Wait()
	if err := t.Output.Close(); err != nil && t.exit.Output == nil {
		t.exit.Output = err
	}
	close(t.done)
	s.mu.Lock()
	s.alive--
	s.forget()
	s.mu.Unlock()
	if s.events.Ended != nil {
		s.events.Ended(t)
	}
}

// pause is how long the next report about ports waits, so that a task that opens and closes ports
// all the time causes few of them. The number is our own.
const pause = 100 * time.Millisecond

// announce reports the ports of a task until the task ends.
func (s *Set) announce(t *Task) {
	for {
		select {
		case <-t.process.Done():
			return
		case <-t.process.Listened():
			if s.events.Listened != nil {
				s.events.Listened(t)
			}
			select {
			case <-t.process.Done():
			case <-time.After(pause):
			}
		}
	}
}

// forget drops the oldest ended tasks, if there are too many. mu is held.
func (s *Set) forget() {
	over := len(s.tasks) - s.alive - maxEnded
	s.tasks = slices.DeleteFunc(s.tasks, func(t *Task) bool {
		_, ended := t.Exit()
		if !ended || over <= 0 {
			return false
		}
		over--
		return true
	})
}

// Leave counts n more processes that a script has left running, as far as there is room for them,
// until done is closed. It returns how many it has counted.
func (s *Set) Leave(n int, done <-chan struct{}) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	n = min(n, maxLeft-s.left)
	s.left += n
	s.work.Go(func() {
		<-done
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left -= n
	})
	return n
}

// Get returns the task with an id; nil: there is none.
func (s *Set) Get(id string) *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// List returns the tasks, oldest first: all that run and the last 256 that have ended.
func (s *Set) List() []*Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tasks)
}

// Alive returns how many tasks run.
func (s *Set) Alive() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

// Close stops all tasks and waits for their end. It must not be called from an event.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	tasks := slices.Clone(s.tasks)
	s.mu.Unlock()
	for _, t := range tasks {
		t.Stop()
	}
	s.work.Wait()
}
