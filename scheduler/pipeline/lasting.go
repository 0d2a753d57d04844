package pipeline

// What confines a process that serves a session for longer than a call. It does not know what such a process does.

import (
	"context"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/sandbox"
)

// Worker is the box of a process that may do what a command may of which nothing special was permitted. dir is where it
// works.
func (r Rights) Worker(ctx context.Context, dir string) *sandbox.Box {
	c := &Call{rights: r}
	return c.box(c.policy(ctx, &permission.Facts{Dir: dir}, false))
}

// Reader is the box of a process that changes nothing of anybody's, and has caches and temporary files of its own.
func (r Rights) Reader(ctx context.Context, dir string) *sandbox.Box {
	b := r.Worker(ctx, dir)
	own := []string{r.Confining.Temp, r.Confining.Cache}
	for i, place := range b.Policy.Places {
		if place.Access == sandbox.Write && place.Source == "" && !slices.Contains(own, place.Path) {
			b.Policy.Places[i].Access = sandbox.Read
		}
	}
	return b
}
