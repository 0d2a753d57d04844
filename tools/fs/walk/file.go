// Entries that a walk finds, with the open directory that holds them. Files are opened by name
// inside that directory, without following links, so the opened file is the one that was found.

package walk

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/index"
)

// A File is an entry other than a directory. It is valid until Visit returns.
type File struct {
	Type fs.FileMode // type bits only: 0 is a regular file
	name string
	dir  *openDir
}

// Path returns the path below the root, with slashes.
func (f *File) Path() string { return f.dir.below + f.name }

// Dir returns what of the path stands before the name: it ends with a slash, or is empty.
func (f *File) Dir() string { return f.dir.below }

// Name returns the last name of the path.
func (f *File) Name() string { return f.name }

var errNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It never blocks; it returns an error for any other kind of
// file, even if it has replaced a regular one.
func (f *File) Open() (*os.File, error) {
	return openAt(f.dir.fd, f.name, f.Path())
}

// A Reader reads a regular file from its beginning to where it ended when it was opened. It is for
// one goroutine; the caller closes it.
type Reader struct {
	fd    int
	left  int64 // bytes; negative: the kernel does not say how many there are
	path  string
	stamp index.Stamp
}

// Reader opens the file like Open. It takes half the system calls of an os.File that is read once.
func (f *File) Reader() (*Reader, error) {
	fd, s, err := openRegular(f.dir.fd, f.name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.Path(), Err: err}
	}
	r := &Reader{fd: fd, left: s.Size, path: f.Path(), stamp: index.StampOf(&s)}
	if r.left == 0 {
		r.left = -1 // as files of /proc have it
	}
	return r, nil
}

// ModTime returns when the content was changed, as of when the file was opened.
func (r *Reader) ModTime() time.Time { return r.stamp.ModTime() }

// Read implements io.Reader. The last bytes come together with io.EOF.
func (r *Reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	if r.left > 0 {
		p = p[:min(int64(len(p)), r.left)]
	}
	n, err := unix.Read(r.fd, p)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(r.fd, p)
	}
	switch {
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: r.path, Err: err}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	case r.left > 0:
		if r.left -= int64(n); r.left == 0 {
			return n, io.EOF
		}
	}
	return n, nil
}

// Close closes the file.
func (r *Reader) Close() { unix.Close(r.fd) }

// ModTime returns when the content of the entry itself was changed; it does not follow a link.
func (f *File) ModTime() (time.Time, error) {
	s, err := f.Stamp()
	return s.ModTime(), err
}

// Stamp returns the stamp of the entry itself; it does not follow a link.
func (f *File) Stamp() (index.Stamp, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(f.dir.fd, f.name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return index.Stamp{}, &fs.PathError{Op: "stat", Path: f.Path(), Err: err}
	}
	return index.StampOf(&s), nil
}

// openAt opens the regular file name in dir. path is its name in errors.
func openAt(dir int, name, path string) (*os.File, error) {
	fd, _, err := openRegular(dir, name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openRegular opens the regular file name in dir, and returns what stat has of it.
func openRegular(dir int, name string) (fd int, s unix.Stat_t, err error) {
	fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, s, err
	}
	if err = unix.Fstat(fd, &s); err == nil && s.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return -1, s, err
	}
	return fd, s, nil
}

// An openDir is a directory that stays open while tasks about its entries are left. One whose entries
// are remembered may never be opened.
type openDir struct {
	below  string   // its path below the root, with a slash at the end; empty: the root
	parent *openDir // where open finds it; nil: it is open
	fd     int      // -1: it is not open
	file   *os.File // owns fd once entries are read; nil: none has been
	users  atomic.Int32
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
	d := &openDir{fd: fd}
	d.keep()
	return d, nil
}

// child returns the directory name in d, which stays open until the child is open or dropped. The
// child is not open yet.
func (d *openDir) child(name string) *openDir {
	c := &openDir{below: d.below + name + "/", parent: d, fd: -1}
	c.keep()
	return c
}

// open opens the directory, unless it is open. It returns an error if a link has replaced it.
func (d *openDir) open() error {
	if d.parent == nil {
		return nil
	}
	fd, err := unix.Openat(d.parent.fd, d.name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d.fd, d.parent = fd, nil
	return nil
}

// path returns the path below the root, for messages.
func (d *openDir) path() string { return cmp.Or(strings.TrimSuffix(d.below, "/"), ".") }

// name returns the last name of the path.
func (d *openDir) name() string { return path.Base(d.below) }

// remembered returns the entries of the directory as it is now, if they are known.
func (d *openDir) remembered(by *index.Index) *index.Listing {
	var s unix.Stat_t
	var err error
	switch {
	case by == nil:
		return nil
	case d.parent == nil:
		err = unix.Fstat(d.fd, &s)
	default:
		err = unix.Fstatat(d.parent.fd, d.name(), &s, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil
	}
	return by.Listing(index.StampOf(&s))
}

// reading returns what takes note of the entries of the open directory while they are read.
func (d *openDir) reading(by *index.Index) *index.Reading {
	var s unix.Stat_t
	if by == nil || unix.Fstat(d.fd, &s) != nil {
		return nil
	}
	return by.Read(d.fd, index.StampOf(&s))
}

// entries reads the next entries, at most n.
func (d *openDir) entries(n int) ([]index.Entry, error) {
	if d.file == nil {
		d.file = os.NewFile(uintptr(d.fd), "directory")
	}
	read, err := d.file.ReadDir(n)
	list := make([]index.Entry, len(read))
	for i, e := range read {
		list[i] = index.Entry{Name: e.Name(), Type: e.Type()}
	}
	return list, err
}

func (d *openDir) keep() { d.users.Add(1) }

func (d *openDir) drop() {
	switch {
	case d.users.Add(-1) != 0 || d.fd < 0:
	case d.file != nil:
		d.file.Close()
	default:
		unix.Close(d.fd)
	}
}
