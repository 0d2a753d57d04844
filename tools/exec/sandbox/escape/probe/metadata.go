//go:build linux

// Doors that change what is known of a file outside: modes, owners, times, attributes, flags, locks. Landlock knows none
// of these; only a read-only mount or a refused system call shuts them.

package main

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags of a file that an owner may set, and nothing but dump(8) looks at.
const (
	noDump  = 0x40 // FS_NODUMP_FL
	xNoDump = 0x80 // FS_XFLAG_NODUMP
)

// attribute is on each victim file.
const attribute = "user.toold"

func metadata(p *probe) {
	f, v := p.outside("metadata"), p.file
	opened := func(name string, try func(fd int) error) { // for reading only
		f(name, func() error { return try(open(v, unix.O_RDONLY)) })
	}
	past := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	changed := []byte("changed")
	owner := os.Getuid() // root gives the file away; another user may only confirm what is, which the file's ctime tells
	if owner == 0 {
		owner = 12345
	}
	f("chmod outside", func() error { return unix.Chmod(v, 0o600) })
	opened("fchmod outside", func(fd int) error { return unix.Fchmod(fd, 0o600) })
	f("fchmodat2 outside", func() error { return call(unix.SYS_FCHMODAT2, cwd, v, 0o600, 0) })
	f("chmod outside through /proc/self/fd of an O_PATH descriptor", func() error { return unix.Chmod(self(open(v, unix.O_PATH)), 0o600) })
	f("chown outside", func() error { return unix.Chown(v, owner, -1) })
	f("lchown outside", func() error { return unix.Lchown(v, owner, -1) })
	opened("fchown outside", func(fd int) error { return unix.Fchown(fd, owner, -1) })
	opened("fchownat outside with AT_EMPTY_PATH", func(fd int) error { return unix.Fchownat(fd, "", owner, -1, unix.AT_EMPTY_PATH) })
	f("utimensat outside", func() error { return unix.UtimesNanoAt(cwd, v, past, 0) })
	opened("futimens outside", func(fd int) error { return call(unix.SYS_UTIMENSAT, fd, 0, unsafe.Pointer(&past[0]), 0) })
	f("utimes outside", func() error { return unix.Utimes(v, []unix.Timeval{{Sec: 1}, {Sec: 1}}) })
	f("touch outside to the present", func() error { return os.Chtimes(v, time.Time{}, time.Now()) })
	f("setxattr outside", func() error { return unix.Setxattr(v, attribute, changed, 0) })
	f("lsetxattr outside", func() error { return unix.Lsetxattr(v, attribute, changed, 0) })
	opened("fsetxattr outside", func(fd int) error { return unix.Fsetxattr(fd, attribute, changed, 0) })
	f("setxattrat outside", func() error {
		args := [2]uint64{uint64(text("changed")), uint64(len("changed"))} // struct xattr_args: value, size, flags
		return call(unix.SYS_SETXATTRAT, cwd, v, 0, attribute, unsafe.Pointer(&args), unsafe.Sizeof(args))
	})
	f("removexattr outside", func() error { return unix.Removexattr(v, attribute) })
	f("lremovexattr outside", func() error { return unix.Lremovexattr(v, attribute) })
	opened("fremovexattr outside", func(fd int) error { return unix.Fremovexattr(fd, attribute) })
	f("removexattrat outside", func() error { return call(unix.SYS_REMOVEXATTRAT, cwd, v, 0, attribute) })
	f("set a POSIX access list outside", func() error { return unix.Setxattr(v, "system.posix_acl_access", accessList, 0) })
	opened("ioctl FS_IOC_SETFLAGS outside", func(fd int) error {
		flags := must(unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS))
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags^noDump)
	})
	opened("ioctl FS_IOC_FSSETXATTR outside", func(fd int) error {
		const get, set = 0x801c581f, 0x401c5820 // FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR
		var attr [7]uint32
		check(call(unix.SYS_IOCTL, fd, get, unsafe.Pointer(&attr)))
		attr[0] ^= xNoDump
		return call(unix.SYS_IOCTL, fd, set, unsafe.Pointer(&attr))
	})
	f("file_setattr outside", func() error {
		attr := [3]uint64{xNoDump}
		return call(unix.SYS_FILE_SETATTR, cwd, v, unsafe.Pointer(&attr), unsafe.Sizeof(attr), 0)
	})
	p.inside("metadata")("hold a lock on a file outside", func() error { // it changes nothing
		return p.did(unix.Flock(open(v, unix.O_RDONLY), unix.LOCK_EX|unix.LOCK_NB), "others who lock it would wait")
	})
}

// accessList grants a second user to read: version 2, then owner, user 12345, group, mask, others.
var accessList = []byte{
	2, 0, 0, 0,
	1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff,
	2, 0, 4, 0, 0x39, 0x30, 0, 0,
	4, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,
	0x10, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,
	0x20, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,
}
