// File facts that only the kernel has, on Linux.

package workspace

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
func liesAt(f *os.File, real string) (is bool) {
	err := withDescriptor(f, func(fd int) error {
		is = isAt(fd, real)
		return nil
	})
	return err == nil && is
}

// isAt does what liesAt does, for a descriptor.
func isAt(fd int, real string) bool {
	link := "/proc/self/fd/" + strconv.Itoa(fd)
	var short [256]byte
	n, err := unix.Readlink(link, short[:])
	if err == nil && string(short[:n]) == real {
		return true
	}
	held, err := os.Readlink(link)
	return err == nil && (held == real || respelled(held) == real)
}

// openReal opens the real path, which leads through no link: if one was put there since, the error is
// ELOOP. Where a directory does not tell case apart, another file may have come under another spelling:
// then it is errMoved.
func (w *Workspace) openReal(real string, flag int) (*os.File, error) {
	fd, err := openat2(real, flag)
	if notOffered(err) {
		return w.openBelow(real, flag)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), real), nil
}

// openDirectoryReal opens the directory at the real path as openReal does, and returns its
// descriptor. An os.File would need two more system calls.
func (w *Workspace) openDirectoryReal(real string) (fd int, err error) {
	if fd, err = openat2(real, openDirectory); !notOffered(err) {
		return fd, err
	}
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

// notOffered reports whether the error of openat2 is one of Linux before 5.6, or of what filters
// system calls.
func notOffered(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

func openat2(real string, flag int) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flag | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		switch fd, err = unix.Openat2(unix.AT_FDCWD, real, &how); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return -1, &fs.PathError{Op: "openat2", Path: real, Err: err}
		case !isAt(fd, real):
			return -1, errors.Join(errMoved, unix.Close(fd))
		default:
			return fd, nil
		}
	}
}

// readDirectory calls each for the entries of an open directory until it returns false. kind has type
// bits.
func readDirectory(fd int, each func(name string, kind fs.FileMode) bool) error {
	buf := entryBuffers.Get().(*[8 << 10]byte)
	defer entryBuffers.Put(buf)
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		names := string(buf[:n]) // one for all of them
		for at := 0; at < n; {
			// struct linux_dirent64: inode, offset, length of the record, type, name, NUL
			size := int(binary.NativeEndian.Uint16(buf[at+16:]))
			name := names[at+19 : at+size]
			name = name[:strings.IndexByte(name, 0)]
			kind := kindOf(fd, name, buf[at+18])
			if at += size; name != "." && name != ".." && kind != vanished && !each(name, kind) {
				return nil
			}
		}
	}
}

// entryBuffers are reused from directory to directory.
var entryBuffers = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// vanished stands for the type of an entry that is not there any more.
const vanished = ^fs.FileMode(0)

// kindOf returns the type bits for the type of a directory entry. Some file systems have none there.
func kindOf(fd int, name string, of byte) fs.FileMode {
	if of == unix.DT_UNKNOWN {
		var s unix.Stat_t
		if unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return vanished
		}
		of = byte(s.Mode & unix.S_IFMT >> 12) // the two have the same numbers
	}
	switch of {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
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
