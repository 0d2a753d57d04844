// What a call changes without naming it is kept while it runs: the sandbox reports each change
// before it happens. Calls that are not confined so far have only what was kept before they began.

package daemon

import (
	"fmt"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/text/ellipsis"
)

// keptNew is how many new paths are recorded of one call, beside those of which something is kept.
// The number is ours: each takes some hundred bytes of the journal, and builds of large projects
// make some thousand files.
const keptNew = 8000

// A recording is what is kept of a call while it runs.
type recording struct {
	collector *workspace.Collector
	selection *checkpoint.Selection
	file      *checkpoint.Recording
	hold      *checkpoint.Hold
	git       func() []string // the git directories of the roots, as they were before the first change
}

// newRecording begins the recording of a call that the sandbox watches. row has what is kept of it
// already.
func (s *session) newRecording(c *pipeline.Call, row *checkpoint.Row) *recording {
	files := c.Files()
	r := &recording{
		selection: checkpoint.Select(files.Roots(), s.judge.baseEnviron(), files.Changes()),
		file:      s.daemon.checkpoints.Recording(s.name, row.Key), hold: s.daemon.checkpoints.HoldPacked(),
		git: gitDirs(files.Roots()),
	}
	how := workspace.Collecting{
		Snapshotter: s.judge.snapshotter(false), New: keptNew, LeaveOut: r.selection.LeavesOut, Taken: r.file.Add, Missed: r.file.AddGap,
	}
	how.Keep = r.hold.Keep
	how.Also = r.git
	r.collector = files.Collect(how, *row.Found())
	return r
}

// gitDirs returns a function that finds the git directories of the roots once: of a linked worktree
// they lie elsewhere.
func gitDirs(roots []string) func() []string {
	return sync.OnceValue(func() (dirs []string) {
		for _, root := range roots {
			if git, ok := repo.Discover(root); ok {
				dirs = append(dirs, git.Dir, git.Common)
			}
		}
		return dirs
	})
}

// before takes what the sandbox reports.
func (r *recording) before(a sandbox.Alteration) {
	r.git()
	switch {
	case a.Path == "":
		r.collector.Unnamed()
	case a.To == "":
		r.collector.Before(a.Path, a.Goes)
	case a.Swapped:
		r.collector.BeforeSwap(a.Path, a.To)
	default:
		r.collector.BeforeMove(a.Path, a.To)
	}
}

// end ends the recording and adds it to the row. From then on changes are another program's.
func (r *recording) end(row *checkpoint.Row) {
	row.Extend(r.collector.End())
}

// close drops what the row has by now.
func (r *recording) close(s *session) {
	if r == nil {
		return
	}
	if err := r.file.Close(); err != nil {
		s.daemon.Log.Warn("what a call changed could not be recorded while it ran", zap.String("session", s.name), zap.Error(err))
	}
	r.hold.Release()
}

// Before returns what the sandbox reports changes to while the call runs; nil: nothing is kept then.
func (rec *recorder) Before(c *pipeline.Call) func(sandbox.Alteration) {
	l := view(rec.s, func(its *state) *live { return its.ledger.live[c.Key] })
	if l == nil || l.recording == nil {
		return nil
	}
	return l.recording.before
}

// shownNotKept is how many paths a result names that undo cannot put back.
const shownNotKept = 3

// notKept returns a line for the model about what the call has changed and undo cannot put back;
// empty: nothing.
func (rec *recorder) notKept(c *pipeline.Call, l *live) string {
	if l == nil || l.kept == nil || !l.kept.Ended || isOwn(c) {
		return ""
	}
	missing := l.kept.NotKept()
	if len(missing) == 0 {
		return ""
	}
	var named []string
	for _, gap := range missing[:min(len(missing), shownNotKept)] {
		path := workspace.NameOf(rec.s.judge.policy().places.Seen(gap.Real))
		named = append(named, fmt.Sprintf("%s (%s)", ellipsis.Runes(path, 100), convert.Visible(gap.Why)))
	}
	text := strings.Join(named, ", ")
	if more := len(missing) - len(named); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("Note: the user cannot undo all of this call. %d not kept: %s.", len(missing), text)
}
