package settings

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A location is the place of a file that is there or will be, links resolved. Nothing outside dir is reached through it.
type location struct {
	dir  *os.Root
	name string // relative to dir
	file string // absolute
}

func (s *location) close() { _ = s.dir.Close() }

// openLocation finds the place of a file. Of a workspace it is at the real path root, and links that lead out of that are refused.
// A file of the user's has no root: its directory is made, and links are followed wherever they lead.
func openLocation(root, file string) (*location, error) {
	real, err := resolved(file)
	if err != nil {
		return nil, err
	}
	if root == "" {
		root = filepath.Dir(real)
		err = os.MkdirAll(root, 0o700)
	}
	rel, outside := filepath.Rel(root, real)
	if outside != nil || !filepath.IsLocal(rel) {
		return nil, &FileError{File: file, Why: fmt.Sprintf("it is a link to %s, out of the workspace, and is not written through", real)}
	}
	var dir *os.Root
	if err == nil {
		dir, err = os.OpenRoot(root)
	}
	if err != nil {
		return nil, asFileError(file, "written", err)
	}
	return &location{dir, rel, real}, nil
}

// resolved follows the links of a path as far as it exists.
func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return filepath.Abs(real)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", asFileError(path, "read", err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 { // not one that was made just now
		return "", &FileError{File: path, Why: "it is a link that leads nowhere; fix or remove it"}
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	real, err = resolved(parent)
	return filepath.Join(real, filepath.Base(path)), err
}

// read returns the file's content; nil: there is no file.
func (s *location) read() ([]byte, error) {
	info, err := s.dir.Stat(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, asFileError(s.file, "read", err)
	case !info.Mode().IsRegular():
		return nil, &FileError{File: s.file, Why: "it is not a regular file"}
	}
	data, err := readOpened(s.file, func() (*os.File, error) {
		return s.dir.OpenFile(s.name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return nil, asFileError(s.file, "read", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// write puts data in place of old, which read returned. A file that is there keeps its mode and owner; a new one gets mode.
// After an error everything is as it was.
func (s *location) write(old, data []byte, mode os.FileMode) error {
	if err := s.dir.MkdirAll(filepath.Dir(s.name), 0o755); err != nil {
		return asFileError(s.file, "written", err)
	}
	temp := filepath.Join(filepath.Dir(s.name), ".settings-"+rand.Text()+".tmp")
	f, err := s.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return asFileError(s.file, "written", err)
	}
	err = s.fill(f, data, mode)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = s.unchanged(old)
	}
	if err == nil {
		err = s.dir.Rename(temp, s.name)
	}
	if err != nil {
		_ = s.dir.Remove(temp)
		return asFileError(s.file, "written", err)
	}
	s.syncDir()
	return nil
}

// fill writes the new file, and sets its mode and owner to those of the old one.
func (s *location) fill(f *os.File, data []byte, mode os.FileMode) error {
	if info, err := s.dir.Stat(s.name); err == nil {
		mode = info.Mode().Perm()
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(sys.Uid), int(sys.Gid)); err != nil && int(sys.Uid) != os.Geteuid() {
				return &FileError{File: s.file, Why: "it belongs to another user, and a new file in its place would not"}
			}
		}
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// unchanged checks that the file was not written since it was read. A person's editor takes no lock.
func (s *location) unchanged(old []byte) error {
	now, err := s.read()
	if err == nil && (!bytes.Equal(now, old) || (now == nil) != (old == nil)) {
		err = &FileError{File: s.file, Why: "it was changed by another program at the same moment; nothing was written, try again"}
	}
	return err
}

// syncDir makes the new name last. Not every file system can; then it lasts a moment later.
func (s *location) syncDir() {
	if dir, err := s.dir.Open(filepath.Dir(s.name)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// exclusively keeps other writers out, of this process and of others that use the same user's files. Where there is no
// directory of the user's to lock, or its file system knows no locks, a location's own check is all there is against those
// others.
func (s *Store) exclusively(do func() error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	file := cmp.Or(s.sources.TrustFile, s.sources.User)
	if file == "" {
		return do()
	}
	home := filepath.Dir(file)
	_ = os.MkdirAll(home, 0o700) // opening it reports the error
	dir, err := os.Open(home)
	if err != nil {
		return do()
	}
	defer dir.Close() // releases the lock
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	return do()
}
