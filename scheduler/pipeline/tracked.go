// Files that git may show from its history: usually those that its ignore files do not leave out.
// No git is run, so whether a file is really tracked is unknown.

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/walk"
)

// maxTracked is how many entries of a working tree are examined. The number is our own: it takes
// some tenths of a second.
const maxTracked = 100_000

// tracked looks below dir, a real path, for a file that readDenied names a reason against and git's ignore files do not leave
// out; it returns the first by name. sure is false when it could not look at everything.
func (s scene) tracked(ctx context.Context, dir string, readDenied func(real string) string) (found, why string, sure bool) {
	top := repo.WorkTree(dir)
	if top == "" {
		return "", "", true // there is nothing that git keeps
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", "", false
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen atomic.Int64
	var mu sync.Mutex // guards found and why, and calls of readDenied
	tally, err := walk.Files(ctx, root, walk.Options{
		Dir: top, Environ: s.environ, Git: true,
		Choose: func(path string, _ fs.FileMode) walk.Choice {
			if seen.Add(1) > maxTracked {
				cancel()
			}
			real := filepath.Join(top, path)
			if repo.IsLink(path) || !pathname.Within(dir, real) && !pathname.Within(real, dir) {
				return walk.Leave
			}
			return walk.Take
		},
		Visit: func(f *walk.File) {
			real := filepath.Join(top, f.Path)
			mu.Lock()
			defer mu.Unlock()
			if reason := readDenied(real); reason != "" && (found == "" || real < found) {
				found, why = real, reason
			}
		},
	})
	unseen := slices.ContainsFunc(tally.Faults, func(f walk.Fault) bool { return !errors.Is(f.Err, fs.ErrPermission) })
	return found, why, err == nil && !unseen && int(tally.Unread) == len(tally.Faults)
}

// shown notes what git commands would show of the files that it keeps, where rules are about that.
func (s scene) shown(ctx context.Context, f *permission.Facts) {
	if !s.rules.AboutReading() {
		return
	}
	for i := range f.Commands {
		for _, name := range f.Commands[i].Tracked {
			if why := s.shows(ctx, f.Commands[i].Text, name); why != "" {
				f.Accesses = append(f.Accesses, permission.Access{
					Named: s.dir, Real: s.dir, Dir: true, Tree: true, Inside: true, By: i + 1, Part: f.Commands[i].Text, Unnamed: true, Below: why,
				})
				break
			}
		}
	}
}

// shows returns, as a sentence, which rule a file falls under that a git command shows of what is below a path; empty: none. "."
// is the whole repository, and DIR/. that of DIR.
func (s scene) shows(ctx context.Context, part, name string) string {
	real, err := s.places.Resolve(s.dir, name)
	if err != nil {
		return fmt.Sprintf("`%s` may show files that rules are about.", part)
	}
	dir := real.Real
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "" // that one file is looked at as such
	}
	if name == "." || strings.HasSuffix(name, "/.") {
		if dir = repo.WorkTree(dir); dir == "" {
			return ""
		}
	}
	found, why, sure := s.tracked(ctx, dir, s.keepsReading)
	switch {
	case found != "":
		return fmt.Sprintf("`%s` may show what git keeps of %s, and %s is about that.", part, found, why)
	case !sure:
		return fmt.Sprintf("`%s` may show all that git keeps in %s, which is too large to look for files that rules are about.", part, strings.TrimSuffix(dir, "/"))
	}
	return ""
}
