// Package workspace is the only way from a tool to a file. It resolves names, judges where they
// lie, and opens what was judged. It writes so that a file is either the old or the new one, and
// remembers what a session has read. It does not know rules, modes or questions: the caller decides
// what is permitted and passes it as a Grant.
package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Workspace is the part of the file system that a session works in. It is immutable and safe for
// concurrent use; it holds no descriptors.
type Workspace struct {
	roots    []string // real paths
	readable []string // real paths
	hidden   []string // real paths
	public   []string // real paths
	// temporary are the session's directories for temporary files. opened are the paths below their
	// names that are the machine's all the same. anchors are the directories that files are opened
	// relative to: the roots and the session's own directories.
	temporary []Temporary
	opened    []string
	anchors   []string
	lent      func(real string) bool
	machine   bool // names are the machine's: temporary applies only to real paths
	locks     *Locks
}

// publicDirectories are the system's own, which hold nothing private. A file there that not every
// user may read is not public all the same.
var publicDirectories = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems", "/proc/sys",
	"/proc/cmdline", "/proc/swaps", "/proc/partitions", "/proc/diskstats", "/proc/devices", "/proc/modules", "/proc/vmstat", "/proc/cgroups",
	"/proc/pressure",
}

// Open returns a workspace of absolute, existing directories. Links in them are resolved here,
// once. All workspaces of a daemon share l.
func Open(roots []string, l *Locks) (*Workspace, error) {
	real, err := realDirs(roots)
	if err != nil {
		return nil, err
	}
	return (&Workspace{roots: real, locks: l}).Admit(Places{})
}

// Places are directories that lie in another Place than the directories around them.
type Places struct {
	Public   []string // replaces the usual public directories; nil: the usual ones. Missing ones are ignored
	Readable []string // read like a root: a session's spill folder, additional directories. Missing ones are ignored
	Hidden   []string // never opened, whatever is granted: the daemon's own state. They must exist
	// Temporary are the session's directories for temporary files, under the machine's names.
	// Opened are the real paths below those names that stay the machine's; the roots stay so in any
	// case.
	Temporary []Temporary
	Opened    []string
	// Lent reports whether a Hidden real path may be read like a root all the same: an output of
	// another session. It is called from several goroutines at once. If nil, none may.
	Lent func(real string) bool
}

// Admit returns a workspace with the same roots and locks, and with p instead of the places of w.
// It does not change w, so calls that use w continue unaffected.
func (w *Workspace) Admit(p Places) (*Workspace, error) {
	hidden, err := realDirs(p.Hidden)
	if err != nil {
		return nil, err
	}
	public := p.Public
	if public == nil {
		public = publicDirectories
	}
	other := &Workspace{
		roots: w.roots, readable: existing(p.Readable), hidden: hidden, public: existing(public), anchors: slices.Clip(w.roots), locks: w.locks, lent: p.Lent,
	}
	for _, path := range slices.Concat(w.roots, p.Opened) {
		if slices.ContainsFunc(p.Temporary, func(t Temporary) bool { return pathname.Within(t.Name, path) }) {
			other.opened = append(other.opened, path)
		}
	}
	for _, t := range p.Temporary {
		if !slices.Contains(other.opened, t.Name) {
			other.temporary, other.anchors = append(other.temporary, t), append(other.anchors, t.Dir)
		}
	}
	return other, nil
}

// Roots returns the real paths of the roots, in the order they were given.
func (w *Workspace) Roots() []string { return slices.Clone(w.roots) }

// Readable returns the real paths of what may be read like a root.
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
		r, err := follow(machine, dir)
		if err != nil {
			return nil, err
		}
		real = append(real, r.at)
	}
	return real, nil
}

// existing returns the existing paths of dirs, each once. They may be files.
func existing(dirs []string) []string {
	found := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		if r, err := follow(machine, dir); err == nil && r.missing == 0 && !slices.Contains(found, r.at) {
			found = append(found, r.at)
		}
	}
	return found
}
