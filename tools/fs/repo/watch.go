package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools/fs/gitdir"
)

// A Watch holds what made git run programs before a call. Changes finds what the call has added,
// and Meanwhile what it has added up to now. All methods are safe for concurrent use.
type Watch struct {
	finder   *Finder
	guard    *Guard
	allowed  Allowed
	states   map[string]state
	files    map[identity]string // the git directories, and the links
	texts    map[string]string   // the contents of the links, by their paths
	template map[string][]byte   // the hooks of new repositories
	begun    time.Time
}

// A Change is something that was left where it would make git run programs.
type Change struct {
	Path string
	// Before is what is to stand there instead: what stood there, or what is there now without Keys;
	// nil if nothing did, or if it was not recorded.
	Before *File
	Keys   []string // the settings that make git run programs, if the others may stay
}

// A File is the content of a regular file.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Allowed is what a call may leave although it makes git run programs, because the question about
// the call named it.
type Allowed struct {
	Keys     []string // of settings; NAME.* stands for a section
	Programs []string // command lines of the steps of a rebase
}

// Watch records the state of the given paths, and which git directories there are.
func (f *Finder) Watch(g *Guard, paths []string, allowed Allowed) *Watch {
	w := &Watch{
		finder: f, guard: g, allowed: allowed, states: map[string]state{}, files: map[identity]string{}, texts: map[string]string{},
		template: f.template(g.home), begun: time.Now(),
	}
	r := recorder{left: budget}
	for _, path := range paths {
		w.states[path] = r.stateOf(path)
	}
	for _, path := range slices.Concat(g.dirs, g.links) {
		if file, ok := identityOf(path); ok {
			w.files[file] = path
		}
	}
	for _, link := range g.links {
		w.texts[link] = textOf(link)
	}
	return w
}

// known returns where a git directory or a link was before the call; empty: it was not found then.
func (w *Watch) known(path string) string {
	file, ok := identityOf(path)
	if !ok {
		return ""
	}
	return w.files[file]
}

func identityOf(path string) (file identity, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return file, false
	}
	return stampOf(info).file, true
}

// Changes returns what makes git run programs now and did not before: at the watched paths, and in
// git directories and links that are new. No process of the call may run.
func (w *Watch) Changes() []Change {
	j, links := w.judge(ended)
	changes := j.everywhere()
	for _, link := range links {
		changes = append(changes, j.link(link)...)
	}
	return sorted(changes)
}

// Meanwhile returns what Changes would return, as far as it does not depend on what git may be about
// to write: git makes a submodule or a worktree in several steps.
func (w *Watch) Meanwhile() []Change {
	j, _ := w.judge(working)
	return sorted(j.everywhere())
}

// MeanwhileAt returns what Meanwhile would return for a path that Concerns has returned.
func (w *Watch) MeanwhileAt(path string) []Change { return (&judge{Watch: w}).at(path) }

// Settled searches the roots, and returns a function that returns what Changes would return for a
// path that Concerns has returned, but for the steps of a rebase. It is for paths at which nothing
// was changed for a while.
func (w *Watch) Settled() func(path string) []Change {
	j, _ := w.judge(settled)
	return j.at
}

// Concerns returns which path MeanwhileAt has to judge when an entry at path has changed: a watched
// one, or a directory that may be a git directory. It compares names only, and returns "" for most.
func (w *Watch) Concerns(path string) string {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	for _, at := range []string{path, dir} {
		if _, watched := w.states[at]; watched {
			return at
		}
	}
	switch in := filepath.Base(dir); {
	case IsLink(path):
		return path
	case gitdir.Runs(name), isPart(name):
		return dir
	case gitdir.Runs(in + "/" + name):
		return filepath.Dir(dir)
	}
	return ""
}

// judge returns a judge that knows the git directories that there are now, and all links.
func (w *Watch) judge(s stage) (j *judge, links []string) {
	j = &judge{Watch: w, stage: s, found: map[string]bool{}}
	for _, root := range w.guard.roots {
		found := w.finder.find(root, farther*maxFolders)
		for _, dir := range found.Dirs {
			j.found[dir] = true
		}
		links = append(links, found.Links...)
	}
	return j, links
}

// sorted returns the changes in the order of their paths, with one for each path.
func sorted(changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(changes, func(a, b Change) bool { return a.Path == b.Path })
}

// farther is how many times more directories are examined after a call than before it, so that a
// call cannot hide a repository behind directories that it makes.
const farther = 10

// now returns what is at path.
func now(path string) state { return (&recorder{left: budget}).stateOf(path) }

// isNew reports whether a directory that was not found before may have been made, or moved to its
// place, since then. It may have existed only if the earlier search was incomplete.
func (w *Watch) isNew(dir string) bool {
	info, err := os.Lstat(dir)
	return !w.guard.Partial || err == nil && time.Unix(0, int64(stampOf(info).changed)).After(w.begun.Add(-settling))
}
