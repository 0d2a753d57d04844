// The shells that wait for a call, in all sessions of a daemon together. early_linux.go starts one,
// and lets it go on.

package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// manyEarly is how many shells wait at most.
	manyEarly = 8
	// earlyLife is how long one waits at most.
	earlyLife = time.Minute
	// busyFor is how long a call keeps shells from being started beside it, in ticks of 10 ms: what it
	// runs may last for hours. The number is our own.
	busyFor = 100
	// quietFor is how long no call must have ended before a shell is started for the next one: calls that
	// follow each other at once would only compete with it.
	quietFor = 20 * time.Millisecond
)

// earlyShells are those of a Runner.
type earlyShells struct {
	works   sync.Map       // programs, each with whether a script can be written into its memory
	running sync.WaitGroup // what starts and ends shells

	mu     sync.Mutex
	shells []*earlyShell // that wait, or are being started; the oldest first
	off    bool          // none is to wait
	unfit  *Policy       // the latest under which none can; nil: none was met
	soon   *time.Timer   // starts the next; nil: no call has ended
}

// Prepare has a shell started beforehand, in a moment, for a command that is as c in everything but its
// script, unless one waits, or other calls run then: those come first. It returns at once.
func (r *Runner) Prepare(c Command) {
	r.early.mu.Lock()
	defer r.early.mu.Unlock()
	if r.early.soon != nil {
		r.early.soon.Stop()
	}
	r.early.soon = time.AfterFunc(quietFor, func() { r.prepare(c) })
}

// prepare is Prepare without the moment.
func (r *Runner) prepare(c Command) {
	if c.Early == nil || len(c.Policy.Fresh) > 0 || c.Stderr == nil || c.Input != nil || c.Stdin != nil || r.isBusy() {
		return
	}
	like := Command{ID: "early", Path: c.Path, Args: c.Args[: len(c.Args)-1 : len(c.Args)-1], Dir: c.Dir, Env: c.Early.Env, Policy: c.Policy}
	e := &r.early
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.off && !e.serves(like) && (e.unfit == nil || !reflect.DeepEqual(*e.unfit, like.Policy)) {
		e.running.Go(func() { r.wait(like) })
	}
}

// isBusy reports whether a shell runs that was started a moment ago for a call that waits for it.
func (r *Runner) isBusy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := ticks()
	for p := range r.trees {
		if p.command.Early != nil && !isClosed(p.outlived) && now-p.since < busyFor {
			return true
		}
	}
	return false
}

// serves reports whether a shell waits for c. mu is held.
func (e *earlyShells) serves(c Command) bool {
	return slices.ContainsFunc(e.shells, func(s *earlyShell) bool { return alike(s.like, c) })
}

// alike reports whether one shell can serve both commands, whose Args lack the script.
func alike(a, b Command) bool {
	return a.Path == b.Path && a.Dir == b.Dir && slices.Equal(a.Args, b.Args) && slices.Equal(a.Env, b.Env) && reflect.DeepEqual(a.Policy, b.Policy)
}

// wait starts a shell and has it wait. A call that comes meanwhile takes it all the same: it was begun
// before.
func (r *Runner) wait(like Command) {
	program, err := identityAt(like.Path)
	if err != nil || !r.worksEarly(like, program) {
		return
	}
	e, s := &r.early, &earlyShell{like: like, program: program, ready: make(chan struct{})}
	e.mu.Lock()
	if e.off || e.serves(like) {
		e.mu.Unlock()
		return
	}
	e.shells = append(e.shells, s)
	if oldest := e.shells[0]; len(e.shells) > manyEarly {
		r.dropEarly(func(o *earlyShell) bool { return o == oldest })
	}
	s.due = time.AfterFunc(earlyLife, func() { r.endEarly(func(o *earlyShell) bool { return o == s }) })
	e.mu.Unlock()
	if s.err = r.launchEarly(s); s.err != nil {
		r.endEarly(func(o *earlyShell) bool { return o == s }) // the next call starts its own, and reports the error
		r.noteUnfit(like, s.err)
	}
	close(s.ready)
}

// worksEarly reports whether this bash runs a script that was written into its memory. It tries that
// until it has found out.
func (r *Runner) worksEarly(like Command, program identity) bool {
	if works, tried := r.early.works.Load(program); tried {
		return works == true
	}
	works, err := r.tryEarly(like, program)
	if err == nil || errors.Is(err, fs.ErrPermission) {
		r.early.works.Store(program, works)
	}
	r.noteUnfit(like, err)
	return works
}

// noteUnfit notes after an error whether the policy is one under which no shell can wait.
func (r *Runner) noteUnfit(like Command, err error) {
	if !errors.Is(err, unix.ENOTSUP) {
		return
	}
	r.early.mu.Lock()
	defer r.early.mu.Unlock()
	r.early.unfit = &like.Policy
}

// endEarly ends the shells that are meant, in other goroutines.
func (r *Runner) endEarly(meant func(*earlyShell) bool) {
	r.early.mu.Lock()
	defer r.early.mu.Unlock()
	r.dropEarly(meant)
}

// dropEarly is endEarly where mu is held.
func (r *Runner) dropEarly(meant func(*earlyShell) bool) {
	e := &r.early
	e.shells = slices.DeleteFunc(slices.Clone(e.shells), func(s *earlyShell) bool {
		if meant(s) {
			s.due.Stop()
			e.running.Go(s.discard)
			return true
		}
		return false
	})
}

// takeEarly returns a shell that was started beforehand and runs c from now on; nil: there is none.
func (r *Runner) takeEarly(c Command) *Process {
	e := &r.early
	e.mu.Lock()
	if len(e.shells) == 0 || !mayTakeEarly(c) {
		e.mu.Unlock()
		return nil
	}
	like := c
	like.Args, like.Env = c.Args[:len(c.Args)-1], c.Early.Env
	at := slices.IndexFunc(e.shells, func(s *earlyShell) bool { return alike(s.like, like) })
	if at < 0 {
		e.mu.Unlock()
		return nil
	}
	s := e.shells[at]
	e.shells = slices.Delete(slices.Clone(e.shells), at, at+1)
	s.due.Stop()
	e.running.Add(1)
	e.mu.Unlock()
	defer e.running.Done()
	if <-s.ready; s.err != nil || !s.isCurrent() || !r.adopt(s, c) {
		e.running.Go(s.discard) // the call does not wait for its end
		return nil
	}
	return s.process
}

func mayTakeEarly(c Command) bool {
	return c.Early != nil && c.Stderr != nil && c.Input == nil && c.Stdin == nil && len(c.Policy.Fresh) == 0 &&
		len(c.Early.Script) <= maxEarly && len(c.Early.Prelude) <= maxEarlyPrelude
}

// Waiting returns how many shells wait for a call.
func (r *Runner) Waiting() int {
	r.early.mu.Lock()
	defer r.early.mu.Unlock()
	return len(r.early.shells)
}

// SetMemoryShort ends all shells that wait while memory is short, and has none started.
func (r *Runner) SetMemoryShort(short bool) {
	r.mu.Lock()
	off := short || r.closed
	r.mu.Unlock()
	r.early.mu.Lock()
	defer r.early.mu.Unlock()
	if r.early.off = off; off {
		r.dropEarly(func(*earlyShell) bool { return true })
	}
}

// closeEarly ends all shells that wait, for good. Nothing is being started.
func (r *Runner) closeEarly() {
	r.SetMemoryShort(true)
	r.early.running.Wait()
}

// adopt makes the process that of c and lets it go on. It reports whether it has.
func (r *Runner) adopt(s *earlyShell, c Command) bool {
	p := s.process
	p.since, p.command = ticks(), c
	p.command.Args, p.command.Extra, p.command.Env = append(s.like.Args[:len(s.like.Args):len(s.like.Args)], c.Early.Script), nil, s.like.Env
	p.confine.watch = c.Policy.Absent
	for i, to := range []io.Writer{c.Stdout, c.Stderr} {
		p.outputs[i].to = to
	}
	if p.confine.supervisor != nil {
		before := c.before
		p.confine.supervisor.handed.Store(&before)
	}
	if r.enter(p) != nil {
		return false
	}
	defer r.starts.Done()
	if s.goOn(c.Early) != nil {
		r.leave(p)
		return false
	}
	p.attend()
	return true
}
