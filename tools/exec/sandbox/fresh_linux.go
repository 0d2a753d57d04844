// Files that a process may make in a directory that stays closed. Each is made before the process
// starts, since nothing can be mounted on a missing path, and removed afterwards if the process has
// not used it.

package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// touching are the events that count as use of a file: opening for writing, even if nothing was
// written, or a change.
const touching = unix.IN_CLOSE_WRITE | unix.IN_MODIFY | unix.IN_ATTRIB

// fresh are the files that were made for one process.
type fresh struct {
	events int // an inotify descriptor
	files  map[int]freshFile
}

type freshFile struct {
	path string
	file identity
}

// makeFresh makes the files, empty and with the mode that a program would use. It leaves out a file
// that it cannot make: the process then fails as it would have without it.
func makeFresh(paths []string) *fresh {
	if len(paths) == 0 {
		return nil
	}
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	f := &fresh{events: events, files: map[int]freshFile{}}
	for _, path := range paths {
		_ = inDirectoryOf(path, func(dir int, name string) error { return f.make(dir, name, path) })
	}
	return f
}

// make makes one file in an open directory, and watches it.
func (f *fresh) make(dir int, name, path string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	var info unix.Stat_t
	err = unix.Fstat(fd, &info)
	if err := errors.Join(err, unix.Close(fd)); err != nil { // before it is watched, since this counts as writing
		return err
	}
	watch, err := unix.InotifyAddWatch(f.events, path, touching|unix.IN_DONT_FOLLOW)
	if err != nil {
		return errors.Join(err, unix.Unlinkat(dir, name, 0))
	}
	f.files[watch] = freshFile{path, identityOf(&info)}
	return nil
}

// close removes the unused files. All processes that may use them have ended.
func (f *fresh) close() {
	if f == nil {
		return
	}
	defer unix.Close(f.events)
	if f.forgetUsed() != nil {
		return // unknown which were used
	}
	for _, made := range f.files {
		_ = inDirectoryOf(made.path, func(dir int, name string) error {
			var info unix.Stat_t
			if err := unix.Fstatat(dir, name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil || info.Size > 0 || made.file != identityOf(&info) {
				return err
			}
			return unix.Unlinkat(dir, name, 0)
		})
	}
}

// forgetUsed removes from the list the files that were opened for writing or changed.
func (f *fresh) forgetUsed() error {
	var buf [4096]byte
	for {
		n, err := unix.Read(f.events, buf[:])
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			watch, mask := int(int32(binary.NativeEndian.Uint32(buf[at:]))), binary.NativeEndian.Uint32(buf[at+4:])
			if mask&unix.IN_Q_OVERFLOW != 0 {
				return unix.EOVERFLOW
			}
			if mask&touching != 0 {
				delete(f.files, watch)
			}
			at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[at+12:])) // its name, only for a directory
		}
	}
}

// inDirectoryOf calls do with the open directory of a path. It follows no links.
func inDirectoryOf(path string, do func(dir int, name string) error) error {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), how)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(dir)
	return do(dir, filepath.Base(path))
}
