// Restoring what stood at paths: everything is prepared beside its place first, and then moved
// there. The caller decides what is restored.

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
	"github.com/toold/toold/tools/fs/pathname"
)

// A Put replaces what stands at a real path.
type Put struct {
	Real string
	Now  Snapshot // what must stand there, or nothing is done; not Unkept
	Want Snapshot // not Unkept
	// From is another name of the wanted file, which is linked; empty: the file is written from its
	// content. With Twin, From is the Real of another Put, which makes the file.
	From string
	Twin bool
	// Parted is set if the file had other names that are unknown, and that it does not get back.
	Parted bool
	// Into is written into the existing file, in place, so that all of its names show it; nil:
	// nothing is written in place.
	Into *Snapshot
}

// A RestoreStep is the outcome of one Put.
type RestoreStep struct {
	Real string
	Done bool
	Note string // a sentence: why it was not done, or what differs from before
}

// Restore does all of puts, or none of them while anything prevents one of them. In the second case
// the error is a fault (stale_file, undeclared, buffer_open, not_kept, disk_full,
// permission_denied) or the error of content, and nothing has changed. Once everything is prepared,
// each put is done by itself, atomically, and the steps report those that failed. Links are never
// followed. Each Real must be in the grant's Writes. content returns the content with a hash; it
// belongs to the caller.
//
// A new file gets the owner and the extended attributes of the file that it replaces, where
// possible, and the mode of the snapshot.
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

// A restorer is the state of one Restore.
type restorer struct {
	view    *View
	content func(hash string) ([]byte, error)
	all     []*placedFile // by path, so that a directory comes before its entries
	done    []RestoreStep
	noted   []func() // remove the notes of temporary files
}

// A placedFile is the state of one Put.
type placedFile struct {
	Put
	told *RestoreStep
	dir  *os.Root // that the path lies in; nil: not open
	temp string   // base name of what will be moved to the place; empty: nothing
	made bool     // the directory was made in its final place
	// Of a file that is written in place: the file, its new content, its old content.
	inside    *os.File
	data, old []byte
	written   bool
	lost      bool // it could not be moved to its place
}

func (p *placedFile) base() string { return filepath.Base(p.Real) }

func (p *placedFile) path() Path { return Path{Named: p.Real, Real: p.Real} }

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

// prepare checks everything, and makes everything that can be made without being visible.
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
				return w.view.unwritten(p.path(), err)
			}
		}
	}
	return nil
}

// unchanged checks that what stands at a path is the Put's Now, and that the call may write there.
func (w *restorer) unchanged(p *placedFile) error {
	path := p.path()
	if !holds(w.view.grant.Writes, p.Real) {
		return undeclared(path)
	}
	if w.view.buffers.hold(p.Real) {
		return fault.Invalidf("buffer_open", "%s is open in an editor with text that is not saved. Nothing was restored; save and close it there, or leave it out.", path.Shown())
	}
	if p.Now.Kind == Unkept {
		return fault.Invalidf("not_kept", "The present content of %s cannot be kept (%s), so it is not replaced. Nothing was restored; leave it out.", path.Shown(), p.Now.Why)
	}
	now, err := w.view.Snapshot(Snapshotter{}, p.Real)
	if err != nil {
		return err
	}
	if !now.Same(p.Now) || now.ID != p.Now.ID {
		return fault.Invalidf("stale_file", "%s has changed since the plan was made. Nothing was restored; make a new plan.", path.Shown())
	}
	return nil
}

// still checks once more that nothing has changed, since the preparation may have taken long.
func (w *restorer) still(p *placedFile) error {
	if p.Now.Kind == Directory || p.Want.Kind == Directory {
		return nil // its entries are checked by themselves
	}
	return w.unchanged(p)
}

// parent opens the directory that a path lies in, and makes its missing part.
func (w *restorer) parent(p *placedFile) (err error) {
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
	p.dir, err = w.view.makeParents(p.path())
	if err != nil && fault.From(err).Code == "undeclared" {
		return fault.Invalidf("stale_file", "A directory on the way to %s was replaced by a link or by another directory, which is not followed. Nothing was restored; leave the file out, or move the directory back.", p.path().Shown())
	}
	return err
}

// beside returns the directory that was made beside its place, because something else stands there,
// and that will hold a path; nil: there is none.
func (w *restorer) beside(real string) *placedFile {
	for _, over := range w.all {
		if over.temp != "" && over.Want.Kind == Directory && over.Real != real && pathname.Within(over.Real, real) {
			return over
		}
	}
	return nil
}

// directory opens the directory that a path lies in, unless the path is only removed. A path that
// becomes a directory is made, accessible only to its owner while it is filled; an existing directory
// is made writable for its owner. If something else stands in its place, the directory is made beside
// it and stays there until everything is ready.
func (w *restorer) directory(p *placedFile) error {
	if p.Want.Kind == Absent && p.Into == nil {
		return nil
	}
	if err := w.parent(p); err != nil || p.Want.Kind != Directory {
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

// chmod changes the mode of a directory, and never follows a link that has replaced it.
func (p *placedFile) chmod(mode fs.FileMode) error {
	f, err := p.dir.OpenFile(p.base(), openDirectory, 0)
	if errors.Is(err, fs.ErrPermission) { // its mode denies that to its owner
		return p.dir.Chmod(p.base(), mode)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(mode)
}

// discard removes what prepare has made.
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
