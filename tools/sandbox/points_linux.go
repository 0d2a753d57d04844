package sandbox

// Mount points in directories of the session's, which places stand in under other names: the sandbox can show something of the
// machine's there only where a file or directory is. They are made for a cell and removed with it.

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/pathname"
)

// pointMode is the mode of a mount point that stands for nothing by itself. The workspace package tells it by that.
const pointMode = unix.S_ISVTX

// A mountPoint is a file or directory that is made in a directory of the session's, which is a place's source, so that
// something else can be shown instead.
type mountPoint struct{ dir, rel string }

// remove removes the mount point, unless it has come to hold something. No link leads it out of the directory.
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

// mountPoints returns what has to be made in directories of the session's so that the places can stand in them, each after
// the directory that it is made in: what is not there, and what was made for another cell, as made says.
func (p *Policy) mountPoints(made func(mountPoint) bool) (points []mountPoint) {
	for _, place := range p.Places {
		around := innermost(p.Places, place.Path)
		if around.Source == "" || around.Access == Hidden || place.Access == Hidden {
			continue
		}
		if _, err := os.Lstat(cmp.Or(place.Source, place.Path)); err != nil {
			continue // there is nothing to show
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

// innermost returns the place that holds the path and is not its own; the zero Place: there is none.
func innermost(places []Place, path string) (found Place) {
	for _, p := range places {
		if path != p.Path && pathname.Within(p.Path, path) && len(p.Path) > len(found.Path) {
			found = p
		}
	}
	return found
}

// covered reports whether a directory of the session's stands where the hidden place was, and has nothing of that name.
func (m *maker) covered(place Place) bool {
	around := innermost(m.places, place.Path)
	if around.Source == "" || around.Access == Hidden || place.Source != "" {
		return false
	}
	_, err := os.Lstat(around.Source + strings.TrimPrefix(place.Path, around.Path))
	return err != nil
}

// unmake removes the mount points of a cell that no other has. What has come to hold something stays. mu is held.
func (c *instances) unmake(made *instance) {
	for _, point := range slices.Backward(made.points) {
		if c.points[point]--; c.points[point] > 0 {
			continue
		}
		delete(c.points, point)
		point.remove()
	}
}
