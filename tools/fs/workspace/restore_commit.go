// The second half of a restore: what was prepared is moved to its place.

package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// commit moves everything to its place. Directories in the way of files are removed first, then new
// files are placed, then surplus files are removed. Modes of directories are set last, since they
// may forbid the rest.
func (w *restorer) commit() {
	for _, p := range slices.Backward(w.all) {
		if p.temp != "" && p.Now.Kind == Directory {
			w.report(p, w.clear(p))
		}
	}
	for _, p := range w.all {
		if p.temp != "" && p.Want.Kind != Directory {
			w.report(p, p.dir.Rename(p.temp, p.base()))
		}
	}
	for _, p := range w.all {
		if p.temp != "" && p.Want.Kind == Directory {
			w.stand(p)
		}
	}
	for _, p := range slices.Backward(w.all) {
		if p.Want.Kind == Absent && p.Now.Kind != Absent {
			w.report(p, w.remove(p))
		}
	}
	for _, p := range slices.Backward(w.all) {
		if p.Want.Kind == Directory && !p.lost {
			w.report(p, p.chmod(p.Want.Mode))
		}
		p.told.Done = p.told.Done || p.written && !p.lost
	}
}

// stand moves a finished directory to the place of something that is not a directory. If that
// fails, the old entry is moved back.
func (w *restorer) stand(p *placedFile) {
	aside := w.name(p)
	err := p.dir.Rename(p.base(), aside)
	if err == nil {
		if err = p.dir.Rename(p.temp, p.base()); err != nil {
			err = errors.Join(err, p.dir.Rename(aside, p.base()))
		}
	}
	if err == nil {
		w.report(p, nil)
		if p.dir.Remove(aside) != nil {
			p.told.Note = "What was there is now beside it, as " + aside + "."
		}
		return
	}
	_ = p.dir.RemoveAll(p.temp) // the step has the reason
	for _, inner := range w.all {
		if pathname.Within(p.Real, inner.Real) {
			inner.temp = ""
			w.report(inner, err)
		}
	}
}

// clear removes a directory whose place is needed. Its content is removed first.
func (w *restorer) clear(p *placedFile) error {
	for _, inner := range slices.Backward(w.all) {
		if inner.Want.Kind == Absent && inner.Now.Kind != Absent && inner != p && pathname.Within(p.Real, inner.Real) {
			w.report(inner, w.remove(inner))
		}
	}
	return w.remove(p)
}

// remove removes what stands at a path. A directory that is not empty stays.
func (w *restorer) remove(p *placedFile) error {
	if p.told.Done {
		return nil
	}
	if p.dir == nil {
		dir, err := w.view.ws.openRoot(filepath.Dir(p.Real))
		if err != nil {
			return err
		}
		p.dir = dir
	}
	info, err := p.dir.Lstat(p.base())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() != (p.Now.Kind == Directory) {
		return errMoved
	}
	return p.dir.Remove(p.base())
}

func (w *restorer) report(p *placedFile, err error) {
	p.told.Done, p.lost = err == nil, err != nil
	switch {
	case err == nil:
		return
	case errors.Is(err, unix.ENOTEMPTY):
		p.told.Note = "It holds something that was not there before, so it was not removed."
	default:
		p.told.Note = w.view.unwritten(p.path(), err).Error()
	}
	if p.temp != "" {
		_ = p.dir.Remove(p.temp) // the step has the reason
		p.temp = ""
	}
}
