//go:build linux

// Doors through the files of /proc and /sys that set up the machine. They are opened for writing, and nothing is written,
// but where it is this process's own.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func system(p *probe) {
	f := p.inside("system")
	opens := func(verb string, flags int, paths ...string) {
		for _, path := range paths {
			f(verb+path, func() error { return opened(path, flags) })
		}
	}
	opens("open for writing ", unix.O_WRONLY, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
		"/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/ns_last_pid", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/drop_caches",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/file-max", "/proc/sysrq-trigger",
		"/proc/irq/default_smp_affinity", "/proc/mtrr", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_helper",
		"/sys/power/state", "/sys/kernel/tracing/trace_marker")
	opens("read ", unix.O_RDONLY, "/proc/kcore", "/proc/kpageflags", "/sys/kernel/debug/sched/verbose")
	f("read kernel addresses in /proc/kallsyms", kernelAddresses)
	f("lower /proc/self/oom_score_adj", func() error { return store("/proc/self/oom_score_adj", "-1000") })
	f("open a core_pattern by another mount of proc", func() error {
		return opened(proc(p.Victim.PID, "root/proc/sys/kernel/core_pattern"), unix.O_WRONLY)
	})
	f("make a cgroup", func() error {
		made := filepath.Join(groupRoot(), "toold-"+p.Nonce)
		check(unix.Mkdir(made, 0o755))
		p.then(unix.Rmdir(made))
		return nil
	})
	f("move itself to another cgroup", func() error { return opened(filepath.Join(groupRoot(), "cgroup.procs"), unix.O_WRONLY) })
	f("set a cgroup's release agent", func() error {
		found, _ := filepath.Glob("/sys/fs/cgroup/*/release_agent")
		if len(found) == 0 {
			return unix.ENOENT
		}
		return opened(found[0], unix.O_WRONLY)
	})
}

func opened(path string, flags int) error {
	return unix.Close(open(path, flags|unix.O_NOCTTY|unix.O_NONBLOCK))
}

func kernelAddresses() error {
	f := must(os.Open("/proc/kallsyms"))
	b := make([]byte, 4096)
	n := must(f.Read(b))
	for line := range strings.Lines(string(b[:n])) {
		address, _, _ := strings.Cut(line, " ")
		if at, err := strconv.ParseUint(address, 16, 64); err == nil && at != 0 {
			return nil
		}
	}
	return errors.New("all of them are zero")
}

// groupRoot is a directory of cgroups in which this machine could have another.
func groupRoot() string {
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return dir
		}
	}
	check(unix.ENOENT)
	return ""
}
