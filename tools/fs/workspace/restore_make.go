// The first half of a restore: new files, links and further names are made beside their places.

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// file makes a file or a link beside its place.
func (w *restorer) file(p *placedFile) error {
	switch {
	case p.Twin || p.temp != "" || !p.replaces():
		return nil
	case p.Want.Kind == Link:
		name := w.name(p)
		if err := p.dir.Symlink(string(p.Want.Target), name); err != nil {
			return err
		}
		p.temp = name
		return nil
	case p.From != "":
		return w.link(p)
	}
	return w.write(p)
}

// replaces reports whether something new is moved to the place.
func (p *placedFile) replaces() bool {
	switch {
	case p.Want.Kind == Link:
		return !p.Now.Same(p.Want)
	case p.Want.Kind != Regular:
		return false
	}
	return p.From != "" || !p.Now.Same(p.Want) && p.Into == nil || p.Now.ID != p.Want.ID
}

// name returns a temporary name for p. It is noted until the restore is over, so that nothing is
// left behind if the daemon dies.
func (w *restorer) name(p *placedFile) string {
	name := tempName()
	w.noted = append(w.noted, w.view.ws.locks.note(filepath.Join(filepath.Dir(p.Real), name)))
	return name
}

// write makes a file from its content.
func (w *restorer) write(p *placedFile) error {
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
		p.told.Note = strings.TrimSpace(p.told.Note + " It had other names, which are unknown, so it is now a separate file.")
	}
	return temp.Close()
}

// link makes a second name of the file at p.From, beside p's place. A twin is linked to what was
// made for that path. Where that is impossible, the file is made from its content.
func (w *restorer) link(p *placedFile) error {
	name, base, err := w.name(p), filepath.Base(p.From), fs.ErrNotExist
	made := slices.IndexFunc(w.all, func(o *placedFile) bool { return p.Twin && o.Real == p.From && o.temp != "" })
	if made >= 0 {
		err = linkAcross(w.all[made].dir, w.all[made].temp, p.dir, name)
	} else if from, wrong := w.view.ws.openRoot(filepath.Dir(p.From)); wrong == nil {
		err = linkAcross(from, base, p.dir, name)
		from.Close()
	}
	if errors.Is(err, unix.EXDEV) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EPERM) {
		return w.again(p, name) // across file systems it would be another file
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

// again reuses what was linked or made for another path, if it is the same file; otherwise it makes
// the file from its content.
func (w *restorer) again(p *placedFile, name string) error {
	for _, other := range w.all {
		if other != p && other.temp != "" && other.Want.ID.Known() && other.Want.ID == p.Want.ID && linkAcross(other.dir, other.temp, p.dir, name) == nil {
			p.temp = name
			return nil
		}
	}
	return w.write(p)
}

// linkAcross makes a hard link from one directory to another. It does not follow links.
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
func (w *restorer) twin(p *placedFile) error {
	if !p.Twin {
		return nil
	}
	return w.link(p)
}

// ready opens the file that is written in place, and reads its old and its new content.
func (w *restorer) ready(p *placedFile) error {
	if p.Into == nil {
		return nil
	}
	data, err := w.content(p.Into.Hash)
	if err != nil {
		return err
	}
	f, err := p.dir.OpenFile(p.base(), os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	p.inside, p.data = f, data
	if idOf(f) != p.Now.ID {
		return errMoved
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.old, _, err = readWhole(&File{File: f, Path: p.path(), Info: info})
	return err
}

// into writes the existing file in place, for all of its names. It is the last step that can fail
// for all puts.
func (w *restorer) into(p *placedFile) error {
	if p.inside == nil {
		return nil
	}
	if err := writeInPlace(p.inside, p.old, p.data); err != nil {
		return err
	}
	p.written = true
	return p.inside.Chmod(p.Into.Mode)
}
