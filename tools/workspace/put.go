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
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fault"
)

// A Put makes what stands at a real path another thing.
type Put struct {
	Real string
	Now  Image // what stands there, or nothing is done
	Want Image // not Unkept
	// From is another name of the wanted file, to be linked; empty: it is made of its content. With Twin it is the Real of
	// another Put, which makes it.
	From string
	Twin bool
	// Parted: it had names that nobody knows, and does not get them back.
	Parted bool
	// Into is written into the file that stands there now, where it stands, so that all of its names show it; nil: nothing
	// is.
	Into *Image
}

// A Putting says what became of one Put.
type Putting struct {
	Real string
	Done bool
	Note string // a sentence; why it was not done, or what is different from before
}

// PutBack does all of puts, or, as long as anything stands in the way of one, none: then the error is a fault stale_file,
// undeclared, disk_full, permission_denied or of content, and all is as it was. Behind that point each is done by itself,
// atomically, and what fails is told. Links are never followed. Each Real has to be in the grant's Writes. content gives
// what has a hash; it belongs to the caller.
//
// A file that stands there gives the new one its owner and extended attributes, where that can be; the mode is the image's.
func (v *View) PutBack(ctx context.Context, puts []Put, content func(hash string) ([]byte, error)) ([]Putting, error) {
	w := &putter{view: v, content: content, done: make([]Putting, len(puts))}
	for i := range puts {
		release, err := v.ws.locks.acquire(ctx, puts[i].Real)
		if err != nil {
			return nil, err
		}
		defer release()
		w.done[i].Real = puts[i].Real
		w.all = append(w.all, &placing{Put: puts[i], told: &w.done[i]})
	}
	defer w.close()
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.discard())
	}
	w.commit()
	return w.done, nil
}

// A putter is one PutBack under way.
type putter struct {
	view    *View
	content func(hash string) ([]byte, error)
	all     []*placing // by path, so that a directory comes before what is in it
	done    []Putting
	noted   []func() // end the notes of what was made
}

// A placing is one Put under way.
type placing struct {
	Put
	told *Putting
	dir  *os.Root // that the path lies in; nil: not open
	temp string   // base name of what is to take its place; empty: nothing
	made bool     // the directory was made
}

func (p *placing) base() string { return filepath.Base(p.Real) }

func (w *putter) close() {
	for _, p := range w.all {
		if p.dir != nil {
			p.dir.Close()
		}
	}
	for _, over := range w.noted {
		over()
	}
}

// prepare looks at everything, and makes all that can be made without anybody seeing it.
func (w *putter) prepare(ctx context.Context) error {
	slices.SortFunc(w.all, func(a, b *placing) int { return cmp.Compare(a.Real, b.Real) })
	for _, p := range w.all {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.unchanged(p); err != nil {
			return err
		}
	}
	for _, step := range []func(*placing) error{w.early, w.directory, w.file, w.twin, w.still, w.into} {
		for _, p := range w.all {
			if err := step(p); err != nil {
				return w.view.unwritten(Path{Named: p.Real, Real: p.Real}, err)
			}
		}
	}
	return nil
}

// unchanged makes sure that what stands at a path is what the Put says, and that the call may write there.
func (w *putter) unchanged(p *placing) error {
	path := Path{Named: p.Real, Real: p.Real}
	if !holds(w.view.grant.Writes, p.Real) {
		return undeclared(path)
	}
	now, err := w.view.Image(Camera{}, p.Real)
	if err != nil {
		return err
	}
	if !now.Same(p.Now) && (now.Kind != Unkept || p.Now.Kind != Unkept) || now.ID != p.Now.ID {
		return fault.Invalidf("stale_file", "%s has changed since it was looked at. Nothing was put back; look again.", path.Shown())
	}
	return nil
}

// still makes sure once more that nothing has changed: to make what was made may have taken long.
func (w *putter) still(p *placing) error {
	if p.Now.Kind == Directory || p.Want.Kind == Directory {
		return nil // whoever changes what is in them changes them
	}
	return w.unchanged(p)
}

// parent opens the directory that a path lies in, and makes what of it is missing.
func (w *putter) parent(p *placing) error {
	if p.dir != nil {
		return nil
	}
	dir, err := w.view.makeParents(Path{Named: p.Real, Real: p.Real})
	p.dir = dir
	return err
}

// early links what a directory comes in the place of, as long as it is there.
func (w *putter) early(p *placing) error {
	if p.From == "" || p.Twin {
		return nil
	}
	for _, other := range w.all {
		if other.Real == p.From && other.Want.Kind == Directory {
			if info, err := os.Lstat(filepath.Dir(p.Real)); err != nil || !info.IsDir() {
				return nil // then it is made of its content
			}
			return w.file(p)
		}
	}
	return nil
}

// directory makes a directory, for its owner alone as long as it is filled, or lets its owner fill the one that is there.
func (w *putter) directory(p *placing) error {
	if p.Want.Kind != Directory {
		return nil
	}
	if err := w.parent(p); err != nil {
		return err
	}
	if p.Now.Kind == Directory {
		return p.chmod(p.Now.Mode | 0o700)
	}
	if p.Now.Kind != Absent {
		if err := p.dir.Remove(p.base()); err != nil {
			return err
		}
	}
	p.made = true
	return p.dir.Mkdir(p.base(), 0o700)
}

// chmod changes the mode of a directory, and of nothing that a link in its place leads to.
func (p *placing) chmod(mode fs.FileMode) error {
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

// file makes a file or a link beside the place that it is to take.
func (w *putter) file(p *placing) error {
	if p.Twin || p.temp != "" || !p.replaces() {
		return nil
	}
	if err := w.parent(p); err != nil {
		return err
	}
	switch {
	case p.Want.Kind == Link:
		name := w.name(p)
		if err := p.dir.Symlink(string(p.Want.Target), name); err != nil {
			return err
		}
		p.temp = name
		return nil
	case p.From != "":
		return w.link(p, p.From, filepath.Base(p.From))
	}
	return w.write(p)
}

// replaces reports that something new takes the place.
func (p *placing) replaces() bool {
	switch {
	case p.Want.Kind == Link:
		return !p.Now.Same(p.Want)
	case p.Want.Kind != Regular:
		return false
	}
	return p.From != "" || !p.Now.Same(p.Want) && p.Into == nil || p.Now.ID != p.Want.ID
}

// name gives a name for what is to take p's place. It is noted until all is over, so that nothing is left if the daemon dies.
func (w *putter) name(p *placing) string {
	name := tempName()
	w.noted = append(w.noted, w.view.ws.locks.note(filepath.Join(filepath.Dir(p.Real), name)))
	return name
}

// write makes a file of its content.
func (w *putter) write(p *placing) error {
	data, err := w.content(p.Want.Hash)
	if err != nil {
		return err
	}
	dress := func(*os.File) error { return nil }
	if p.Now.Kind == Regular {
		dress = func(temp *os.File) error {
			old, err := p.dir.OpenFile(p.base(), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
			if err != nil {
				return nil //nolint:nilerr // what cannot be read gives nothing of its own
			}
			defer old.Close()
			err = keepAttributes(old, temp)
			if errors.Is(err, errInPlace) && p.Now.Names > 1 {
				p.told.Note = "Its owner or its extended attributes could not be kept."
				return nil
			}
			return err
		}
	}
	name := w.name(p)
	temp, err := writeBeside(p.dir, name, data, 0o600, func(temp *os.File) error {
		return errors.Join(dress(temp), temp.Chmod(p.Want.Mode))
	})
	if errors.Is(err, errInPlace) && p.Now.Kind == Regular && p.Now.Names < 2 {
		p.Into = &p.Want // as Change does
		return nil
	}
	if err != nil {
		return err
	}
	p.temp = name
	if p.Parted {
		p.told.Note = strings.TrimSpace(p.told.Note + " It had other names, which are not known; it is a file of its own now.")
	}
	return temp.Close()
}

// link gives the file that stands at from, as base in its directory, a second name beside p's place.
func (w *putter) link(p *placing, from, base string) error {
	name := w.name(p)
	dir, err := w.view.ws.openRoot(filepath.Dir(from))
	if err == nil {
		err = errors.Join(linkAcross(dir, base, p.dir, name), dir.Close())
	}
	if errors.Is(err, unix.EXDEV) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EPERM) {
		return w.again(p, name) // on another disk it was another file, and a directory can have come in its place
	}
	if err != nil {
		return err
	}
	p.temp = name
	f, err := p.dir.OpenFile(p.temp, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if !p.Twin && idOf(f) != p.Want.ID {
		return errMoved
	}
	return nil
}

// again links what was linked or made for another path, if that is the same file, and makes it of its content otherwise.
func (w *putter) again(p *placing, name string) error {
	for _, other := range w.all {
		if other != p && other.temp != "" && other.Want.ID.Known() && other.Want.ID == p.Want.ID && linkAcross(other.dir, other.temp, p.dir, name) == nil {
			p.temp = name
			return nil
		}
	}
	return w.write(p)
}

// linkAcross makes a hard link from one directory to another, and follows no link.
func linkAcross(from *os.Root, old string, to *os.Root, name string) error {
	source, err := from.Open(".")
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := to.Open(".")
	if err != nil {
		return err
	}
	defer target.Close()
	return withDescriptor(source, func(oldfd int) error {
		return withDescriptor(target, func(newfd int) error { return unix.Linkat(oldfd, old, newfd, name, 0) })
	})
}

// twin links to a file that another Put has just made.
func (w *putter) twin(p *placing) error {
	if !p.Twin {
		return nil
	}
	if err := w.parent(p); err != nil {
		return err
	}
	for _, other := range w.all {
		if other.Real == p.From && other.temp != "" {
			return w.link(p, other.Real, other.temp)
		}
	}
	return w.link(p, p.From, filepath.Base(p.From))
}

// into writes into the file that stands there, for all of its names.
func (w *putter) into(p *placing) error {
	if p.Into == nil {
		return nil
	}
	if err := w.parent(p); err != nil {
		return err
	}
	data, err := w.content(p.Into.Hash)
	if err != nil {
		return err
	}
	f, err := p.dir.OpenFile(p.base(), os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if idOf(f) != p.Now.ID {
		return errMoved
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	old, _, err := readWhole(&File{File: f, Path: Path{Named: p.Real, Real: p.Real}, Info: info})
	if err != nil {
		return err
	}
	if err := writeInPlace(f, old, data); err != nil {
		return err
	}
	return f.Chmod(p.Into.Mode)
}

// discard takes away what prepare has made.
func (w *putter) discard() (failed error) {
	for _, p := range slices.Backward(w.all) {
		if p.temp != "" {
			failed = errors.Join(failed, p.dir.Remove(p.temp))
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
