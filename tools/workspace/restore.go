// Putting back what stood at paths: everything is prepared beside its place first, and then takes it. It does not know
// where the images come from, nor whether somebody wants them back.

package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/pathname"
)

// A Put makes what stands at a real path another thing.
type Put struct {
	Real string
	Now  Snapshot // what stands there, or nothing is done; not Unkept
	Want Snapshot // not Unkept
	// From is another name of the wanted file, to be linked; empty: it is made of its content. With Twin it is the Real of
	// another Put, which makes it.
	From string
	Twin bool
	// Parted: it had names that nobody knows, and does not get them back.
	Parted bool
	// Into is written into the file that stands there now, where it stands, so that all of its names show it; nil: nothing
	// is.
	Into *Snapshot
}

// A RestoreStep says what became of one Put.
type RestoreStep struct {
	Real string
	Done bool
	Note string // a sentence; why it was not done, or what is different from before
}

// Restore does all of puts, or, as long as anything stands in the way of one, none: then the error is a fault stale_file,
// undeclared, buffer_open, not_kept, disk_full, permission_denied or of content, and all is as it was. Behind that point each is done by itself,
// atomically, and what fails is told. Links are never followed. Each Real has to be in the grant's Writes. content gives
// what has a hash; it belongs to the caller.
//
// A file that stands there gives the new one its owner and extended attributes, where that can be; the mode is the image's.
func (v *View) Restore(ctx context.Context, puts []Put, content func(hash string) ([]byte, error)) ([]RestoreStep, error) {
	w := &restorer{view: v, content: content, done: make([]RestoreStep, len(puts))}
	for i := range puts {
		release, err := v.ws.locks.acquire(ctx, puts[i].Real)
		if err != nil {
			return nil, err
		}
		defer release()
		w.done[i].Real = puts[i].Real
		w.all = append(w.all, &placedFile{Put: puts[i], told: &w.done[i]})
	}
	defer w.close()
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.discard())
	}
	w.commit()
	return w.done, nil
}

// A restorer is one PutBack under way.
type restorer struct {
	view    *View
	content func(hash string) ([]byte, error)
	all     []*placedFile // by path, so that a directory comes before what is in it
	done    []RestoreStep
	noted   []func() // end the notes of what was made
}

// A placedFile is one Put under way.
type placedFile struct {
	Put
	told *RestoreStep
	dir  *os.Root // that the path lies in; nil: not open
	temp string   // base name of what is to take its place; empty: nothing
	made bool     // the directory was made where it is to be
	// Of what is written into the file that stands there: the file, what it gets, what it had.
	inside    *os.File
	data, old []byte
	written   bool
	lost      bool // it could not take its place
}

func (p *placedFile) base() string { return filepath.Base(p.Real) }

func (w *restorer) close() {
	for _, p := range w.all {
		if p.dir != nil {
			p.dir.Close()
		}
		if p.inside != nil {
			p.inside.Close()
		}
	}
	for _, over := range w.noted {
		over()
	}
}

// prepare looks at everything, and makes all that can be made without anybody seeing it.
func (w *restorer) prepare(ctx context.Context) error {
	slices.SortFunc(w.all, func(a, b *placedFile) int { return cmp.Compare(a.Real, b.Real) })
	for _, p := range w.all {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.unchanged(p); err != nil {
			return err
		}
	}
	for _, step := range []func(*placedFile) error{w.directory, w.file, w.twin, w.ready, w.still, w.into} {
		for _, p := range w.all {
			if err := step(p); err != nil {
				return w.view.unwritten(Path{Named: p.Real, Real: p.Real}, err)
			}
		}
	}
	return nil
}

// unchanged makes sure that what stands at a path is what the Put says, and that the call may write there.
func (w *restorer) unchanged(p *placedFile) error {
	path := Path{Named: p.Real, Real: p.Real}
	if !holds(w.view.grant.Writes, p.Real) {
		return undeclared(path)
	}
	if w.view.buffers.hold(p.Real) {
		return fault.Invalidf("buffer_open", "%s is open in an editor with text that is not saved. Nothing was put back; save and close it there, or leave it out.", path.Shown())
	}
	if p.Now.Kind == Unkept {
		return fault.Invalidf("not_kept", "What stands at %s cannot be kept (%s), so it is not touched. Nothing was put back; leave it out.", path.Shown(), p.Now.Why)
	}
	now, err := w.view.Snapshot(Snapshotter{}, p.Real)
	if err != nil {
		return err
	}
	if !now.Same(p.Now) || now.ID != p.Now.ID {
		return changedSince(path)
	}
	return nil
}

func changedSince(p Path) error {
	return fault.Invalidf("stale_file", "%s has changed since it was looked at. Nothing was put back; look again.", p.Shown())
}

// still makes sure once more that nothing has changed: to make what was made may have taken long.
func (w *restorer) still(p *placedFile) error {
	if p.Now.Kind == Directory || p.Want.Kind == Directory {
		return nil // whoever changes what is in them changes them
	}
	return w.unchanged(p)
}

// parent opens the directory that a path lies in, and makes what of it is missing.
func (w *restorer) parent(p *placedFile) (err error) {
	if p.dir != nil {
		return nil
	}
	if over := w.beside(p.Real); over != nil {
		rel, err := filepath.Rel(over.Real, filepath.Dir(p.Real))
		if err != nil {
			return err
		}
		in := filepath.Join(over.temp, rel)
		if err := over.dir.MkdirAll(in, 0o777); err != nil {
			return err
		}
		p.dir, err = over.dir.OpenRoot(in)
		return err
	}
	path := Path{Named: p.Real, Real: p.Real}
	p.dir, err = w.view.makeParents(path)
	if said := (*fault.Error)(nil); errors.As(err, &said) && said.Code == "undeclared" {
		return fault.Invalidf("stale_file", "A directory on the way to %s is a link or another one by now, which is not followed. Nothing was put back; leave the file out, or put the directory back where it was.", path.Shown())
	}
	return err
}

// beside finds the directory that was made beside its place, since something else stands there, and in which a path is to
// lie; nil: there is none.
func (w *restorer) beside(real string) *placedFile {
	for _, over := range w.all {
		if over.temp != "" && over.Want.Kind == Directory && over.Real != real && pathname.Within(over.Real, real) {
			return over
		}
	}
	return nil
}

// directory makes a directory, for its owner alone as long as it is filled, or lets its owner fill the one that is there.
// Where something else stands it is made beside that, which stays until all is ready.
func (w *restorer) directory(p *placedFile) error {
	if p.Want.Kind != Directory {
		return nil
	}
	if err := w.parent(p); err != nil {
		return err
	}
	switch p.Now.Kind {
	case Directory:
		return p.chmod(p.Now.Mode | 0o700)
	case Absent:
		err := p.dir.Mkdir(p.base(), 0o700)
		p.made = err == nil
		return err
	}
	name := w.name(p)
	if err := p.dir.Mkdir(name, 0o700); err != nil {
		return err
	}
	p.temp = name
	return nil
}

// chmod changes the mode of a directory, and of nothing that a link in its place leads to.
func (p *placedFile) chmod(mode fs.FileMode) error {
	f, err := p.dir.OpenFile(p.base(), openDirectory, 0)
	if errors.Is(err, fs.ErrPermission) { // it forbids that to its owner
		return p.dir.Chmod(p.base(), mode)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(mode)
}

// discard takes away what prepare has made.
func (w *restorer) discard() (failed error) {
	for _, p := range slices.Backward(w.all) {
		if p.written {
			failed = errors.Join(failed, writeInPlace(p.inside, p.data, p.old), p.inside.Chmod(p.Now.Mode))
		}
		if p.temp != "" {
			failed = errors.Join(failed, p.dir.RemoveAll(p.temp))
		}
		if p.made {
			failed = errors.Join(failed, p.dir.Remove(p.base()))
		}
		if p.dir != nil && p.Want.Kind == Directory && p.Now.Kind == Directory {
			failed = errors.Join(failed, p.chmod(p.Now.Mode))
		}
	}
	return failed
}
