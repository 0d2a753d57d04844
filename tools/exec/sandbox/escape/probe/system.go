//go:build linux

// Doors through the files of /proc and /sys that set up the machine. They are opened for writing, and nothing is written,
// but where it is this process's own.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func system() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "system", false, try}
	}
	opens := func(path string, flags int) door {
		verb := "open for writing "
		if flags == unix.O_RDONLY {
			verb = "read "
		}
		return f(verb+path, func(*scene.Scene) (string, error) { return opened(path, flags) })
	}
	return []door{
		opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY),
		opens("/proc/sys/kernel/modprobe", unix.O_WRONLY),
		opens("/proc/sys/kernel/hostname", unix.O_WRONLY),
		opens("/proc/sys/kernel/randomize_va_space", unix.O_WRONLY),
		opens("/proc/sys/kernel/ns_last_pid", unix.O_WRONLY),
		opens("/proc/sys/vm/overcommit_memory", unix.O_WRONLY),
		opens("/proc/sys/vm/drop_caches", unix.O_WRONLY),
		opens("/proc/sys/net/ipv4/ip_forward", unix.O_WRONLY),
		opens("/proc/sys/fs/binfmt_misc/register", unix.O_WRONLY),
		opens("/proc/sys/fs/file-max", unix.O_WRONLY),
		opens("/proc/sysrq-trigger", unix.O_WRONLY),
		opens("/proc/irq/default_smp_affinity", unix.O_WRONLY),
		opens("/proc/mtrr", unix.O_WRONLY),
		opens("/proc/kcore", unix.O_RDONLY),
		opens("/proc/kpageflags", unix.O_RDONLY),
		opens("/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY),
		opens("/sys/kernel/uevent_helper", unix.O_WRONLY),
		opens("/sys/power/state", unix.O_WRONLY),
		opens("/sys/kernel/debug/sched/verbose", unix.O_RDONLY),
		opens("/sys/kernel/tracing/trace_marker", unix.O_WRONLY),
		f("read kernel addresses in /proc/kallsyms", kernelAddresses),
		f("lower /proc/self/oom_score_adj", func(*scene.Scene) (string, error) {
			return "-1000", store("/proc/self/oom_score_adj", "-1000")
		}),
		f("open a core_pattern by another mount of proc", func(s *scene.Scene) (string, error) {
			return opened(fmt.Sprintf("/proc/%d/root/proc/sys/kernel/core_pattern", s.Victim.PID), unix.O_WRONLY)
		}),
		f("make a cgroup", makeGroup),
		f("move itself to another cgroup", func(*scene.Scene) (string, error) {
			dir := must(groupRoot())
			return opened(filepath.Join(dir, "cgroup.procs"), unix.O_WRONLY)
		}),
		f("set a cgroup's release agent", func(*scene.Scene) (string, error) {
			found, _ := filepath.Glob("/sys/fs/cgroup/*/release_agent")
			if len(found) == 0 {
				return "", unix.ENOENT
			}
			return opened(found[0], unix.O_WRONLY)
		}),
	}
}

func opened(path string, flags int) (string, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	return "opened", unix.Close(fd)
}

func kernelAddresses(*scene.Scene) (string, error) {
	f := must(os.Open("/proc/kallsyms"))
	b := make([]byte, 4096)
	n := must(f.Read(b))
	for line := range strings.Lines(string(b[:n])) {
		address, _, _ := strings.Cut(line, " ")
		if at, err := strconv.ParseUint(address, 16, 64); err == nil && at != 0 {
			return "addresses are shown", nil
		}
	}
	return "", errors.New("all of them are zero")
}

// groupRoot is a directory of cgroups in which this machine could have another.
func groupRoot() (string, error) {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return dir, nil
		}
	}
	return "", unix.ENOENT
}

func makeGroup(s *scene.Scene) (string, error) {
	dir := must(groupRoot())
	made := filepath.Join(dir, "toold-"+s.Nonce)
	check(unix.Mkdir(made, 0o755))
	return finish(unix.Rmdir(made))("made and removed", nil)
}
