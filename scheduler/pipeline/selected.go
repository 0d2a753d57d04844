// Which files below a directory a command comes to that searches it, or that gets their names from another one.

package pipeline

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/grep/selection"
)

// given looks for something readDenied among the files below a directory that another command names to one, of which that
// takes those that it picks.
func (s scene) given(ctx context.Context, picks *shell.Picks, dir string, readDenied func(real string) string) (found, why string, sure bool) {
	taken := func(real string) string {
		rel, err := filepath.Rel(dir, real)
		unfit := func(glob string) bool { return !selection.MayFit(glob, filepath.Base(rel)) }
		if err != nil || slices.ContainsFunc(picks.Names, unfit) {
			return ""
		}
		if other := picks.Misread(rel); other != "" {
			return "perhaps a rule, as its name " + other + ","
		}
		return cmp.Or(readDenied(real), s.behind(real, readDenied))
	}
	if picks.Kept {
		return s.tracked(ctx, dir, taken)
	}
	return s.places.FindReadDenied(ctx, dir, taken)
}

// behind judges the target of a link; empty: it is not a link.
func (s scene) behind(real string, readDenied func(real string) string) string {
	if info, err := os.Lstat(real); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return ""
	}
	p, err := s.places.Resolve("/", real)
	if err != nil {
		return "" // nothing that could be read
	}
	return readDenied(p.Real)
}
