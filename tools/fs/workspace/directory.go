// A directory opened for its own entries.

package workspace

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fault"
)

// A Dir is a directory opened to list it. The caller closes it. It is for one goroutine.
type Dir struct {
	within
	fd int
}

// OpenDir opens the directory that name resolves to. It returns the faults of Tree, and
// not_a_directory for a file.
func (v *View) OpenDir(name string) (*Dir, error) {
	p, err := v.readable(name)
	if err != nil {
		return nil, err
	}
	if !p.Exists || !p.IsDir() {
		t, err := v.treeOf(p)
		if err == nil && t.Single != "" {
			err = fault.Invalidf("not_a_directory", "%s is not a directory. Open it with Read, or list %s.", p.Shown(), filepath.Dir(p.Shown())).At("/path")
		}
		if err != nil {
			return nil, err
		}
	}
	fd, err := v.ws.openDirectoryReal(p.Real)
	if err != nil {
		return nil, v.refused(p, whetherMoved(p.Real, err))
	}
	return &Dir{within: v.within(p, p.Real), fd: fd}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Fd returns the descriptor of the directory, which stays open until Close.
func (d *Dir) Fd() int { return d.fd }

// Each calls visit for every entry, in the order of the file system, until it returns false. kind
// holds the type bits. It may be called once.
func (d *Dir) Each(visit func(name string, kind fs.FileMode) bool) error {
	return readDirectory(d.fd, visit)
}

// Size returns the size of the entry name in bytes; 0: it has vanished.
func (d *Dir) Size(name string) int64 {
	var s unix.Stat_t
	for {
		switch err := unix.Fstatat(d.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err {
		case nil:
			return s.Size
		case unix.EINTR:
		default:
			return 0
		}
	}
}

// Target returns what the link name holds; empty: it has vanished.
func (d *Dir) Target(name string) string {
	for size := 128; ; size *= 2 {
		target := make([]byte, size)
		switch n, err := unix.Readlinkat(d.fd, name, target); {
		case err == unix.EINTR:
		case err != nil:
			return ""
		case n < size:
			return string(target[:n])
		}
	}
}
