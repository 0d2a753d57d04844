package sandbox

// Protected paths that cannot be guarded while a process runs: nothing can be put on what does not exist, or what the process
// may change has to be looked at afterwards.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// takeAway moves what stands there now aside, so that nothing is lost and nobody finds it by its name, and says so.
func (a absences) takeAway() (denials []Denial) {
	for _, path := range a {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if d, err := SetAside(path, nil); err == nil {
			denials = append(denials, d)
		}
	}
	return denials
}

// SetAside renames what stands at a protected path, within its directory, and puts a regular file with the content before in
// its place unless that is nil. Where both happen, they happen in one step. It returns the denial that reports it. It follows
// no symbolic link: a path that leads elsewhere now is not the one that was to be protected.
func SetAside(path string, before *Content) (Denial, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), how)
	if err != nil {
		return Denial{}, fmt.Errorf("opening the directory of %s: %w", path, err)
	}
	defer unix.Close(dir)
	name := fmt.Sprintf(".denied-%s-%x", filepath.Base(path), time.Now().UnixNano())
	flags := uint(unix.RENAME_NOREPLACE)
	if before != nil {
		flags = unix.RENAME_EXCHANGE
		if err := before.create(dir, name); err != nil {
			return Denial{}, fmt.Errorf("writing what stood at %s: %w", path, err)
		}
	}
	if err := unix.Renameat2(dir, filepath.Base(path), dir, name, flags); err != nil {
		if before != nil {
			_ = unix.Unlinkat(dir, name, 0)
		}
		return Denial{}, fmt.Errorf("moving %s aside: %w", path, err)
	}
	aside := filepath.Join(filepath.Dir(path), name)
	return Denial{Operation: Writing, Target: path, Count: 1, MovedTo: aside, PutBack: before != nil}, nil
}

// create makes a file of that name in an open directory.
func (c *Content) create(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(c.Mode.Perm()))
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(c.Data)
	return errors.Join(err, f.Chmod(c.Mode.Perm()), f.Close())
}
