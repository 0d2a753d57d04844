// File facts that only the kernel has, on macOS. Not tested.

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isMadeUp returns false: there is no procfs.
func isMadeUp(*os.File) bool { return false }

// isMagic returns false: there are no procfs links.
func isMagic(string) bool { return false }

// liesAt reports that f is the file at the real path, and that no link leads there.
func liesAt(f *os.File, real string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(real)
	if err != nil || !os.SameFile(here, there) {
		return false
	}
	resolved, err := filepath.EvalSymlinks(real)
	return err == nil && resolved == real
}

// openReal opens the real path, which leads through no link: if one was put there since, the error is
// errMoved.
func (w *Workspace) openReal(real string, flag int) (*os.File, error) { return w.openBelow(real, flag) }

// openDirectoryReal opens the directory at the real path as openReal does, and returns its
// descriptor.
func (w *Workspace) openDirectoryReal(real string) (fd int, err error) {
	f, err := w.openBelow(real, openDirectory)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	err = withDescriptor(f, func(from int) (err error) {
		fd, err = unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// readDirectory calls each for the entries of an open directory until it returns false. kind has type
// bits.
func readDirectory(fd int, each func(name string, kind fs.FileMode) bool) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for e, err := range Entries(os.NewFile(uintptr(own), "directory"), nil) {
		if err != nil {
			return err
		}
		if !each(e.Name(), e.Type()) {
			break
		}
	}
	return nil
}

// stateFile returns an open file that holds data and has no name.
func stateFile(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "buffer")
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(data, 0)
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reserve does nothing: a full disk is detected while writing, and the old content is then
// restored.
func reserve(*os.File, int64, int64) error { return nil }

func changeTime(s *syscall.Stat_t) time.Time { return time.Unix(s.Ctimespec.Unix()) }

// idOf returns the identity of f.
func idOf(f *os.File) FileID {
	info, err := f.Stat()
	if err != nil {
		return FileID{}
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return born(uint64(s.Dev), s.Ino, time.Unix(s.Birthtimespec.Unix()))
}
