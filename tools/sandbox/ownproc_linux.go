package sandbox

// The /proc of a confined process: that of its own process namespace, read-only, without what takes root to read.

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// reserved are the numbers that the kernel gives to no process once it has counted to the end, since most of the first ones
// are taken (RESERVED_PIDS in kernel/pid.c). What is left above must do for as many as are allowed.
const reserved = 300

// mountProc adds the mounting, in the process namespace whose /proc it shall be.
func (l *launch) mountProc(p *program) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	p.about = "mounting /proc"
	if most := l.policy.Limits.Processes; most > 0 && countsApart() {
		p.do(unix.SYS_MOUNT, "proc", "/proc", "proc", flags, 0)
		p.write("/proc/sys/kernel/pid_max", strconv.FormatUint(reserved+most, 10))
		p.do(unix.SYS_MOUNT, "", "/proc", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, 0)
	} else {
		p.do(unix.SYS_MOUNT, "proc", "/proc", "proc", unix.MS_RDONLY|flags, 0)
	}
	for _, path := range rootsOwn() {
		p.do(unix.SYS_MOUNT, "/dev/.nothing", path, "", unix.MS_BIND, 0).spare()
	}
}

// write adds the writing of a text to a file. That it cannot be written is no end.
func (p *program) write(path, text string) {
	f := p.do(unix.SYS_OPENAT, unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CLOEXEC).spare()
	f.result = ^uintptr(0)
	p.do(unix.SYS_WRITE, f.at(), text, len(text)).spare()
	p.do(unix.SYS_CLOSE, f.at()).spare()
}

// countsApart says that the numbers of processes are to be limited by their namespace: the kernel does not count the
// processes of root against a limit of its own. Since Linux 6.14 each namespace has its own greatest number; before, and in
// a container, it is the machine's, and nobody's to change.
var countsApart = sync.OnceValue(func() bool {
	var name unix.Utsname
	var major, minor int
	if os.Geteuid() != 0 || unix.Uname(&name) != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	whole := strings.Fields(string(users))
	return err == nil && (major > 6 || major == 6 && minor >= 14) && len(whole) == 3 && whole[1] == "0" && whole[2] == "4294967295"
})

// rootsOwn are the files of /proc that show the kernel's inside to root alone, also to a root without capabilities.
var rootsOwn = sync.OnceValue(func() (paths []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	entries, _ := os.ReadDir("/proc") // what is not seen cannot be read either
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
			paths = append(paths, filepath.Join("/proc", entry.Name()))
		}
	}
	return paths
})
