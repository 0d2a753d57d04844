// Where a path lies.

package workspace

import (
	"os"
	"path/filepath"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Place is where a real path lies. It does not decide whether the path may be touched.
type Place uint8

const (
	// Outside is none of the places below.
	Outside Place = iota
	// InRoot is a root or lies below one.
	InRoot
	// Readable lies in a directory that may be read like a root: a spill folder, an additional
	// directory.
	Readable
	// Public lies in one of the system's public directories, and every user may read it.
	Public
	// Scratch lies in one of the session's own directories for temporary files.
	Scratch
	// Hidden is the daemon's own: no View opens it.
	Hidden
)

// Place returns where a real path, as Resolve returns it, lies. The deepest directory decides. If a
// hidden and a readable directory are the same, the hidden one counts.
func (w *Workspace) Place(real string) Place {
	best, place := "", Outside
	for _, c := range []struct {
		dirs  []string
		place Place
	}{{w.public, Public}, {w.scratch(), Scratch}, {w.roots, InRoot}, {w.readable, Readable}, {w.hidden, Hidden}} {
		if dir := pathname.Deepest(c.dirs, real); dir != "" && len(dir) >= len(best) {
			best, place = dir, c.place
		}
	}
	switch {
	case place == Public && !everybodyReads(best, real):
		return Outside
	case place == Hidden && w.lent != nil && w.lent(real):
		return Readable
	}
	return place
}

// Lent reports whether the real path lies in a hidden directory and may be read all the same.
func (w *Workspace) Lent(real string) bool {
	return pathname.Deepest(w.hidden, real) != "" && w.lent != nil && w.lent(real)
}

// scratch returns the real paths of the directories for temporary files.
func (w *Workspace) scratch() []string { return w.anchors[len(w.roots):] }

// HiddenBelow returns a directory of the daemon's own that lies below the one at the real path;
// empty: there is none.
func (w *Workspace) HiddenBelow(real string) string {
	for _, dir := range w.hidden {
		if pathname.Within(real, dir) {
			return dir
		}
	}
	return ""
}

// everybodyReads reports whether other users may read real and pass every directory from dir down
// to it. Missing components are ignored.
func everybodyReads(dir, real string) bool {
	info, err := os.Lstat(real)
	switch {
	case os.IsNotExist(err):
	case err != nil:
		return false
	case info.IsDir() && info.Mode().Perm()&0o5 != 0o5, info.Mode().Perm()&0o4 == 0:
		return false
	}
	for p := filepath.Dir(real); real != dir && pathname.Within(dir, p); p = filepath.Dir(p) {
		if info, err := os.Lstat(p); err == nil && info.Mode().Perm()&0o1 == 0 {
			return false
		}
		if p == "/" {
			break
		}
	}
	return true
}
