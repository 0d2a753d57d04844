// What confines a process that serves a session for longer than a call.

package pipeline

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
)

// Worker is the box of a process that may do what a command may of which nothing special was permitted. dir is where it
// works, and program what it runs: its file can be read wherever it lies, if that is absolute.
func (r Rights) Worker(ctx context.Context, dir, program string) *sandbox.Box {
	f := &permission.Facts{Dir: dir}
	if real, err := filepath.EvalSymlinks(program); err == nil && filepath.IsAbs(real) {
		f.Accesses = append(f.Accesses, permission.Access{Named: program, Real: real})
	}
	c := &Call{rights: r}
	return c.box(c.policy(ctx, f, false))
}

// Reader returns the box of a process that may change nothing of the user's, and has its own caches
// and temporary files.
func (r Rights) Reader(ctx context.Context, dir, program string) *sandbox.Box {
	b := r.Worker(ctx, dir, program)
	b.After = nil
	own := r.Confining.ownDirs()
	for i, place := range b.Policy.Places {
		if place.Access == sandbox.Write && place.Source == "" && place.Above == "" && !slices.Contains(own, place.Path) {
			b.Policy.Places[i].Access = sandbox.Read
		}
	}
	return b
}
