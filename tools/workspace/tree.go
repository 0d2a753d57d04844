// Directories for walking. It does not know what is looked for in them.

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fault"
)

// A Tree is a directory opened for walking, or one file in it. It belongs to the caller, who closes it.
type Tree struct {
	Root       *os.Root
	Path       Path   // what was named: the directory, or the file
	Real       string // real path of Root
	Single     string // base name of the file when a file was named; empty: the whole directory
	ws         *Workspace
	buffers    *Buffers
	hidden     map[string]bool
	readDenied func(real string) string
}

// Hidden reports whether the directory at path, below Root and with slashes, is the daemon's own. Who walks leaves it
// out, and with it everything below.
func (t *Tree) Hidden(path string) bool { return t.hidden[path] }

// ReadDenied reports whether a rule denies reading the entry at path, below Root and with slashes, of which kind holds the
// type bits; of a link also whether one denies reading what it leads to. Who walks leaves it out, with everything below,
// never opens it, and says how many there were. It is safe for concurrent use.
func (t *Tree) ReadDenied(path string, kind fs.FileMode) bool {
	return t.readDenied != nil && t.ws.whyReadDenied(filepath.Join(t.Real, path), kind, t.readDenied) != ""
}

// Guarded reports whether there are rules by which Barred could be true. What is read by its name, and not by way of
// Root, could then be something that is barred.
func (t *Tree) Guarded() bool { return t.readDenied != nil }

// Bound returns the directory for temporary files of the session that Root is or lies in, by its real path: what lies around
// it is the daemon's; empty: there is none.
func (t *Tree) Bound() string {
	dir, _ := deepest(t.ws.scratch(), t.Real)
	return dir
}

// Close lets go of the directory.
func (t *Tree) Close() error { return t.Root.Close() }

// Tree opens the directory that name comes to, or for a file its parent, in which Single then names it, also one that an
// editor holds open and that is not on the disk yet. It returns
// faults: path_not_found (Details: NotFound), not_regular, permission_denied, rule_denied, undeclared, and those of
// Resolve.
func (v *View) Tree(name string) (*Tree, error) {
	p, err := v.reach(name, v.grant.Reads, v.grant.Writes)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(p.Real)
	inEditor := (!p.Exists || err != nil) && v.buffers.at(p.Real) != nil
	switch {
	case inEditor:
	case !p.Exists || err != nil:
		return nil, v.pathNotFound(p)
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, notRegular(p, info)
	}
	t := &Tree{Path: p, Real: p.Real, ws: v.ws, buffers: v.buffers, hidden: map[string]bool{}, readDenied: v.grant.ReadDenied}
	if inEditor || !info.IsDir() {
		t.Real, t.Single = filepath.Dir(p.Real), filepath.Base(p.Real)
	}
	for _, dir := range v.ws.hidden {
		if rel, err := filepath.Rel(t.Real, dir); err == nil {
			t.hidden[rel] = true
		}
	}
	if t.Root, err = v.openDir(t.Real, p); err != nil {
		return nil, err
	}
	return t, nil
}

// openDir opens the directory at the real path and makes sure that it is still there. p is what was asked for.
func (v *View) openDir(real string, p Path) (*os.Root, error) {
	dir, err := v.ws.openRoot(real)
	if err != nil {
		return nil, v.refused(p, err)
	}
	return dir, nil
}

// errMoved says that a file or directory is not where it was when it was judged.
var errMoved = errors.New("something else is in its place")

// whetherMoved returns errMoved instead of err if a link has come onto the real path.
func whetherMoved(real string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) && respelled(real) != real {
		return errMoved
	}
	return err
}

// openDirectory are the flags for opening what was a directory when it was looked at. A pipe that has taken its place
// would block without them.
const openDirectory = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK

// openRoot opens the directory at the real path and makes sure that it is still there; otherwise the error is errMoved.
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

func (v *View) pathNotFound(p Path) error {
	details := v.lookAround(p)
	return fault.Invalidf("path_not_found", "%s does not exist.%s", p.Shown(), details.hint()).With(details)
}
