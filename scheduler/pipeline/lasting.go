package pipeline

// What confines a process that serves a session for longer than a call. It does not know what such a process does.

import (
	"context"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/workspace"
)

// Worker is the box of a process that may do what a command may of which nothing special was permitted. dir is where it
// works.
func (r Rights) Worker(ctx context.Context, dir string) *sandbox.Box {
	c := &Call{rights: r}
	return c.box(c.policy(ctx, &permission.Facts{Dir: dir}, false))
}

// Reader is the box of a process that changes nothing in the roots, and has caches and temporary files.
func (r Rights) Reader(ctx context.Context, dir string) *sandbox.Box {
	b := r.Worker(ctx, dir)
	for i, place := range b.Policy.Places {
		if place.Access == sandbox.Write && r.Places.Place(place.Path) == workspace.InRoot && !slices.Contains([]string{r.Confining.Temp, r.Confining.Cache}, place.Path) {
			b.Policy.Places[i].Access = sandbox.Read
		}
	}
	return b
}
