// Atomic writing: a file is either the old one or the new one.

package workspace

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toold/toold/tools/fault"
)

// errInPlace means that a new file cannot replace the old one: it could not get the old owner or
// attributes, or the directory accepts no new file.
var errInPlace = errors.New("a new file could not take its place")

// replace writes data to the file old, which f holds, and returns the metadata of the result.
func (v *View) replace(f *File, old *Content, data []byte) (os.FileInfo, error) {
	if old.Links == 1 {
		info, err := v.replaceAtomically(f, old, data)
		if !errors.Is(err, errInPlace) {
			return info, v.unwritten(f.Path, err)
		}
	}
	if err := unchanged(f, old, f.Stat); err != nil {
		return nil, err
	}
	if err := writeInPlace(f.File, old.Data, data); err != nil {
		return nil, v.unwritten(f.Path, err)
	}
	return f.Stat()
}

func (v *View) replaceAtomically(f *File, old *Content, data []byte) (os.FileInfo, error) {
	dir, err := v.openDir(filepath.Dir(f.Path.Real), f.Path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	base, name := filepath.Base(f.Path.Real), tempName()
	defer v.ws.locks.note(filepath.Join(filepath.Dir(f.Path.Real), name))()
	temp, err := writeBeside(dir, name, data, 0o600, func(temp *os.File) error { return keepAttributes(f.File, temp) })
	if err != nil {
		return nil, err
	}
	defer temp.Close()
	err = unchanged(f, old, func() (os.FileInfo, error) { return dir.Lstat(base) })
	if err == nil {
		err = dir.Rename(name, base)
	}
	if err != nil {
		return nil, errors.Join(takesNone(err), dir.Remove(name))
	}
	return temp.Stat()
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

// createFile makes a new file and its directories, and returns its metadata.
func (v *View) createFile(p Path, data []byte) (os.FileInfo, error) {
	dir, err := v.makeParents(p)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name := tempName()
	defer v.ws.locks.note(filepath.Join(filepath.Dir(p.Real), name))()
	temp, err := writeBeside(dir, name, data, 0o666, func(*os.File) error { return nil })
	if err != nil {
		return nil, v.unwritten(p, err)
	}
	defer temp.Close()
	if err := appear(dir, name, filepath.Base(p.Real)); err != nil {
		return nil, v.unwritten(p, errors.Join(err, dir.Remove(name)))
	}
	return temp.Stat()
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
