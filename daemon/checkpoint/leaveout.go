// What is not recorded of the changes that a program makes without naming them: what git ignores,
// and what git stores under names that never change.

package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
)

// Reasons of gaps, as clauses.
const (
	whyIgnored = "git ignores it, and the call does not name it"
	whyObjects = "what git stores is not kept when it is removed"
)

// A Selection decides which changes of a call are recorded. It is for one goroutine at a time.
type Selection struct {
	judge   *walk.Judge
	named   []string
	gone    map[string]bool            // the highest ignored paths of what was removed
	tracked map[string]map[string]bool // the names in the index of a repository, by its top
	tops    map[string]repo.Repository // by directory
}

// Select returns a Selection. roots are those of the session, environ is where git finds the user's
// configuration, and named are the paths that the call names: what is there is recorded, whether git
// ignores it or not.
func Select(roots, environ []string, named []workspace.Change) *Selection {
	s := &Selection{
		judge: walk.NewJudge(roots, environ), gone: map[string]bool{}, tracked: map[string]map[string]bool{}, tops: map[string]repo.Repository{},
	}
	for _, change := range named {
		s.named = append(s.named, change.Real)
	}
	return s
}

// LeavesOut reports whether the change of a path is not recorded. goes: what is there is removed or
// moved. The gap is what is then missing; it has no path if that is nothing.
func (s *Selection) LeavesOut(real string, goes bool) (gap workspace.Gap, out bool) {
	if store := gitStore(real); store != "" {
		if goes && isStored(real) {
			gap = workspace.Gap{Real: store, Why: whyObjects}
		}
		return gap, true
	}
	if strings.Contains(real, "/.git/") {
		return gap, strings.HasSuffix(real, ".lock")
	}
	top := s.ignored(real)
	if top == "" {
		return gap, false
	}
	if goes && !s.gone[top] {
		if _, err := os.Lstat(real); err == nil {
			s.gone[top] = true
			gap = workspace.Gap{Real: top, Why: whyIgnored}
		}
	}
	return gap, true
}

// Skips reports whether an entry of a new directory is not looked at.
func (s *Selection) Skips(real string, isDir bool) bool {
	return !strings.Contains(real, "/.git/") && s.judge.Ignored(real, isDir) != "" && s.ignored(real) != ""
}

// ignored returns the highest path that git ignores and that is real or holds it; empty if git does
// not ignore real, or tracks it, or the call names it.
func (s *Selection) ignored(real string) string {
	top := s.judge.Ignored(real, false)
	if top == "" {
		if top = s.judge.Ignored(real, true); top == "" {
			return ""
		}
		if info, err := os.Lstat(real); err == nil && !info.IsDir() {
			return ""
		}
	}
	isNamed := func(named string) bool { return pathname.Within(top, named) && pathname.Within(named, real) }
	if slices.ContainsFunc(s.named, isNamed) || s.isTracked(top, real) {
		return ""
	}
	return top
}

// isTracked reports whether a file that an ignore file leaves out is in the index all the same.
func (s *Selection) isTracked(top, real string) bool {
	dir := filepath.Dir(top)
	r, known := s.tops[dir]
	if !known {
		r, _ = repo.Discover(dir)
		s.tops[dir] = r
	}
	if r.Top == "" {
		return false
	}
	names, known := s.tracked[r.Top]
	if !known {
		names = r.Tracked()
		s.tracked[r.Top] = names
	}
	rel, err := filepath.Rel(r.Top, real)
	return err == nil && names[rel]
}

// gitStore returns the directory in which a git directory stores contents, if the path is it or lies
// in it; otherwise it is empty. The names there are made from the contents.
func gitStore(real string) string {
	for _, name := range []string{"/objects", "/lfs"} {
		for at := 0; ; {
			next := strings.Index(real[at:], name)
			if next < 0 {
				break
			}
			at += next + len(name)
			store := real[:at]
			if (at == len(real) || real[at] == '/') && holdsGit(filepath.Dir(store)) {
				return store
			}
		}
	}
	return ""
}

// isStored reports whether a path in a store is a file that git has finished.
func isStored(real string) bool {
	info, err := os.Lstat(real)
	base := filepath.Base(real)
	return err == nil && !info.IsDir() && !strings.HasSuffix(base, ".lock") && !strings.HasPrefix(base, "tmp_") && !strings.HasPrefix(base, ".tmp-") && !strings.Contains(real, "incoming-")
}

// holdsGit reports whether a directory is a git directory, or was one before it was taken apart.
func holdsGit(dir string) bool { return repo.IsLink(dir) || repo.IsGitDir(dir) }
