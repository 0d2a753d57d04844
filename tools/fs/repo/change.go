package repo

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/pathname"
)

// Effects are what a git command changes in a repository, apart from files of the working tree and
// history.
type Effects struct {
	Keys       []string // settings; NAME.* stands for a section
	Worktrees  bool     // it moves or removes linked worktrees
	Submodules bool     // it adds, moves or removes submodules
}

// Writes returns the files and directories that git writes for the effects. For the zero Effects
// that is the configuration, which git may write again without a difference.
func (r Repository) Writes(e Effects) (paths []string) {
	if len(e.Keys) > 0 || !e.Worktrees && !e.Submodules {
		paths = append(paths, filepath.Join(r.Common, "config"))
	}
	if slices.Contains(e.Keys, "core.sparsecheckout") {
		paths = append(paths, filepath.Join(r.Dir, "config.worktree"))
	}
	if e.Submodules {
		paths = append(paths, filepath.Join(r.Dir, "modules"), filepath.Join(r.Top, ".gitmodules")) // a linked worktree has its own
	}
	if e.Worktrees {
		paths = append(paths, filepath.Join(r.Common, "worktrees"))
	}
	return paths
}

// RunsThrough returns, as a clause, why a change of a place in a git directory can make git run
// programs. keys are the settings that the change would set there, if they are known.
func RunsThrough(keys ...string) string {
	const runs = "which can make git run programs"
	if len(keys) == 0 {
		return runs
	}
	return "where " + strings.Join(keys, ", ") + " would be set and " + runs
}

// Configs returns the configuration files of the repository, which may not exist.
func (r Repository) Configs() []string {
	return []string{filepath.Join(r.Common, "config"), filepath.Join(r.Dir, "config.worktree")}
}

// Hook returns the path of a hook of the repository. dir is the value of core.hooksPath, and empty
// if that is not set.
func (r Repository) Hook(dir, name string) string {
	if dir == "" {
		dir = filepath.Join(r.Common, "hooks")
	}
	return absolute(r.Top, filepath.Join(dir, name))
}

// LiesIn reports whether the git directory, what it shares and the working tree are all in the
// given directories.
func (r Repository) LiesIn(dirs []string) bool {
	return !slices.ContainsFunc([]string{r.Dir, r.Common, r.Top}, func(own string) bool {
		return !slices.ContainsFunc(dirs, func(dir string) bool { return pathname.Within(dir, own) })
	})
}

// IsLink reports whether the name of path is that of a git directory, or of a file that leads to
// one.
func IsLink(path string) bool { return filepath.Base(path) == ".git" }

// TopBelow returns the working tree in dir whose .git holds path: what comes before the first .git
// in path below dir. It is dir if there is none.
func TopBelow(dir, path string) string {
	below, _, inside := strings.Cut(strings.TrimPrefix(path, dir), "/.git/")
	if !inside {
		return dir
	}
	return dir + below
}

// Tops returns the directories from dir upwards in which git may find its repository: those with an
// entry HEAD, up to the nearest that has an entry .git. disk returns the path by which this process
// reaches a path.
func Tops(dir string, disk func(path string) string) (tops []string) {
	for ; ; dir = filepath.Dir(dir) {
		isTop := exists(disk(filepath.Join(dir, ".git")))
		if isTop || exists(disk(filepath.Join(dir, "HEAD"))) {
			tops = append(tops, dir)
		}
		if isTop || dir == "/" {
			return tops
		}
	}
}
