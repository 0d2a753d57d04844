// The judgement of single paths, in any order, as git would judge them in a walk.

package walk

import (
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
)

// A Judge finds out which paths git ignores. It reads the ignore files of a directory once, when a
// path in it is first judged. It is for one goroutine.
type Judge struct {
	roots   []string
	environ []string
	user    *Rules // nil: not read yet
	dirs    map[string]judged
}

// judged is what is known of a directory.
type judged struct {
	level   *level // nil: it lies in no repository
	ignored string // the highest ignored directory that it is, or lies in; empty: none
}

// NewJudge returns a Judge. roots are directories that count as not ignored themselves, nor the
// directories above them: absolute, without links. environ is where git finds the user's
// configuration.
func NewJudge(roots, environ []string) *Judge {
	return &Judge{roots: roots, environ: environ, dirs: map[string]judged{}}
}

// Ignored returns the highest path that git ignores and that is real, or that real lies in; empty if
// git does not ignore real. real is absolute and without links; it need not exist, and isDir reports
// whether it is, or would be, a directory. What the index holds does not count.
func (j *Judge) Ignored(real string, isDir bool) string {
	dir := j.dir(filepath.Dir(real))
	if dir.ignored != "" {
		return dir.ignored
	}
	if dir.level != nil && !j.holdsRoot(real) && dir.level.ignored(real[1:], isDir, gitSource) {
		return real
	}
	return ""
}

// holdsRoot reports whether a directory is a root, or one of the directories above it.
func (j *Judge) holdsRoot(dir string) bool {
	return slices.ContainsFunc(j.roots, func(root string) bool { return pathname.Within(dir, root) })
}

// dir returns what is known of a directory.
func (j *Judge) dir(path string) judged {
	known, ok := j.dirs[path]
	if ok {
		return known
	}
	if path != "/" {
		known = j.dir(filepath.Dir(path))
	}
	isTop := repo.HasLink(unix.AT_FDCWD, path)
	if isTop {
		known = judged{}
	}
	if known.ignored == "" && known.level != nil && !j.holdsRoot(path) && known.level.ignored(path[1:], true, gitSource) {
		known.ignored = path
	}
	if known.ignored == "" && (isTop || known.level != nil) {
		known.level = j.levelOf(known.level, path, isTop)
	}
	j.dirs[path] = known
	return known
}

// levelOf returns the level of a directory in a repository, whose top it is if isTop is set. Files that cannot be read have no rules.
func (j *Judge) levelOf(parent *level, dir string, isTop bool) *level {
	next := &level{parent: parent, skip: len(dir)}
	if dir == "/" {
		next.skip = 0
	}
	next.own[gitSource], _ = rulesOf(openAt(unix.AT_FDCWD, filepath.Join(dir, sources[gitSource]), dir))
	switch {
	case isTop:
		next.top = true
		exclude, override, _ := repositoryRules(dir, j.environ)
		next.exclude, next.global = exclude, j.userRules()
		if override != nil {
			next.global = *override
		}
	case next.own[gitSource].empty():
		return parent
	}
	return next
}

// userRules returns the rules of the user's own ignore file.
func (j *Judge) userRules() Rules {
	if j.user == nil {
		rules, _ := optionalRules(repo.UserExcludes(j.environ))
		j.user = &rules
	}
	return *j.user
}
