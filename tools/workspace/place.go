// Where a path lies. It does not know who asks, nor what follows from the answer.

package workspace

import (
	"os"
	"path/filepath"

	"github.com/toold/toold/tools/pathname"
)

// A Place says where a real path lies. It says nothing about whether it may be touched.
type Place uint8

const (
	// Outside of everything named below.
	Outside Place = iota
	// InRoot is a root or lies below one.
	InRoot
	// Readable lies in a directory that may be read like a root: a spill folder, an additional directory.
	Readable
	// Public lies in one of the system's public directories, and everybody may read it.
	Public
	// Scratch lies in a directory for temporary files of the session's own.
	Scratch
	// Hidden is the daemon's own: View opens it for nobody.
	Hidden
)

// Place judges a real path, as Resolve gives it, by components. The deepest directory decides; where a hidden and a
// readable one are the same, the readable one does not count.
func (w *Workspace) Place(real string) Place {
	best, place := "", Outside
	for _, c := range []struct {
		dirs  []string
		place Place
	}{{w.public, Public}, {w.scratch(), Scratch}, {w.roots, InRoot}, {w.readable, Readable}, {w.hidden, Hidden}} {
		if dir, ok := deepest(c.dirs, real); ok && len(dir) >= len(best) {
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

// Lent reports whether the real path lies in what is hidden as a whole, and may be read all the same.
func (w *Workspace) Lent(real string) bool {
	_, hidden := deepest(w.hidden, real)
	return hidden && w.lent != nil && w.lent(real)
}

// scratch returns the real paths of the directories for temporary files.
func (w *Workspace) scratch() []string { return w.anchors[len(w.roots):] }

// HiddenBelow returns a directory of the daemon's own that lies below the one at the real path; empty: there is none.
func (w *Workspace) HiddenBelow(real string) string {
	for _, dir := range w.hidden {
		if pathname.Within(real, dir) {
			return dir
		}
	}
	return ""
}

// everybodyReads reports that others may read real and pass every directory from dir down to it. What does not exist
// counts as far as its parents go.
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
