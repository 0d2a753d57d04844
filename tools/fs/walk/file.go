// Entries that a walk finds, with the open directory that holds them. Files are opened by name
// inside that directory, without following links, so the opened file is the one that was found.

package walk

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A File is an entry other than a directory. It is valid until Visit returns.
type File struct {
	Path string      // below the root, with slashes
	Type fs.FileMode // type bits only: 0 is a regular file
	name string
	dir  *openDir
}

var errNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It never blocks; it returns an error for any other kind of
// file, even if it has replaced a regular one.
func (f *File) Open() (*os.File, error) {
	return openAt(f.dir.fd, f.name, f.Path)
}

// ModTime returns when the content of the entry itself was changed; it does not follow a link.
func (f *File) ModTime() (time.Time, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(f.dir.fd, f.name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return time.Time{}, &fs.PathError{Op: "stat", Path: f.Path, Err: err}
	}
	return time.Unix(s.Mtim.Unix()), nil
}

// openAt opens the regular file name in dir. path is its name in errors.
func openAt(dir int, name, path string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		var s unix.Stat_t
		if err = unix.Fstat(fd, &s); err == nil && s.Mode&unix.S_IFMT != unix.S_IFREG {
			err = errNotRegular
		}
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		unix.Close(fd)
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}

// An openDir is a directory that stays open while tasks about its entries are left.
type openDir struct {
	file  *os.File
	fd    int
	users atomic.Int32
}

// openRoot opens the directory of root, on a duplicate descriptor. The Files of a Root would need
// an additional system call for each entry.
func openRoot(root *os.Root) (*openDir, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: ".", Err: err}
	}
	return newOpenDir(fd), nil
}

// open opens the directory name in d. It returns an error if a link has replaced the directory.
func (d *openDir) open(name string) (*openDir, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return newOpenDir(fd), nil
}

func newOpenDir(fd int) *openDir {
	d := &openDir{file: os.NewFile(uintptr(fd), "directory"), fd: fd}
	d.users.Store(1)
	return d
}

func (d *openDir) keep() { d.users.Add(1) }

func (d *openDir) drop() {
	if d.users.Add(-1) == 0 {
		d.file.Close()
	}
}
