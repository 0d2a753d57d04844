package pipeline

// Where git keeps its own files for the directories of a call, so that they can be written like the roots and what git
// obeys in them is protected. It reads what a .git file says and believes it only if git's side says the same: a workspace is
// somebody else's files.

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/workspace"
)

// A repository is a git directory that a call works with.
type repository struct {
	dir       string   // the git directory that its worktrees share
	protected []string // in it
	shared    []string // git directories outside the root that belong to it
}

// repositories finds those of root: at its top, one directory below, and from dir upwards to root.
func repositories(root, dir string) (found []repository) {
	tops := []string{root}
	entries, _ := os.ReadDir(root) // what cannot be listed cannot be written either
	for _, entry := range entries {
		if entry.IsDir() && len(tops) < maxRepositories {
			tops = append(tops, filepath.Join(root, entry.Name()))
		}
	}
	for ; workspace.Within(root, dir) && dir != root; dir = filepath.Dir(dir) {
		if !slices.Contains(tops, dir) {
			tops = append(tops, dir)
		}
	}
	for _, top := range tops {
		if r, ok := repositoryAt(top); ok {
			found = append(found, r)
		}
	}
	return found
}

// maxRepositories is how many directories of a root are looked at. Ours: a look is some microseconds.
const maxRepositories = 1000

func repositoryAt(top string) (r repository, ok bool) {
	git := filepath.Join(top, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return r, false
	}
	if info.IsDir() {
		return repository{dir: git, protected: obeyed(git)}, true
	}
	own, err := filepath.EvalSymlinks(pointer(git, "gitdir: "))
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return r, false
	}
	// A worktree's git directory names the .git file that leads to it, and the directory that all worktrees share.
	if back, err := filepath.EvalSymlinks(pointer(filepath.Join(own, "gitdir"), "")); err != nil || back != git {
		return r, false
	}
	common, err := filepath.EvalSymlinks(pointer(filepath.Join(own, "commondir"), ""))
	if err != nil || filepath.Dir(filepath.Dir(own)) != common {
		return r, false
	}
	return repository{dir: common, protected: append(obeyed(common), filepath.Join(own, "config.worktree")), shared: []string{common}}, true
}

// obeyed are the paths in a git directory, and in those of its submodules, that make git run something.
func obeyed(git string) []string {
	paths := permission.ProtectedInGit(git)
	modules := filepath.Join(git, "modules")
	entries, _ := os.ReadDir(modules) // there may be none
	for _, entry := range entries {
		if entry.IsDir() {
			paths = append(paths, permission.ProtectedInGit(filepath.Join(modules, entry.Name()))...)
		}
	}
	return paths
}

// pointer reads a file that holds one path, behind a prefix, which is relative to where the file is. What is no small file is
// not read: whoever works in the root may have put anything there.
func pointer(file, prefix string) string {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, unix.PathMax))
	if err != nil {
		return ""
	}
	path, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), prefix)
	if !ok || path == "" {
		return ""
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}
