// A session's directories for temporary files: where they are, and what is made in them so that the machine's own places
// below the same names can be shown. Which names lead there is the workspace's.

package daemon

import (
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/workspace"
)

// scratchNames are the machine's directories for temporary files, and what the session's own are called.
var scratchNames = []struct{ name, dir string }{{"/tmp", "tmp"}, {"/var/tmp", "var-tmp"}}

// temporaries returns the directories for temporary files that the session's calls have; none where nothing confines
// their processes, which then have the machine's. opened are what stays the machine's below their names. With whole false one
// could not be made, which may be otherwise a moment later.
func (j *judge) temporaries(now *settings.Settings, opened []string) (temps []workspace.Temporary, whole bool) {
	confinement, err := j.daemon.runner.Confinement(sandbox.Policy{Tier: sandbox.Full, Optional: now.Sandbox.Optional != nil})
	if now.Sandbox.Disabled != nil || err != nil || confinement.Tier == sandbox.None {
		return nil, true
	}
	whole = true
	if j.outputs == "" { // a session that is only imagined starts no process that would need a mount point
		opened = nil
	}
	for _, known := range scratchNames {
		t := workspace.Temporary{Name: known.name, Dir: filepath.Join(j.temporary, known.dir)}
		if now.Sandbox.SharedTmp != nil {
			t.Dir = t.Name
		} else if err := makeScratch(t, opened); err != nil {
			j.daemon.Log.Warn("there is no directory for temporary files", zap.String("session", j.name), zap.Error(err))
			whole = false
			continue
		}
		temps = append(temps, t)
	}
	return temps, whole
}

// makeScratch makes the directory, with the mode that the machine's has as a rule, and in it what the sandbox needs to show the
// opened paths at their names.
func makeScratch(t workspace.Temporary, opened []string) error {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, path := range opened {
		if rel, err := filepath.Rel(t.Name, path); err == nil && rel != "." && filepath.IsLocal(rel) {
			_ = workspace.MakeMountPoint(root, rel, path) // a call may have put something in the way, and has to do without
		}
	}
	return root.Chmod(".", 0o777|os.ModeSticky)
}

// openedTo returns the paths that settings and roots open to processes or hide from them, which are the machine's whatever
// is the session's own around them.
func openedTo(c pipeline.Confining, places *workspace.Workspace, readable []string) []string {
	return slices.Concat(places.Roots(), readable, c.Write, c.Keep, c.Shown, c.Hidden)
}

// tempOf is where a session's directories for temporary files are.
func (d *Daemon) tempOf(session string) string {
	return filepath.Join(realPath(d.StateDir), "temp", session)
}
