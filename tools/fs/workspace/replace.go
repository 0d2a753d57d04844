// Atomic writing: a file is either the old one or the new one. staged.go has the change that this
// is a part of.

package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toold/toold/tools/fault"
)

// errInPlace means that a new file cannot replace the old one: it could not get the old owner or
// attributes, or the directory accepts no new file.
var errInPlace = errors.New("a new file could not take its place")

// prepare makes everything that can be made without being visible. backup: the old file gets a
// second name, so that it can be put back.
func (c *changing) prepare(s *staged, backup bool) error {
	v := c.view
	switch {
	case s.buffered && s.next.Remove:
		return HeldOpen(s.path)
	case s.buffered:
		return nil // the editor decides
	}
	if err := v.besideEditor(s.old); err != nil {
		return err
	}
	switch {
	case !s.path.Exists:
		return c.prepareNew(s)
	case s.old.Links > 1 && !s.next.Remove:
		return nil // it is written in place
	}
	var err error
	if s.dir, err = v.openDir(filepath.Dir(s.path.Real), s.path); err != nil {
		return err
	}
	if !s.next.Remove {
		err = s.beside(v, 0o600, s.file)
	}
	if err == nil && backup {
		err = s.keep(v)
	}
	if errors.Is(err, errInPlace) && !s.next.Remove {
		s.unstage()
		return nil
	}
	return err
}

// prepareNew prepares a file that does not exist, in its directory, whose missing part it makes.
func (c *changing) prepareNew(s *staged) (err error) {
	if s.dir, err = c.view.makeParents(s.path); err != nil {
		return err
	}
	from := slices.IndexFunc(c.all, func(other *staged) bool { return other.old == s.next.From })
	if from < 0 || c.all[from].file == nil {
		return s.beside(c.view, 0o666, nil)
	}
	return s.beside(c.view, 0o600, c.all[from].file)
}

// beside writes the new content beside the place, with the attributes of like; nil: those of a new
// file with that mode.
func (s *staged) beside(v *View, mode os.FileMode, like *File) (err error) {
	name := s.temporary(v)
	s.temp, err = writeBeside(s.dir, name, s.next.Data, mode, func(temp *os.File) error {
		if like == nil {
			return nil
		}
		return keepAttributes(like.File, temp)
	})
	if err == nil {
		s.name = name
	}
	return err
}

// keep makes a second name of the old file, or a copy of it where it cannot have one.
func (s *staged) keep(v *View) error {
	name := s.temporary(v)
	if s.dir.Link(filepath.Base(s.path.Real), name) == nil {
		s.aside = name
		return nil
	}
	copied, err := writeBeside(s.dir, name, s.old.Data, 0o600, func(to *os.File) error { return keepAttributes(s.file.File, to) })
	if err != nil {
		return err
	}
	s.aside = name
	return copied.Close()
}

// temporary returns a name beside the file. It is noted until the change is over, so that nothing
// is left behind if the daemon dies.
func (s *staged) temporary(v *View) string {
	name := tempName()
	s.forget = append(s.forget, v.ws.locks.note(filepath.Join(filepath.Dir(s.path.Real), name)))
	return name
}

// unstage drops what was prepared of a file that is written in place.
func (s *staged) unstage() {
	for _, name := range []string{s.name, s.aside} {
		if name != "" {
			_ = s.dir.Remove(name) // what stays is found by its note
		}
	}
	if s.temp != nil {
		s.temp.Close()
	}
	s.dir.Close()
	s.dir, s.temp, s.name, s.aside = nil, nil, "", ""
}

// commit makes the change.
func (s *staged) commit(ctx context.Context, v *View) error {
	if !s.buffered {
		return v.unwritten(s.path, s.place())
	}
	made, err := v.edit(ctx, s.buffer, s.path, s.next.Data)
	if err != nil {
		return err
	}
	s.buffer, s.info = made, made.info()
	return nil
}

// place moves the new content to its place.
func (s *staged) place() (err error) {
	base := filepath.Base(s.path.Real)
	switch {
	case s.dir == nil:
		return s.writeInPlace()
	case !s.path.Exists:
		err = appear(s.dir, s.name, base)
	default:
		if err = unchanged(s.file, s.old, func() (os.FileInfo, error) { return s.dir.Lstat(base) }); err != nil {
			return err
		}
		if s.next.Remove {
			return s.dir.Remove(base)
		}
		if err = takesNone(s.dir.Rename(s.name, base)); errors.Is(err, errInPlace) {
			s.unstage()
			return s.writeInPlace()
		}
	}
	if err != nil {
		return err
	}
	s.name, s.made = "", !s.path.Exists
	s.info, err = s.temp.Stat()
	return err
}

func (s *staged) writeInPlace() (err error) {
	if err := unchanged(s.file, s.old, s.file.Stat); err != nil {
		return err
	}
	if err := writeInPlace(s.file.File, s.old.Data, s.next.Data); err != nil {
		return err
	}
	s.inPlace = true
	s.info, err = s.file.Stat()
	return err
}

// undo puts the old file back after a commit.
func (s *staged) undo(ctx context.Context, v *View) (err error) {
	base := filepath.Base(s.path.Real)
	switch {
	case s.buffered:
		_, err = v.edit(ctx, s.buffer, s.path, s.old.Data)
		return err
	case s.inPlace:
		return writeInPlace(s.file.File, s.next.Data, s.old.Data)
	case s.next.Remove:
		err = appear(s.dir, s.aside, base)
	default:
		now, gone := s.dir.Lstat(base)
		switch {
		case gone != nil || !os.SameFile(now, s.info):
			return errChanged
		case s.made:
			err, s.made = s.dir.Remove(base), false
		default:
			err = s.dir.Rename(s.aside, base)
		}
	}
	if err == nil {
		s.aside = ""
	}
	return err
}

// unchanged compares the metadata that now returns with the metadata from when old was read. If
// they differ, the content of f decides, as long as the name still leads to f.
func unchanged(f *File, old *Content, now func() (os.FileInfo, error)) error {
	stale := fault.Invalidf("stale_file", "%s was changed by another program while this call was working on it. Nothing was written; read it again.", f.Path.Shown())
	info, err := now()
	if err != nil {
		return stale
	}
	s := StateOf(info)
	if s.sameFacts(old.State) {
		return nil
	}
	if s.inode() != old.State.inode() {
		return stale
	}
	if data, _, err := readWhole(f); err != nil || Hash(data) != old.State.Hash {
		return stale
	}
	return nil
}

// makeParents opens the directory that will hold p, and creates its missing part.
func (v *View) makeParents(p Path) (*os.Root, error) {
	parent := filepath.Dir(p.Real)
	there := parent
	for {
		info, err := os.Lstat(there)
		if err == nil && !info.IsDir() {
			return nil, fault.Invalidf("not_a_directory", "%s cannot be created: %s is a file, not a directory. Choose another path.", p.Shown(), there)
		}
		if err == nil {
			break
		}
		there = filepath.Dir(there)
	}
	if there == parent {
		return v.openDir(parent, p)
	}
	root, err := v.openDir(there, p)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	rel, err := filepath.Rel(there, parent)
	if err != nil {
		return nil, err
	}
	if err := root.MkdirAll(rel, 0o777); err != nil {
		return nil, v.unwritten(p, err)
	}
	return v.openDir(parent, p)
}

// tempName returns a file name that cannot be guessed.
func tempName() string { return tempPrefix + rand.Text() + tempSuffix }

// writeBeside writes data, synced, to a new file of that name in dir. mode, less the umask, is its
// mode while it is written. dress is called after that, since writing clears set-user-id. The
// caller renames or removes the file. Nothing is left behind after an error.
func writeBeside(dir *os.Root, name string, data []byte, mode os.FileMode, dress func(*os.File) error) (*os.File, error) {
	temp, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, takesNone(err)
	}
	_, err = temp.Write(data)
	if err == nil {
		err = dress(temp)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, temp.Close(), dir.Remove(name))
	}
	return temp, nil
}

// takesNone returns errInPlace if err is a directory's refusal of a new file or of a rename.
func takesNone(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return errInPlace
	}
	return err
}

// appear renames the temporary file to its final name, unless that name exists by now.
func appear(dir *os.Root, temp, base string) error {
	err := dir.Link(temp, base)
	if err == nil {
		return dir.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no hard links.
	if _, err := dir.Lstat(base); err == nil {
		return fs.ErrExist
	}
	return dir.Rename(temp, base)
}

// writeInPlace makes data the content of f. It allocates space first, so that a full disk is
// detected before anything is lost. If writing fails all the same, it restores old.
func writeInPlace(f *os.File, old, data []byte) error {
	if grown := int64(len(data) - len(old)); grown > 0 {
		if err := reserve(f, int64(len(old)), grown); isFull(err) {
			return err
		}
	}
	err := overwrite(f, data)
	if err != nil {
		return errors.Join(err, overwrite(f, old))
	}
	return nil
}

func overwrite(f *os.File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	return f.Sync()
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, io.ErrShortWrite)
}

// unwritten returns the fault for a failed write.
func (v *View) unwritten(p Path, err error) error {
	var said *fault.Error
	switch {
	case err == nil, errors.As(err, &said):
		return err
	case isFull(err):
		return fault.Failedf("disk_full", "No space is left on the disk (or in the quota) that holds %s. It is unchanged; free some space and send the call again.", p.Shown())
	case errors.Is(err, fs.ErrExist):
		return fault.Invalidf("stale_file", "%s was created by another program while this call was working on it. Nothing was written; read it first.", p.Shown())
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errInPlace), errors.Is(err, syscall.EROFS):
		return fault.Failedf("permission_denied", "%s may not be written by the daemon's user. Nothing was changed.", p.Shown())
	case errors.Is(err, syscall.ENOTDIR):
		return fault.Invalidf("not_a_directory", "%s cannot be created: a part of the path to it is a file, not a directory.", p.Shown())
	}
	return fault.Failedf("io_error", "%s could not be written: %v. It is unchanged.", p.Shown(), Cause(err))
}
