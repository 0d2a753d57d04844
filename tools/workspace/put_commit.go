// The second half of putting back: what was prepared takes its place. It does not know how it was made.

package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// commit lets everything take its place: first what stands in the way goes, deepest first, then what is new comes, then
// what is too much goes. Modes of directories come last, since they may forbid the rest.
func (w *putter) commit() {
	for _, p := range slices.Backward(w.all) {
		if p.temp != "" && p.Now.Kind == Directory {
			w.tell(p, w.clear(p))
		}
	}
	for _, p := range w.all {
		if p.temp != "" && p.told.Note != notEmpty {
			w.tell(p, p.dir.Rename(p.temp, p.base()))
		}
	}
	for _, p := range slices.Backward(w.all) {
		if p.Want.Kind == Absent && p.Now.Kind != Absent {
			w.tell(p, w.remove(p))
		}
	}
	for _, p := range slices.Backward(w.all) {
		if p.Want.Kind == Directory {
			w.tell(p, p.chmod(p.Want.Mode))
		}
		p.told.Done = p.told.Done || p.temp == "" && p.Into != nil && p.told.Note == ""
	}
}

const notEmpty = "It holds something that was not there before, so it stays."

// clear removes a directory that something else is to stand in the place of. What it held goes first.
func (w *putter) clear(p *placing) error {
	for _, inner := range slices.Backward(w.all) {
		if inner.Want.Kind == Absent && inner.Now.Kind != Absent && strings.HasPrefix(inner.Real, p.Real+"/") {
			w.tell(inner, w.remove(inner))
		}
	}
	return w.remove(p)
}

// remove takes away what stands at a path. A directory that is not empty stays.
func (w *putter) remove(p *placing) error {
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

func (w *putter) tell(p *placing, err error) {
	switch {
	case err == nil:
		p.told.Done = true
	case errors.Is(err, unix.ENOTEMPTY):
		p.told.Done, p.told.Note = false, notEmpty
	default:
		p.told.Done = false
		p.told.Note = w.view.unwritten(Path{Named: p.Real, Real: p.Real}, err).Error()
	}
	if err != nil && p.temp != "" {
		_ = p.dir.Remove(p.temp) // the reason is told
		p.temp = ""
	}
}
