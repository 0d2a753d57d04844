package repo

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/gitdir"
	"github.com/toold/toold/tools/fs/pathname"
)

// rebaseTodo is the list of steps of a stopped rebase, which may hold shell commands. It is never
// bound, since git writes it in everyday work.
const rebaseTodo = "rebase-merge/git-rebase-todo"

// GuardedIn returns the paths in the git directory dir, existing or not, that make git run a
// program or lead it to one.
func GuardedIn(dir string) (paths []string) {
	for _, name := range gitdir.Running() {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// A Guard is what makes git run programs within the roots of a call.
type Guard struct {
	roots, dirs, links []string // all git directories, and all files that lead to one
	home               string
	listed             map[string]bool // what Firm holds, which is true, and what Loose does
	// Firm are the paths, existing or not, of the repositories that the roots are or lie in, of
	// those one directory below, and of their submodules and worktrees. Loose are those of
	// repositories deeper down, which programs make and remove as a whole, such as a build's own
	// checkouts.
	Firm, Loose []string
	Shared      []string // git directories outside the roots that belong to them
	Partial     bool     // a root holds too many directories to find all
}

// Guard finds what makes git run programs in the roots, which are absolute and without symbolic
// links, for a call that works in dir. home is the user's home directory.
func (f *Finder) Guard(roots []string, dir, home string) *Guard {
	g := &Guard{roots: roots, home: home, listed: map[string]bool{}}
	for _, root := range roots {
		found := f.Find(root)
		g.dirs, g.links = append(g.dirs, found.Dirs...), append(g.links, found.Links...)
		g.Shared, g.Partial = append(g.Shared, found.Shared...), g.Partial || found.Partial
		near := nearby(root, dir, found)
		firm := func(own string) bool {
			return slices.ContainsFunc(near, func(r Repository) bool { return pathname.Within(r.Common, own) })
		}
		for _, r := range near {
			g.add(true, f.obeyed(r, home, g.holds)...)
		}
		for _, path := range slices.Concat(found.Dirs, found.Links) {
			if own := Leads(path); own != "" && IsLink(path) {
				g.add(firm(own), f.obeyed(repositoryAt(own, filepath.Dir(path)), home, g.holds)...)
			}
		}
		for _, own := range found.Dirs {
			if !IsLink(own) { // a bare repository, whose hooks run in it
				g.add(firm(own), f.obeyed(repositoryAt(own, own), home, g.holds)...)
			}
			g.add(firm(own), GuardedIn(own)...)
			g.add(false, filepath.Join(own, rebaseTodo))
		}
		for _, link := range found.Links {
			g.add(firm(Leads(link)), link)
		}
	}
	return g
}

// nearby returns the repositories whose working tree is root, lies directly below it, or holds dir.
func nearby(root, dir string, found Found) (near []Repository) {
	for _, path := range slices.Concat(found.Dirs, found.Links) {
		top := filepath.Dir(path)
		isRoot := path == root // a bare repository
		isNear := IsLink(path) && (top == root || filepath.Dir(top) == root || pathname.Within(top, dir))
		if !isRoot && !isNear {
			continue
		}
		if isRoot {
			top = root
		}
		near = append(near, repositoryAt(cmp.Or(Leads(path), path), top))
	}
	return near
}

func (g *Guard) add(firm bool, paths ...string) {
	list := &g.Loose
	if firm {
		list = &g.Firm
	}
	for _, path := range paths {
		for _, path := range []string{path, throughLink(path)} {
			if _, known := g.listed[path]; path != "" && !known && g.holds(path) {
				g.listed[path] = firm
				*list = append(*list, path)
			}
		}
	}
}

// throughLink returns where path leads if it, or its directory, is a symbolic link; otherwise "".
func throughLink(path string) string {
	for _, name := range []string{path, filepath.Dir(path)} {
		if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
			real, _ := filepath.EvalSymlinks(path) // for a dangling link the link itself is compared
			return real
		}
	}
	return ""
}

func (g *Guard) holds(path string) bool {
	return slices.ContainsFunc(slices.Concat(g.roots, g.Shared), func(tree string) bool { return path != tree && pathname.Within(tree, path) })
}

// obeyed returns the paths that git uses because the configuration of a repository names them, if
// held accepts them.
func (f *Finder) obeyed(r Repository, home string, held func(path string) bool) (paths []string) {
	files := append(UserFiles(home), r.Configs()...)
	named := append(f.settings(home, allIncludes, files).named(r, home), filepath.Join(r.Common, "hooks"))
	for _, dir := range slices.Clone(named) {
		named = append(named, linkedIn(dir)...)
	}
	for _, path := range named {
		real, _ := filepath.EvalSymlinks(path) // empty: nothing exists there
		for _, path := range []string{path, real} {
			if path != "" && held(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// linkedIn returns where the symbolic links directly in a directory lead, such as hooks that are
// links to files of the working tree.
func linkedIn(dir string) (paths []string) {
	entries, _ := os.ReadDir(dir) // it may not exist
	for _, e := range entries[:min(len(entries), maxEntries)] {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name())); err == nil {
			paths = append(paths, real)
		}
	}
	return paths
}

// Runs returns, as a clause, why a change of what is at path, absolute and without symbolic links,
// can make git run programs; empty if git does not use it.
func (f *Finder) Runs(path, home string) string {
	runs := RunsThrough()
	if IsLink(path) {
		return runs
	}
	rest := filepath.Base(path)
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		first, _, _ := strings.Cut(rest, "/")
		switch {
		case gitdir.Runs(rest) && (IsLink(dir) || IsGitDir(dir)):
			return runs
		case !IsLink(dir) && isPart(first) && completes(dir, first) && !IsGitDir(dir):
			return "which would make " + dir + " a git repository, whose settings can make git run programs"
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
	r, ok := Discover(filepath.Dir(path))
	if !ok {
		return ""
	}
	obeyed := f.obeyed(r, home, func(named string) bool { return pathname.Within(named, path) })
	if len(obeyed) > 0 {
		return runs
	}
	return ""
}

// isPart reports whether a directory needs an entry of that name to be a git directory.
func isPart(name string) bool {
	return slices.Contains([]string{"HEAD", "commondir", "objects", "refs"}, name)
}

// template returns the hooks with which git makes new repositories for that user, by their names.
func (f *Finder) template(home string) map[string][]byte {
	dir := "/usr/share/git-core/templates"
	for _, s := range f.settings(home, allIncludes, UserFiles(home)).settings {
		if s.Key == "init.templatedir" {
			dir = expanded(s.Value, home)
		}
	}
	dir = filepath.Join(cmp.Or(os.Getenv("GIT_TEMPLATE_DIR"), dir), "hooks")
	hooks := map[string][]byte{}
	entries, _ := os.ReadDir(dir) // it may not exist
	for _, e := range entries {
		if isSample(e.Name()) {
			continue
		}
		if data, err := ReadSmall(filepath.Join(dir, e.Name())); err == nil {
			hooks[e.Name()] = data
		}
	}
	return hooks
}

// isSample reports whether a file in a hooks directory never runs: one of git's own examples, or what
// was moved aside there.
func isSample(name string) bool {
	return filepath.Ext(name) == ".sample" || strings.HasPrefix(name, pathname.Aside)
}
