// File facts that only the kernel has, on Linux.

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// madeUp are the file systems whose files report size 0 and have content all the same.
var madeUp = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true,
	unix.SECURITYFS_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true,
}

func isMadeUp(f *os.File) bool {
	var of unix.Statfs_t
	err := withDescriptor(f, func(fd int) error { return unix.Fstatfs(fd, &of) })
	return err == nil && madeUp[int64(of.Type)]
}

// isMagic reports whether the links in dir are magic: dir belongs to a process's part of a procfs.
// The links at its top ("self", "mounts") are plain text.
func isMagic(dir string) bool {
	var of, above unix.Statfs_t
	if unix.Statfs(dir, &of) != nil || of.Type != unix.PROC_SUPER_MAGIC {
		return false
	}
	return unix.Statfs(filepath.Dir(dir), &above) == nil && above.Type == unix.PROC_SUPER_MAGIC
}

// liesAt reports whether f is now the file at the real path. The kernel has the path of f, whatever
// name it was opened by; where several names lead to one file, the kernel may spell it differently.
func liesAt(f *os.File, real string) bool {
	var held string
	err := withDescriptor(f, func(fd int) (err error) {
		held, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		return err
	})
	return err == nil && (held == real || respelled(held) == real)
}

// openReal opens the real path, which leads through no link: if one was put there since, the error is
// ELOOP. Where a directory does not tell case apart, another file may have come under another spelling:
// then it is errMoved.
func (w *Workspace) openReal(real string, flag int) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flag | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, real, &how)
		switch err {
		case nil:
			f := os.NewFile(uintptr(fd), real)
			if !liesAt(f, real) {
				return nil, errors.Join(errMoved, f.Close())
			}
			return f, nil
		case unix.EINTR:
		case unix.ENOSYS, unix.EPERM: // of Linux before 5.6, and of what filters system calls
			return w.openBelow(real, flag)
		default:
			return nil, &fs.PathError{Op: "openat2", Path: real, Err: err}
		}
	}
}

// stateFile returns an open file that holds data and has no name.
func stateFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("buffer", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "buffer")
	if _, err := f.WriteAt(data, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reserve allocates n bytes of f from offset at, without changing its content or its size.
func reserve(f *os.File, at, n int64) error {
	return withDescriptor(f, func(fd int) error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, at, n) })
}

func changeTime(s *syscall.Stat_t) time.Time { return time.Unix(s.Ctim.Unix()) }

// idOf returns the identity of f.
func idOf(f *os.File) FileID {
	var x unix.Statx_t
	err := withDescriptor(f, func(fd int) error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME|unix.STATX_INO, &x)
	})
	if err != nil || x.Mask&unix.STATX_BTIME == 0 {
		return FileID{}
	}
	return born(unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino, time.Unix(x.Btime.Sec, int64(x.Btime.Nsec)))
}
