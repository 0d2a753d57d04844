// Package sandbox starts the processes of tools and ends them, each with everything that it has
// started in turn. It does not know what a call, a tool or a client is.
//
// Three things identify the members of a tree: descent, while the chain of parents exists; the
// kernel's session, which a process leaves only for one of its own; and a marker in the
// environment, which every process inherits. The daemon is a child subreaper, so a process whose
// parents have died becomes the daemon's own child. One look at the list of those children shows
// whether anything is left of a tree that has lost its main process.
package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed is the error of Start once the Runner is closing.
var ErrClosed = errors.New("the daemon is shutting down and starts no more processes")

// A Runner starts processes. A daemon has one. It is safe for concurrent use.
//
// It treats every child of the daemon in another kernel session as its own. Code that starts a
// process by other means must leave it in the daemon's session, and end it itself.
type Runner struct {
	generation string   // the marker of this daemon, without a call
	null       *os.File // the standard input of processes without one
	own        int      // the daemon's kernel session
	started    atomic.Uint64
	reaper     reaper
	watcher    *watcher
	host       hostCapabilities
	early      earlyShells

	mu     sync.Mutex
	trees  map[*Process]bool // started, or about to be
	closed bool
	starts sync.WaitGroup // those under way
}

// waited are the children of this process that some goroutine waits for by number. All Runners of
// the process share them: none may collect what another has started.
var waited struct {
	// starting is read-locked from before a child exists until it is in mains, and write-locked by
	// a reaper.
	starting sync.RWMutex
	mains    sync.Map // their numbers
}

// New returns a Runner and determines what can confine processes here. outlet serves the ways out
// to the network; nil: no process has one. home is a path that no other running daemon uses. The
// calling process becomes a child subreaper. New starts a watcher that ends what the process leaves
// behind if it is killed; for this, the program's main must begin with WatcherMain. Sweep ends what
// an earlier daemon of the same home has left.
func New(home string, outlet Outlet) (*Runner, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	r := &Runner{
		generation: place(home) + rand.Text() + ".", null: null, trees: map[*Process]bool{},
	}
	if r.own, err = becomeSubreaper(); err != nil {
		_ = null.Close()
		return nil, fmt.Errorf("becoming a child subreaper: %w", err)
	}
	r.reaper.start(r.reap)
	if r.watcher, err = r.watch(); err != nil {
		r.reaper.stop()
		_ = null.Close()
		return nil, fmt.Errorf("starting the watcher: %w", err)
	}
	r.host.probe(outlet, r.Denied)
	return r, nil
}

// Close stops every process that still runs, waits for all of them, and ends the watcher.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.starts.Wait()
	r.closeEarly()
	r.mu.Lock()
	running := slices.Collect(maps.Keys(r.trees))
	r.mu.Unlock()
	for _, p := range running {
		p.Stop()
	}
	for _, p := range running {
		<-p.Done()
	}
	_, stuck := killMarked(r.generation)
	err := r.watcher.close(len(stuck) == 0)
	r.reaper.stop()
	r.host.close()
	return errors.Join(err, r.null.Close())
}

// enter registers p before its process exists. The caller must call starts.Done once the process
// exists, or will not.
func (r *Runner) enter(p *Process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.trees[p] = true
	r.starts.Add(1)
	return nil
}

func (r *Runner) leave(p *Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.trees, p)
}

// spawn starts a child. The caller must wait for it by its number and forget it afterwards.
func spawn(path string, args []string, attr *os.ProcAttr) (*os.Process, error) {
	waited.starting.RLock()
	defer waited.starting.RUnlock()
	child, err := os.StartProcess(path, args, attr)
	if err != nil {
		return nil, err
	}
	waited.mains.Store(child.Pid, nil)
	return child, nil
}

// collect waits for a child that spawn has started.
func collect(child *os.Process) (*os.ProcessState, error) {
	waited.starting.RLock()
	defer waited.starting.RUnlock()
	defer waited.mains.Delete(child.Pid)
	return child.Wait()
}
