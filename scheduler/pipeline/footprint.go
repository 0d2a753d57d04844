// What a call touches, for the Dependency ordering: what it declares, with names resolved and files
// identified. It is found when the call is accepted, and again when the calls in front of it have
// ended; what the call then finds at its turn must not be more.

package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/workspace"
)

// arrangeTime is how long a call that is accepted waits to know what it touches. Local file systems
// answer in microseconds; one that does not answer must not hold up what comes behind on the wire.
const arrangeTime = 100 * time.Millisecond

// A position is what a call is ordered by.
type position struct {
	declared   tools.Effects // as accepted
	concurrent bool
	admitted   *scheduler.Footprint // in the Dependency ordering; nil: in the Batched ordering
	aborts     bool                 // only in the Dependency ordering
}

// Concurrent reports whether the call may run beside others in the Batched ordering. The result
// never changes.
func (p *position) Concurrent() bool { return p.concurrent }

// Touches returns what the call touches, as Arrange or Look has found.
func (p *position) Touches() scheduler.Footprint {
	if p.admitted == nil {
		return scheduler.Footprint{Everything: true}
	}
	return *p.admitted
}

// Aborts reports whether the call aborts its siblings if it fails.
func (p *position) Aborts() bool { return p.aborts }

// runsAlone reports whether the order lets nothing run beside the call.
func (p *position) runsAlone() bool {
	if p.admitted == nil {
		return !p.concurrent
	}
	return p.admitted.Everything
}

// Arrange puts the call into the Dependency ordering. It must be called before the call is added to
// its queue.
func Arrange(c *Call) {
	spec, policy := c.Tool.Spec(), c.session.Policy(c)
	bash := spec.OnFailure == tools.AbortSiblings
	c.aborts = policy == AbortOnAny || bash && (policy == AbortOnBash || policy == AbortOnMutatingBash && !c.declared.ReadOnly())
	found := make(chan scheduler.Footprint, 1)
	c.session.Later(func(context.Context) { found <- present(c) })
	late := time.NewTimer(arrangeTime)
	defer late.Stop()
	select {
	case f := <-found:
		c.admitted = &f
	case <-late.C:
		c.admitted = &scheduler.Footprint{Everything: true}
	}
}

// Look returns what the call touches as things now stand. It is ordered by that from then on.
func (c *Call) Look() scheduler.Footprint {
	f := present(c)
	c.admitted = &f
	return f
}

func present(c *Call) scheduler.Footprint {
	env, rights := c.session.Peek(c)
	return footprint(&rights, c.Tool, c.declared, env.Dir)
}

// keeps reports whether the call, if its effects are e, conflicts with no more calls than it is
// ordered by. Others may have run before.
func (c *Call) keeps(e tools.Effects) bool {
	if c.admitted == nil {
		return e.Concurrent() || !c.concurrent
	}
	found := footprint(&c.rights, c.Tool, e, c.facts.Dir)
	return c.admitted.Covers(&found)
}

// footprint returns what an action with effects e touches. What cannot be found out is everything.
func footprint(rights *Rights, tool tools.Tool, e tools.Effects, dir string) (f scheduler.Footprint) {
	everything := scheduler.Footprint{Everything: true}
	if e.Opaque || e.Session || hooked(rights.Hooks, tool.Spec().Name) {
		return everything
	}
	if e.State != "" {
		f.Writes = append(f.Writes, scheduler.StateOf(e.State))
	}
	for _, touch := range e.Memory {
		if place := scheduler.StateOf("memory" + touch.Path); touch.Write {
			f.Writes = append(f.Writes, place)
		} else {
			f.Reads = append(f.Reads, place)
		}
	}
	for _, path := range e.Writes {
		place, ok := placeOf(rights.Places, dir, path)
		if !ok || steers(rights.Places.Roots(), place.Path) || rights.Diagnosed != nil && rights.Diagnosed(filepath.Clean(place.Path)) {
			return everything
		}
		f.Writes = append(f.Writes, place)
	}
	if e.ReadsMore || e.External != "" || tool.Spec().Origin != tools.BuiltIn || slices.ContainsFunc(e.Commands, func(command shell.Command) bool { return command.IsGit() }) {
		f.Reads = []scheduler.Place{scheduler.Anywhere}
		return f
	}
	for _, path := range e.Reads {
		place, ok := placeOf(rights.Places, dir, path)
		if !ok {
			f.Reads = []scheduler.Place{scheduler.Anywhere}
			return f
		}
		f.Reads = append(f.Reads, place)
	}
	return f
}

// hooked reports whether a hook may run for calls of the tool. It may do anything.
func hooked(hooks *hook.Set, tool string) bool {
	events := []string{hook.PreToolUse, hook.PermissionRequest, hook.PermissionDenied, hook.PostToolUse, hook.PostToolUseFailure}
	return slices.ContainsFunc(events, func(event string) bool {
		return len(hooks.For(event, tool, func(permission.Rule) bool { return true })) > 0
	})
}

// placeOf returns where a declared path leads; not ok: it leads nowhere.
func placeOf(places *workspace.Workspace, dir string, path tools.Path) (place scheduler.Place, ok bool) {
	real, err := resolve(places, dir, path)
	if err != nil {
		return place, false
	}
	place.Path = strings.TrimSuffix(real.Real, "/") + "/"
	info, err := os.Lstat(real.Real)
	if err != nil {
		return place, real.Missing > 0
	}
	stat := info.Sys().(*syscall.Stat_t)
	place.File = scheduler.FileID{Device: uint64(stat.Dev), Inode: stat.Ino}
	place.Dir, place.Linked = info.IsDir(), !info.IsDir() && stat.Nlink > 1
	return place, true
}

// steers reports whether a path, which ends in a slash, may be one that decides how other calls
// run or what they find: settings, rules of what is ignored, what git keeps. Their names all begin
// with a dot, or a directory's on the way from the root does.
func steers(roots []string, path string) bool {
	for _, root := range roots {
		if below, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")); ok {
			path = below
			break
		}
	}
	return strings.Contains(path, "/.")
}
