// Directories for walking. It does not know what is looked for in them.

package workspace

import (
	"os"
	"path/filepath"

	"github.com/toold/toold/tools/fault"
)

// A Tree is a directory opened for walking, or one file in it. It belongs to the caller, who closes it.
type Tree struct {
	Root   *os.Root
	Path   Path   // what was named: the directory, or the file
	Real   string // real path of Root
	Single string // base name of the file when a file was named; empty: the whole directory
	barred map[string]bool
}

// Barred reports whether the directory at path, below Root and with slashes, is hidden. Who walks leaves it out, and with
// it everything below.
func (t *Tree) Barred(path string) bool { return t.barred[path] }

// Close lets go of the directory.
func (t *Tree) Close() error { return t.Root.Close() }

// Tree opens the directory that name comes to, or for a file its parent, in which Single then names it. It returns
// faults: path_not_found (Details: NotFound), not_regular, permission_denied, undeclared, and those of Resolve.
func (v *View) Tree(name string) (*Tree, error) {
	p, err := v.reach(name, v.grant.Reads, v.grant.Writes)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(p.Real)
	if !p.Exists || err != nil {
		return nil, v.pathNotFound(p)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, notRegular(p, info)
	}
	t := &Tree{Path: p, Real: p.Real, barred: map[string]bool{}}
	if !info.IsDir() {
		t.Real, t.Single = filepath.Dir(p.Real), filepath.Base(p.Real)
	}
	for _, dir := range v.ws.hidden {
		if rel, err := filepath.Rel(t.Real, dir); err == nil {
			t.barred[rel] = true
		}
	}
	if t.Root, err = v.openDir(t.Real, p); err != nil {
		return nil, err
	}
	return t, nil
}

// openDir opens the directory at the real path and makes sure that it is still there. p is what was asked for.
func (v *View) openDir(real string, p Path) (*os.Root, error) {
	root, rel, err := v.ws.rootOf(real)
	if err != nil {
		return nil, v.refused(p, err)
	}
	defer root.Close()
	dir, err := root.OpenRoot(rel)
	if err != nil {
		return nil, v.refused(p, err)
	}
	self, err := dir.Open(".")
	if err != nil {
		dir.Close()
		return nil, v.refused(p, err)
	}
	defer self.Close()
	if !liesAt(self, real) {
		dir.Close()
		return nil, undeclared(p)
	}
	return dir, nil
}

func (v *View) pathNotFound(p Path) error {
	details := v.lookAround(p)
	return fault.Invalidf("path_not_found", "%s does not exist.%s", p.Shown(), details.hint()).With(details)
}
