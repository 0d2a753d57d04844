// The paths that a call may change, for checkpoints. They are more than the call declares: a
// program with unknown effects mostly writes files that its arguments name. Nothing is permitted by
// this.

package pipeline

import (
	"path/filepath"
	"slices"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/workspace"
)

// maxGuesses is how many names of files that a script may write without declaring it are looked at; maxLooked bounds those
// that turn out to lie outside the roots too.
const (
	maxGuesses = 256
	maxLooked  = 2048
)

// declared returns what the writes among the accesses change: what their names lead to, and the links on the way, which the
// call may put something else in the place of. paths are those of the writes, in their order.
func declared(f *permission.Facts, paths []workspace.Path) (changes []workspace.Change) {
	for _, a := range f.Accesses {
		if !a.Write {
			continue
		}
		changes = append(changes, workspace.Change{Real: a.OnDisk(), Missing: a.Missing, Tree: a.Tree && !putInto(f, &a)})
		for _, link := range paths[0].Links() {
			changes = append(changes, workspace.Change{Real: link})
		}
		paths = paths[1:]
	}
	return changes
}

// putInto reports that a directory is one into which a command only puts something that is declared as well: of all that is
// in it nothing else changes.
func putInto(f *permission.Facts, dir *permission.Access) bool {
	return dir.Dir && f.Command(dir).PutsInto() && slices.ContainsFunc(f.Accesses, func(a permission.Access) bool {
		return a.Write && a.By == dir.By && a.Real != dir.Real && filepath.Dir(a.Real) == dir.Real
	})
}

// guessed returns what a script may change beyond its declaration: words of commands with unknown
// effects, if they name something in a root, and the targets of hard links.
func (s scene) guessed(commands []shell.Command) (changes []workspace.Change) {
	type guess struct {
		name   string
		sweeps bool
	}
	dirs, looked := []string{s.dir}, map[guess]bool{}
	for i := range commands {
		c := &commands[i]
		dirs = c.AndThen(dirs)
		for name := range c.MayChange(dirs, s.home, s.glob) {
			g := guess{name, c.Sweeps()}
			switch {
			case len(changes) >= maxGuesses || len(looked) >= maxLooked:
				return changes
			case looked[g]: // by another reading of a wrapper's words
				continue
			}
			looked[g] = true
			// Some follow a link, others change the link itself.
			for _, resolve := range []func(dir, name string) (workspace.Path, error){s.Places.ResolveEntry, s.Places.Resolve} {
				p, err := resolve("/", name)
				if place := s.Places.Place(p.Real); err == nil && (place == workspace.InRoot || place == workspace.Scratch) {
					changes = append(changes, workspace.Change{Real: p.Real, Tree: p.Exists && g.sweeps, Guessed: !g.sweeps})
				}
			}
		}
	}
	return changes
}
