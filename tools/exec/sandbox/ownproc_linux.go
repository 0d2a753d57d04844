// The /proc of a confined process: that of its own process namespace, read-only, without the files
// that only root may read.

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// reserved are the first process numbers, which the kernel does not reuse (RESERVED_PIDS in
// kernel/pid.c). The numbers above must suffice for the allowed processes.
const reserved = 300

// mountProc adds the mount, in the process namespace that /proc is to show.
func (l *launch) mountProc(p *program) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	p.about = "mounting /proc"
	if most := l.command.Policy.Limits.Processes; most > 0 && countsApart() {
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

// write adds the writing of a text to a file. An error does not end the program.
func (p *program) write(path, text string) {
	f := p.do(unix.SYS_OPENAT, unix.AT_FDCWD, path, unix.O_WRONLY|unix.O_CLOEXEC).spare().opens()
	p.do(unix.SYS_WRITE, f, text, len(text)).spare()
	p.do(unix.SYS_CLOSE, f).spare()
}

// countsApart reports whether the number of processes must be limited by their namespace, because
// the kernel does not count root's processes against a limit. Since Linux 6.14 each namespace has
// its own greatest process number. Before that, and in a container, the number is the machine's and
// cannot be changed.
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

// rootsOwn returns the files of /proc that expose the kernel to root, even to a root without
// capabilities.
var rootsOwn = sync.OnceValue(func() (paths []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	entries, _ := os.ReadDir("/proc") // an invisible file cannot be read either
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0 {
			paths = append(paths, filepath.Join("/proc", entry.Name()))
		}
	}
	return paths
})
