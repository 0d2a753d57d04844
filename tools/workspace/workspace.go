// Package workspace is the only way from a tool to a file: it finds out what a name really is, judges where that lies,
// opens it so that what was judged is what is held, writes so that a file is either the old or the new one, and
// remembers what a session has read. It does not know rules, modes or questions: others decide what is permitted and
// hand it in as a Grant.
package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Workspace is the part of the file system that a session works in. It is immutable and safe for concurrent use; it
// holds no descriptors.
type Workspace struct {
	roots    []string // real paths
	readable []string // real paths
	hidden   []string // real paths
	public   []string // real paths
	locks    *Locks
}

// publicDirectories are the system's own, where nothing private is expected. What in them not everybody may read is
// not public all the same.
var publicDirectories = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems", "/proc/sys",
	"/proc/cmdline", "/proc/swaps", "/proc/partitions", "/proc/diskstats", "/proc/devices", "/proc/modules", "/proc/vmstat", "/proc/cgroups",
	"/proc/pressure",
}

// Open makes a workspace of absolute, existing directories, whose own links are resolved here, once. l is shared by all
// workspaces of a daemon.
func Open(roots []string, l *Locks) (*Workspace, error) {
	w := &Workspace{locks: l}
	var err error
	if w.roots, err = realDirs(roots); err != nil {
		return nil, err
	}
	w.public = existing(publicDirectories)
	return w, nil
}

// Places are directories whose place differs from that of what lies around them.
type Places struct {
	Public   []string // in the stead of the usual public directories; nil: the usual ones. Those that do not exist are left out
	Readable []string // read like a root: a session's spill folder, additional directories. Those that do not exist are left out
	Hidden   []string // never to be opened, whatever is granted: the daemon's own state. They must exist
}

// Admit gives a workspace of the same roots and locks with these places in the stead of whatever w had. w stays as it
// is: calls that began with it go on with it.
func (w *Workspace) Admit(p Places) (*Workspace, error) {
	hidden, err := realDirs(p.Hidden)
	if err != nil {
		return nil, err
	}
	public := p.Public
	if public == nil {
		public = publicDirectories
	}
	return &Workspace{roots: w.roots, readable: existing(p.Readable), hidden: hidden, public: existing(public), locks: w.locks}, nil
}

// Roots gives the real paths of the roots, in the order they were given.
func (w *Workspace) Roots() []string { return slices.Clone(w.roots) }

// Readable gives the real paths of what may be read like a root.
func (w *Workspace) Readable() []string { return slices.Clone(w.readable) }

func realDirs(dirs []string) ([]string, error) {
	real := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("directory %q is not absolute", dir)
		}
		if info, err := os.Stat(dir); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%q is not a directory", dir)
		}
		r, err := follow(dir)
		if err != nil {
			return nil, err
		}
		real = append(real, r.at)
	}
	return real, nil
}

// existing gives those of dirs, which may be files, that are there, each once.
func existing(dirs []string) []string {
	var found []string
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil || !filepath.IsAbs(dir) {
			continue
		}
		if r, err := follow(dir); err == nil && !slices.Contains(found, r.at) {
			found = append(found, r.at)
		}
	}
	return found
}

// Within reports whether path is dir or below it, by components. Both are clean and absolute.
func Within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// deepest gives the longest of dirs that holds path.
func deepest(dirs []string, path string) (string, bool) {
	best, found := "", false
	for _, dir := range dirs {
		if Within(dir, path) && len(dir) >= len(best) {
			best, found = dir, true
		}
	}
	return best, found
}
