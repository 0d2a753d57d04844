// Telling clients of files that the session knows and that something else has changed: another program, or a command
// of the session's own.

package daemon

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/daemon/convert"

	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fs/workspace"
)

// maxToldFiles is how many files one notice names.
const maxToldFiles = 100

// fileWatch is a session's, for as long as a client with the capability is attached.
type fileWatch struct {
	session *session
	watch   *workspace.Watch
	looking sync.Mutex // held while changes are looked into and told, so that each is told once

	// Used in the session's update alone.
	waiting map[string]bool            // may have changed, while calls run that may have done it
	told    map[string]workspace.State // as it was when it was told that it has changed
	limited bool                       // it was told that not everything is watched
}

// fileChanges is what a Notice "file_changed" carries for programs.
type fileChanges struct {
	Files []fileChange `json:"files"`
	More  int          `json:"more,omitempty"` // that are not named
}

type fileChange struct {
	Path    string `json:"path"`
	Removed bool   `json:"removed,omitempty"`
}

// reviewFileWatch begins or ends the watching, as the attached streams want. It must not be called inside an update.
func (r *requester) reviewFileWatch() {
	var begun, ended *fileWatch
	var err error
	r.s.update(func(its *state) {
		wanted := false
		for st := range its.clients.streams {
			wanted = wanted || st.fileChanges && !its.stopping
		}
		if before := its.clients.watching; before != nil && !wanted {
			ended, its.clients.watching = before, nil
		} else if before == nil && wanted {
			w := &fileWatch{session: r.s, waiting: map[string]bool{}, told: map[string]workspace.State{}}
			if w.watch, err = workspace.NewWatch(w.touched); err == nil {
				begun, its.clients.watching = w, w
			}
		}
	})
	switch {
	case err != nil:
		r.s.notifier.noticef("file_changes_limited", "", "Changes of files are not told: this system watches no more (%v).", err)
	case ended != nil:
		ended.watch.Close()
	case begun != nil:
		known := r.s.judge.readState.Paths()
		r.watchAlso(slices.Values(known))
		begun.touched(known) // what has changed while it was not watched
	}
}

// watchAlso watches files that the session has come to know. It must not be called inside an update.
func (r *requester) watchAlso(files iter.Seq[string]) {
	w := view(r.s, func(its *state) *fileWatch { return its.clients.watching })
	if w == nil {
		return
	}
	missed := false
	for real := range files {
		missed = !w.watch.Add(real) || missed
	}
	var before bool
	r.s.update(func(*state) { before, w.limited = w.limited, w.limited || missed })
	if missed && !before {
		r.s.notifier.noticef("file_changes_limited", "", "Changes of some files are not told: their directory is gone, or too many directories are watched already.")
	}
}

// touched takes files that may have changed. What calls of the session have done is not told of while they run: the
// session does not know yet what it will know then.
func (w *fileWatch) touched(files []string) {
	s := w.session
	s.update(func(its *state) {
		for _, real := range files {
			w.waiting[real] = true
		}
		s.requests.checkFilesLater(its)
	})
}

// checkFilesLater reports changed files, unless calls run.
func (r *requester) checkFilesLater(its *state) {
	w := its.clients.watching
	if w == nil || its.ledger.running > 0 || len(w.waiting) == 0 || its.stopping {
		return
	}
	files := slices.Sorted(maps.Keys(w.waiting))
	clear(w.waiting)
	r.s.work.Go(func() { w.notify(files) })
}

func (w *fileWatch) notify(files []string) {
	w.looking.Lock()
	defer w.looking.Unlock()
	s := w.session
	var changes fileChanges
	for _, real := range files {
		now, changed := s.judge.readState.Now(real)
		var before workspace.State
		var told bool
		s.update(func(*state) {
			before, told = w.told[real]
			if w.told[real] = now; !changed {
				delete(w.told, real)
			}
		})
		if !changed || told && before.Same(now) {
			continue
		}
		if len(changes.Files) == maxToldFiles {
			changes.More++
			continue
		}
		changes.Files = append(changes.Files, fileChange{Path: convert.Clean(real), Removed: now.Inode == 0})
	}
	if len(changes.Files) > 0 {
		s.notifier.notify(nil, pipeline.Noticed{Code: "file_changed", Message: changes.String(), Details: changes})
	}
}

// String returns the event as text.
func (c fileChanges) String() string {
	names := convert.Each(c.Files[:min(len(c.Files), 3)], func(f fileChange) string {
		if f.Removed {
			return f.Path + " (removed)"
		}
		return f.Path
	})
	text := strings.Join(names, ", ")
	if more := len(c.Files) - len(names) + c.More; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "Not as this session knows it any more: " + text + "."
}
