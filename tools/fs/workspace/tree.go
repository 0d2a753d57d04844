// Directories opened for walking.

package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Tree is a directory opened for walking, or one file in it. The caller closes it.
type Tree struct {
	within
	Root   *os.Root
	Single string // base name of the file if a file was named; empty: the whole directory
}

// within is a directory, and what in it must not be shown.
type within struct {
	Path       Path   // what was named: the directory, or a file in it
	Real       string // real path of the directory
	ws         *Workspace
	buffers    *Buffers
	hidden     []string // below Real
	readDenied func(real string) string
}

// Hidden reports whether the directory at path, below Real and with slashes, is the daemon's own. A
// walk must skip it and everything below it.
func (t *within) Hidden(path string) bool { return slices.Contains(t.hidden, path) }

// ReadDenied reports whether a rule denies reading the entry at path, below Real and with slashes.
// kind holds the type bits; for a link, a rule about its target counts too. A walk must skip the
// entry and everything below it, never open it, and report how many it has skipped. ReadDenied is
// safe for concurrent use.
func (t *within) ReadDenied(path string, kind fs.FileMode) bool {
	return t.readDenied != nil && t.ws.whyReadDenied(filepath.Join(t.Real, path), kind, t.readDenied) != ""
}

// Guarded reports whether any rule denies reading, so that ReadDenied could return true. A file
// that is opened by name, and not through Root, could then be such a file.
func (t *within) Guarded() bool { return t.readDenied != nil }

// Bound returns the real path of the session's directory for temporary files that Real is or lies
// in; empty: none. What lies around that directory is the daemon's.
func (t *within) Bound() string {
	return pathname.Deepest(t.ws.scratch(), t.Real)
}

// within returns the directory at the real path, on the way to p.
func (v *View) within(p Path, real string) within {
	t := within{Path: p, Real: real, ws: v.ws, buffers: v.buffers, readDenied: v.grant.ReadDenied}
	for _, dir := range v.ws.hidden {
		if pathname.Within(real, dir) {
			t.hidden = append(t.hidden, cmp.Or(strings.TrimPrefix(dir[len(real):], "/"), "."))
		}
	}
	return t
}

// Close closes the directory.
func (t *Tree) Close() error { return t.Root.Close() }

// Tree opens the directory that name resolves to. For a file it opens the parent directory and sets
// Single, also for a file that is open in an editor and not yet on the disk. It returns the faults
// path_not_found (Details: NotFound), not_regular, permission_denied, rule_denied, undeclared, and
// those of Resolve.
func (v *View) Tree(name string) (*Tree, error) {
	p, err := v.readable(name)
	if err != nil {
		return nil, err
	}
	t, err := v.treeOf(p)
	if err != nil {
		return nil, err
	}
	if t.Root, err = v.openDir(t.Real, p); err != nil {
		return nil, err
	}
	return t, nil
}

// treeOf returns the tree at p, which is not open yet.
func (v *View) treeOf(p Path) (*Tree, error) {
	info, err := os.Lstat(p.Real)
	inEditor := (!p.Exists || err != nil) && v.buffers.at(p.Real) != nil
	switch {
	case inEditor:
	case !p.Exists || err != nil:
		missing := v.notFound(p)
		missing.Code = "path_not_found"
		return nil, missing
	case info.IsDir():
		return &Tree{within: v.within(p, p.Real)}, nil
	case !info.Mode().IsRegular():
		return nil, notRegular(p, info)
	}
	return &Tree{within: v.within(p, filepath.Dir(p.Real)), Single: filepath.Base(p.Real)}, nil
}

// openDir opens the directory at the real path and checks that it was not replaced. p is for
// messages.
func (v *View) openDir(real string, p Path) (*os.Root, error) {
	dir, err := v.ws.openRoot(real)
	if err != nil {
		return nil, v.refused(p, err)
	}
	return dir, nil
}

// errMoved means that a file or directory is no longer at the path that was judged.
var errMoved = errors.New("something else is in its place")

// whetherMoved returns errMoved instead of err if the real path has a link by now.
func whetherMoved(real string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) && respelled(real) != real {
		return errMoved
	}
	return err
}

// openDirectory are the flags for opening a directory. Without them, opening a pipe that has
// replaced it would block.
const openDirectory = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK

// openRoot opens the directory at the real path and checks that it was not replaced; otherwise the
// error is errMoved.
func (w *Workspace) openRoot(real string) (*os.Root, error) {
	root, rel, err := w.rootOf(real)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.OpenRoot(rel)
	if err != nil {
		return nil, whetherMoved(real, err)
	}
	self, err := dir.Open(".")
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	defer self.Close()
	if !liesAt(self, real) {
		return nil, errors.Join(errMoved, dir.Close())
	}
	return dir, nil
}
