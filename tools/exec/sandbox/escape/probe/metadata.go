//go:build linux

// Doors that change what is known of a file outside: modes, owners, times, attributes, flags, locks. Landlock knows none
// of these; only a read-only mount or a refused system call shuts them.

package main

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// Numbers that golang.org/x/sys does not have for every architecture; they are the same on all since Linux 5.
const (
	sysFchmodat2     = 452
	sysSetxattrat    = 463
	sysRemovexattrat = 466
	sysFileSetattr   = 469
	noDump           = 0x40 // FS_NODUMP_FL: an owner may set it, and nothing but dump(8) looks at it
	xNoDump          = 0x80 // FS_XFLAG_NODUMP
)

// attribute is on each victim file.
const attribute = "user.toold"

// onOpened tries it on a descriptor that is open for reading only.
func onOpened(try func(fd int) error) func(*scene.Scene) error {
	return func(s *scene.Scene) error {
		return try(must(unix.Open(out(s, victimFile), unix.O_RDONLY|unix.O_CLOEXEC, 0)))
	}
}

// onPath tries it by the path.
func onPath(try func(path string) error) func(*scene.Scene) error {
	return func(s *scene.Scene) error { return try(out(s, victimFile)) }
}

// text is a path as the kernel wants it.
func text(path string) uintptr {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

// kept holds what the kernel is told the address of. Go's heap does not move.
var kept []*byte

func metadata() []door {
	f := func(name string, try func(*scene.Scene) error) door { return plain("metadata", name, try) }
	at := unix.AT_FDCWD
	cwd := uintptr(at)
	past := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	pastMicro := []unix.Timeval{{Sec: 1}, {Sec: 1}}
	owner := os.Getuid() // root gives the file away; another user may only confirm what is, which the file's ctime tells
	if owner == 0 {
		owner = 12345
	}
	return append([]door{
		f("chmod outside", onPath(func(p string) error { return unix.Chmod(p, 0o600) })),
		f("fchmod outside", onOpened(func(fd int) error { return unix.Fchmod(fd, 0o600) })),
		f("fchmodat2 outside", onPath(func(p string) error { return call(sysFchmodat2, cwd, text(p), 0o600, 0) })),
		f("chmod outside through /proc/self/fd of an O_PATH descriptor", onPath(func(p string) error {
			fd := must(unix.Open(p, unix.O_PATH, 0))
			return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o600)
		})),
		f("chown outside", onPath(func(p string) error { return unix.Chown(p, owner, -1) })),
		f("lchown outside", onPath(func(p string) error { return unix.Lchown(p, owner, -1) })),
		f("fchown outside", onOpened(func(fd int) error { return unix.Fchown(fd, owner, -1) })),
		f("fchownat outside with AT_EMPTY_PATH", onOpened(func(fd int) error { return unix.Fchownat(fd, "", owner, -1, unix.AT_EMPTY_PATH) })),
		f("utimensat outside", onPath(func(p string) error { return unix.UtimesNanoAt(at, p, past, 0) })),
		f("futimens outside", onOpened(func(fd int) error {
			return call(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&past[0])), 0)
		})),
		f("utimes outside", onPath(func(p string) error { return unix.Utimes(p, pastMicro) })),
		f("touch outside to the present", onPath(func(p string) error { return os.Chtimes(p, time.Time{}, time.Now()) })),
		f("setxattr outside", onPath(func(p string) error { return unix.Setxattr(p, attribute, []byte("changed"), 0) })),
		f("lsetxattr outside", onPath(func(p string) error { return unix.Lsetxattr(p, attribute, []byte("changed"), 0) })),
		f("fsetxattr outside", onOpened(func(fd int) error { return unix.Fsetxattr(fd, attribute, []byte("changed"), 0) })),
		f("setxattrat outside", onPath(setxattrat)),
		f("removexattr outside", onPath(func(p string) error { return unix.Removexattr(p, attribute) })),
		f("lremovexattr outside", onPath(func(p string) error { return unix.Lremovexattr(p, attribute) })),
		f("fremovexattr outside", onOpened(func(fd int) error { return unix.Fremovexattr(fd, attribute) })),
		f("removexattrat outside", onPath(func(p string) error {
			return call(sysRemovexattrat, cwd, text(p), 0, text(attribute))
		})),
		f("set a POSIX access list outside", onPath(func(p string) error { return unix.Setxattr(p, "system.posix_acl_access", accessList, 0) })),
		f("ioctl FS_IOC_SETFLAGS outside", onOpened(setFlags)),
		f("ioctl FS_IOC_FSSETXATTR outside", onOpened(setXFlags)),
		f("file_setattr outside", onPath(func(p string) error {
			attr := [3]uint64{xNoDump}
			return call(sysFileSetattr, cwd, text(p), uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
		})),
		{"hold a lock on a file outside", "metadata", false, lock},
	}, oldTimes(f)...)
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

func setxattrat(path string) error {
	value := []byte("changed")
	args := struct {
		value       uint64
		size, flags uint32
	}{uint64(uintptr(unsafe.Pointer(&value[0]))), uint32(len(value)), 0}
	kept = append(kept, &value[0])
	at := unix.AT_FDCWD
	return call(sysSetxattrat, uintptr(at), text(path), 0, text(attribute), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
}

func setFlags(fd int) error {
	flags := must(unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS))
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags^noDump)
}

func setXFlags(fd int) error {
	const get, set = 0x801c581f, 0x401c5820 // FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR
	var attr [7]uint32
	check(call(unix.SYS_IOCTL, uintptr(fd), get, uintptr(unsafe.Pointer(&attr))))
	attr[0] ^= xNoDump
	return call(unix.SYS_IOCTL, uintptr(fd), set, uintptr(unsafe.Pointer(&attr)))
}

// lock changes nothing, but makes others wait who lock the same file.
func lock(s *scene.Scene) (string, error) {
	err := onOpened(func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })(s)
	return "others who lock it would wait", err
}
