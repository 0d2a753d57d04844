// An entry that was met while walking and the open directory that it lies in. It opens by name inside that
// directory and follows no link, so what was met is what is opened.

package walk

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A File is an entry that is no directory. It is good until Visit returns.
type File struct {
	Path string      // below the root, with slashes
	Type fs.FileMode // type bits only: 0 is a regular file
	name string
	dir  *openDir
}

// Info is what a listing wants to know of a file.
type Info struct {
	Size    int64 // bytes
	ModTime time.Time
}

var errNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It never blocks: anything else is an error, also what was put in its place.
func (f *File) Open() (*os.File, error) {
	fd, err := openAt(f.dir.fd, f.name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.Path, Err: err}
	}
	return os.NewFile(uintptr(fd), f.Path), nil
}

// Info looks at the entry itself, never at what a link points to.
func (f *File) Info() (Info, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(f.dir.fd, f.name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Path, Err: err}
	}
	return Info{Size: s.Size, ModTime: time.Unix(s.Mtim.Unix())}, nil
}

// openAt returns a descriptor of the regular file name in dir.
func openAt(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var s unix.Stat_t
	err = unix.Fstat(fd, &s)
	if err == nil && s.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// An openDir is a directory that stays open while tasks about its entries are left.
type openDir struct {
	file  *os.File
	fd    int
	users atomic.Int32
}

// openRoot opens the directory that root stands for. It works on a duplicate descriptor: a File that came from a Root
// looks at each entry of a directory with a system call of its own.
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

// open opens the directory name in d. A link that was put in its place is an error.
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
