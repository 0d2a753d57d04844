// Protected paths that cannot be protected while a process runs, because they do not exist or
// because the process may change them. They are checked afterwards.

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SetAside renames what stands at a protected path, within its directory, and writes a regular file
// with the content before in its place unless before is nil. Both happen in one step if the file
// system supports it. SetAside returns the denial that reports it. It follows no symbolic link: if
// the directory of the path is a link, the link itself is renamed.
func SetAside(path string, before *Content) (Denial, error) {
	if info, err := os.Lstat(filepath.Dir(path)); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return SetAside(filepath.Dir(path), nil)
	}
	aside := asideName(path)
	err := inDirectoryOf(path, func(dir int, name string) error {
		err := before.exchange(dir, name, aside)
		if errors.Is(err, unix.EACCES) {
			defer writable(dir)()
			err = before.exchange(dir, name, aside)
		}
		return err
	})
	if err != nil {
		return Denial{}, fmt.Errorf("moving %s aside: %w", path, err)
	}
	moved := filepath.Join(filepath.Dir(path), aside)
	return Denial{Operation: Writing, Target: path, Count: 1, MovedTo: moved, PutBack: before != nil}, nil
}

// writable makes an open directory of the user writable, and returns a function that undoes it.
func writable(dir int) (restore func()) {
	var info unix.Stat_t
	own := fmt.Sprintf("/proc/self/fd/%d", dir)
	if unix.Fstat(dir, &info) != nil || unix.Chmod(own, info.Mode&0o7777|0o700) != nil {
		return func() {}
	}
	return func() { _ = unix.Chmod(own, info.Mode&0o7777) }
}

// exchange renames from to aside in an open directory, and writes a file with the content in its
// place unless c is nil.
func (c *Content) exchange(dir int, from, aside string) error {
	if c == nil {
		err := unix.Renameat2(dir, from, dir, aside, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) { // the file system lacks the flag, and there is no entry of that name
			err = unix.Renameat(dir, from, dir, aside)
		}
		return err
	}
	if err := c.create(dir, aside); err != nil {
		return err
	}
	err := unix.Renameat2(dir, from, dir, aside, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) { // the file system lacks the flag
		old := aside + "-old"
		return errors.Join(unix.Renameat(dir, aside, dir, old), unix.Renameat(dir, from, dir, aside), unix.Renameat(dir, old, dir, from))
	}
	if err != nil {
		_ = unix.Unlinkat(dir, aside, 0)
	}
	return err
}

// create writes a new file of that name in an open directory.
func (c *Content) create(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(c.Mode.Perm()))
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(c.Data)
	return errors.Join(err, f.Chmod(c.Mode.Perm()), f.Close())
}
