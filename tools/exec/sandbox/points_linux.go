// Mount points in the session's own directories: to mount something of the machine there, a file or
// directory must exist. They are made for an instance and removed with it.

package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// pointMode is the mode of a mount point. The workspace package recognises it by that.
const pointMode = unix.S_ISVTX

// A mountPoint is an empty file or directory in a directory of the session, which is a place's
// source, for mounting something over it.
type mountPoint struct{ dir, rel string }

// remove removes the mount point, unless it is no longer empty. Links do not lead it out of the
// directory.
func (m mountPoint) remove() {
	root, err := os.OpenRoot(m.dir)
	if err != nil {
		return
	}
	defer root.Close()
	info, err := root.Lstat(m.rel)
	if err == nil && (info.IsDir() || info.Size() == 0 && info.Mode() == os.ModeSticky) {
		_ = root.Remove(m.rel)
	}
}

// mountPoints returns what must exist in the session's directories so that the places can be
// mounted, each after the directory that holds it: what is missing, and what was made for another
// instance (made reports that).
func (p *Policy) mountPoints(made func(mountPoint) bool) (points []mountPoint) {
	for _, place := range p.Places {
		around := innermost(p.Places, place.Path)
		if around.Source == "" || around.Access == Hidden || place.Access == Hidden {
			continue
		}
		if _, err := os.Lstat(cmp.Or(place.Source, place.Path)); err != nil {
			continue // nothing to show
		}
		at := mountPoint{dir: around.Source}
		for part := range strings.SplitSeq(strings.TrimPrefix(place.Path, around.Path+"/"), "/") {
			at.rel = filepath.Join(at.rel, part)
			if _, err := os.Lstat(filepath.Join(at.dir, at.rel)); (err != nil || made(at)) && !slices.Contains(points, at) {
				points = append(points, at)
			}
		}
	}
	return points
}

// makesPoints reports whether an instance of p would make mount points in the session's directories, or use
// those of another, which commands of other policies see.
func (c *instances) makesPoints(p Policy) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(p.mountPoints(c.isMade)) > 0
}

// isMade reports whether a mount point was made for an instance. mu is held.
func (c *instances) isMade(point mountPoint) bool { return c.points[point] > 0 }

// innermost returns the innermost place around the path, other than the path itself; the zero
// Place: none.
func innermost(places []Place, path string) (found Place) {
	for _, p := range places {
		if path != p.Path && pathname.Within(p.Path, path) && len(p.Path) > len(found.Path) {
			found = p
		}
	}
	return found
}

// disk returns where on the disk a path below the place is.
func (p Place) disk(path string) string {
	if p.Source == "" {
		return path
	}
	return p.Source + strings.TrimPrefix(path, p.Path)
}

// covered reports whether a directory of the session covers the hidden place and has nothing of
// that name.
func (m *maker) covered(place Place) bool {
	around := innermost(m.places, place.Path)
	if around.Source == "" || around.Access == Hidden || place.Source != "" {
		return false
	}
	_, err := os.Lstat(around.Source + strings.TrimPrefix(place.Path, around.Path))
	return err != nil
}

// unmake removes the mount points of an instance that no other uses. One that is no longer empty
// stays. mu is held.
func (c *instances) unmake(made *instance) {
	for _, point := range slices.Backward(made.points) {
		if c.points[point]--; c.points[point] > 0 {
			continue
		}
		delete(c.points, point)
		point.remove()
	}
}
