// What the processes of a call leave in git directories while they run, and when they have ended. It is judged in one place,
// tools/fs/repo: at once where the sandbox reports what the call changes, every few seconds elsewhere, and at the end.

package pipeline

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
)

// A gitWatch moves aside what processes of a call leave where it makes git run programs.
type gitWatch struct {
	watch *repo.Watch
	// open reports whether the call may change what is at a path.
	open func(path string) bool
	// roots are where something is moved aside while processes run. In the session's own temporary directories it is only when
	// they have ended: no program of the user's looks there, and tests of programs make repositories with hooks there.
	roots []string
	// notice reports at once what was moved aside; nil: there is no client.
	notice func(sandbox.Denial)
	// silent is set where the sandbox does not report what processes change.
	silent bool

	// judging is held while changes are found and undone. It is taken before mu, which no search of the disk holds up: a
	// process waits for altered.
	judging sync.Mutex
	noticed int             // how often
	stays   map[string]bool // what could not be moved aside, which is reported once

	mu        sync.Mutex
	recent    map[string]pendingCheck // what the call has changed, by the paths to judge
	timer     *time.Timer             // of the next look; nil: none was begun
	due       time.Time               // when it runs; zero: it does not
	processes []*sandbox.Process
}

// A pendingCheck is when a path is examined next, and how often it has been since the call changed it.
type pendingCheck struct {
	due   time.Time
	count int
}

// delays are how long after a change, and after each look, a path is examined: the change itself comes after its report, and
// a file may be written long after it was opened. The numbers are our own. What comes later is found when the call has ended.
var delays = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, settled, 30 * time.Second}

// settled is how long after a change git has finished what it writes in several steps, such as a submodule or a worktree. The
// number is our own: the steps follow each other at once.
const settled = 5 * time.Second

// maxRecent is how many paths are examined again and again, and maxNotices how often a call's clients are notified. The
// numbers are our own.
const (
	maxRecent  = 256
	maxNotices = 50
)

// Where the sandbox reports nothing everything is compared at least a second after the start and after each comparison, and
// so that it takes at most 1 % of a processor.
const (
	minPause  = time.Second
	pauseCost = 100
)

// altered notes what a process is about to change, if git may run programs by it.
func (w *gitWatch) altered(a sandbox.Alteration) {
	for _, path := range []string{a.Path, a.To} {
		if at := w.watch.Concerns(path); at != "" && pathname.WithinAny(w.roots, at) {
			w.note(at)
		}
	}
}

func (w *gitWatch) note(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.recent[path]; !known && len(w.recent) >= maxRecent {
		return
	}
	next := time.Now().Add(delays[0])
	if w.recent == nil {
		w.recent = map[string]pendingCheck{}
	}
	if known, ok := w.recent[path]; ok && known.count == 0 {
		next = known.due // so that no change after change keeps it from being examined
	}
	w.recent[path] = pendingCheck{due: next}
	w.lookAt(next)
}

// lookAt has examine called at that time, or before. mu is held.
func (w *gitWatch) lookAt(at time.Time) {
	switch {
	case !w.due.IsZero() && !at.Before(w.due):
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(time.Until(at), w.examine)
	default:
		w.timer.Reset(time.Until(at))
	}
	w.due = at
}

// began is called with each process of the call.
func (w *gitWatch) began(p *sandbox.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(slices.DeleteFunc(w.processes, isOver), p)
	switch {
	case w.silent:
		w.lookAt(time.Now().Add(minPause))
	case len(w.recent) > 0: // it was faster than this
		w.lookAt(time.Now().Add(delays[0]))
	}
}

func isOver(p *sandbox.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// examine judges what is due while processes run.
func (w *gitWatch) examine() {
	w.judging.Lock()
	defer w.judging.Unlock()
	now := time.Now()
	process, due := w.take(now)
	if process == nil {
		return // end has compared everything
	}
	changes := w.changed(due)
	if w.silent {
		changes = slices.DeleteFunc(w.watch.Meanwhile(), func(c repo.Change) bool { return !pathname.WithinAny(w.roots, c.Path) })
		w.mu.Lock()
		w.lookAt(time.Now().Add(max(minPause, pauseCost*time.Since(now))))
		w.mu.Unlock()
	}
	for _, d := range w.undo(changes) {
		process.MovedAside(d)
		if w.noticed++; w.notice != nil && w.noticed <= maxNotices {
			w.notice(d)
		}
	}
}

// take returns a process that runs, nil if none does, and the paths that are due, each with true if nothing was changed
// there for a while. It has all paths examined later that are to be.
func (w *gitWatch) take(now time.Time) (process *sandbox.Process, due map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = time.Time{}
	w.processes = slices.DeleteFunc(w.processes, isOver)
	if len(w.processes) == 0 {
		return nil, nil
	}
	due = map[string]bool{}
	for path, l := range w.recent {
		if !now.Before(l.due) {
			due[path] = delays[l.count] >= settled
			if l.count++; l.count == len(delays) {
				delete(w.recent, path)
				continue
			}
			l.due = now.Add(delays[l.count])
			w.recent[path] = l
		}
		w.lookAt(l.due)
	}
	return w.processes[0], due
}

// changed returns the changes at the paths. Those with a change are not examined again, as the user may bring it back.
func (w *gitWatch) changed(due map[string]bool) (changes []repo.Change) {
	settledAt := sync.OnceValue(w.watch.Settled)
	for path, isSettled := range due {
		found := w.watch.MeanwhileAt(path)
		if isSettled {
			found = settledAt()(path)
		}
		changes = append(changes, found...)
		if len(found) > 0 {
			w.forget(path)
		}
	}
	return changes
}

// forget has a path not examined again, unless the call has changed it since it was taken.
func (w *gitWatch) forget(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recent[path].count > 0 {
		delete(w.recent, path)
	}
}

// undo moves aside what the changes are about, and puts back what is to stand there instead. judging is held.
func (w *gitWatch) undo(changes []repo.Change) (denials []sandbox.Denial) {
	for _, change := range changes {
		if w.open(change.Path) || w.stays[change.Path] {
			continue
		}
		d, err := sandbox.SetAside(change.Path, (*sandbox.Content)(change.Before))
		switch {
		case errors.Is(err, fs.ErrNotExist): // the call itself has removed it
			continue
		case err != nil:
			d = sandbox.Denial{Operation: sandbox.Writing, Target: change.Path, Count: 1, Stays: true}
			if w.stays == nil {
				w.stays = map[string]bool{}
			}
			w.stays[change.Path] = true
		}
		d.Keys = change.Keys
		denials = append(denials, d)
	}
	return denials
}

// end compares everything with what it was before the call. It is called when a process has ended.
func (w *gitWatch) end() []sandbox.Denial {
	w.judging.Lock()
	defer w.judging.Unlock()
	clear(w.stays) // another look may have more success, and the end is where it counts
	return w.undo(w.watch.Changes())
}
