package repo

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/tools/fs/pathname"
)

// maxFolders is how many directories of a root are examined, and maxRemembered how many of all
// roots are cached. The numbers are our own: checking an unchanged directory takes some
// microseconds, and caching one about 300 bytes.
const (
	maxFolders    = 20_000
	maxRemembered = 60_000
)

// settling is how long a directory must be unchanged before its time of change distinguishes a
// later change. The kernel's clock for that ticks every 1 to 10 ms (CONFIG_HZ).
const settling = 50 * time.Millisecond

// A Finder finds the git directories of directory trees, and reads their configuration. It caches
// both, so that a later search reads only the directories and files that have changed. The zero
// value is ready for use. It is safe for concurrent use.
type Finder struct {
	most int // directories of a root that are examined; 0: maxFolders. Set by tests.

	mu    sync.Mutex
	trees map[string]map[string]*folder // by root, then by path
	order []string                      // the roots, the most recently used last
	files map[string]parsedFile         // configuration files, by path
}

// Found is the result of a search. All paths are absolute and without symbolic links.
type Found struct {
	Dirs  []string // git directories in the root, and those elsewhere that belong to it, in lexical order
	Links []string // paths named .git that are not directories: files and symbolic links
	// Shared are the git directories outside the root that its worktrees or submodules use, each
	// with all that belongs to it.
	Shared  []string
	Partial bool // the root holds more directories than are examined
}

// A folder is one directory as it was read.
type folder struct {
	stamp   stamp
	settled bool     // it had not changed for a while when it was read
	dirs    []string // names of the directories in it
	link    bool     // it has a .git that is not a directory
	git     bool     // it is a git directory
	objects bool     // it is named objects
}

// A stamp identifies a version of a directory: making, moving or removing an entry sets its time of
// change, which no program can set back.
type stamp struct {
	file    identity
	changed uint64 // in nanoseconds since 1970
}

// An identity identifies a file among those that exist at the time.
type identity struct{ device, inode uint64 }

// Find returns the git directories of root, an absolute path without symbolic links. It examines
// directories near the top first.
func (f *Finder) Find(root string) Found { return f.find(root, cmp.Or(f.most, maxFolders)) }

// find examines at most most directories.
func (f *Finder) find(root string, most int) Found {
	f.mu.Lock()
	before := f.trees[root]
	f.mu.Unlock()
	s := search{most: most, before: before, folders: make(map[string]*folder, len(before))}
	s.below(root)
	var found Found
	for path, folder := range s.folders {
		if folder.link {
			found.Links = append(found.Links, filepath.Join(path, ".git"))
		}
	}
	slices.Sort(found.Links)
	for _, link := range found.Links {
		shared := sharedBy(root, link)
		known := func(dir string) bool { return pathname.Within(dir, shared) }
		if shared != "" && !slices.ContainsFunc(found.Shared, known) {
			found.Shared = append(found.Shared, shared)
			s.below(shared)
		}
	}
	for path, folder := range s.folders {
		if folder.git {
			found.Dirs = append(found.Dirs, path)
		}
	}
	slices.Sort(found.Dirs)
	found.Partial = s.partial
	f.remember(root, s.folders)
	return found
}

// sharedBy returns the common git directory that a .git file of root leads to, if it lies outside
// of root and names that file in turn.
func sharedBy(root, link string) string {
	own := Leads(link)
	if own == "" || pathname.Within(root, own) || !Answers(own, link) {
		return ""
	}
	return commonOf(own)
}

func (f *Finder) remember(root string, folders map[string]*folder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trees == nil {
		f.trees = map[string]map[string]*folder{}
	}
	f.trees[root] = folders
	f.order = append(slices.DeleteFunc(f.order, func(o string) bool { return o == root }), root)
	count := 0
	for _, tree := range f.trees {
		count += len(tree)
	}
	for ; count > maxRemembered; f.order = f.order[1:] {
		count -= len(f.trees[f.order[0]])
		delete(f.trees, f.order[0])
	}
}

// A search is a breadth-first search of trees, each with at most most directories.
type search struct {
	most            int
	before, folders map[string]*folder
	partial         bool
}

func (s *search) below(root string) {
	queue := []string{root}
	for looked := 0; len(queue) > 0; looked++ {
		if looked == s.most {
			s.partial = true
			return
		}
		path := queue[0]
		queue = queue[1:]
		folder := s.folder(path)
		if folder == nil {
			continue
		}
		s.folders[path] = folder
		for _, name := range folder.dirs {
			if !folder.objects || !isObjects(name) {
				queue = append(queue, filepath.Join(path, name))
			}
		}
	}
}

// folder returns the present state of the directory at path; nil if it does not exist or cannot be
// read.
func (s *search) folder(path string) *folder {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil
	}
	now := stampOf(info)
	if known := s.before[path]; known != nil && known.settled && known.stamp == now {
		return known
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return unlisted(path)
	}
	read := &folder{objects: filepath.Base(path) == "objects", stamp: now, settled: time.Since(time.Unix(0, int64(now.changed))) > settling}
	names := map[string]bool{}
	for _, e := range entries {
		switch names[e.Name()] = true; {
		case e.IsDir():
			read.dirs = append(read.dirs, e.Name())
		case e.Name() == ".git":
			read.link = true
		}
	}
	read.git = IsLink(path) || names["HEAD"] && (names["commondir"] || names["objects"] && names["refs"])
	return read
}

// unlisted returns what is found without listing a directory: git looks its parts up by name.
func unlisted(path string) *folder {
	read := &folder{git: IsLink(path) || IsGitDir(path)}
	for _, name := range []string{".git", "modules", "worktrees"} {
		info, err := os.Lstat(filepath.Join(path, name))
		switch {
		case err != nil:
		case info.IsDir():
			read.dirs = append(read.dirs, name)
		case name == ".git":
			read.link = true
		}
	}
	return read
}

// isObjects reports whether git stores objects in directories of that name, of which a repository
// has hundreds.
func isObjects(name string) bool {
	return name == "pack" || name == "info" || len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}
