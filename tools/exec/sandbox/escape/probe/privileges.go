//go:build linux

// Doors to more rights than the starter meant to give: programs that change who runs them, capabilities, limits.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func privileges() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "privileges", false, try}
	}
	return []door{
		f("run a setuid program", func(s *scene.Scene) (string, error) {
			said, err := askWho(s.Setuid)
			if err == nil && strings.HasPrefix(said, fmt.Sprintf("uid %d ", os.Geteuid())) {
				err = errors.New("it ran as the same user")
			}
			return said, err
		}),
		f("run a program with file capabilities", func(s *scene.Scene) (string, error) {
			said, err := askWho(s.Capable)
			if err == nil && strings.Contains(said, "capabilities 0000000000000000") {
				err = errors.New("it ran without any")
			}
			return said, err
		}),
		f("hold capabilities", func(*scene.Scene) (string, error) {
			held, err := status("CapEff")
			if err == nil && strings.Trim(held, "0") == "" {
				err = errors.New("none")
			}
			return held, err
		}),
		f("hold capabilities to be gained by exec", func(*scene.Scene) (string, error) {
			bounding, err := status("CapBnd")
			kept, err2 := status("NoNewPrivs")
			if err = errors.Join(err, err2); err == nil && (strings.Trim(bounding, "0") == "" || kept == "1") {
				err = errors.New("no exec gives any")
			}
			return bounding, err
		}),
		f("setuid to another user", func(*scene.Scene) (string, error) { return "done", unix.Setresuid(4242, 4242, 4242) }),
		f("setgid to another group", func(*scene.Scene) (string, error) { return "done", unix.Setresgid(4242, 4242, 4242) }),
		f("setgroups", func(*scene.Scene) (string, error) { return "done", unix.Setgroups([]int{4242}) }),
		f("raise a hard limit", func(*scene.Scene) (string, error) {
			var l unix.Rlimit
			check(unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l))
			if l.Max == unix.RLIM_INFINITY {
				return "there was none", nil
			}
			l.Max++
			return "one more", unix.Setrlimit(unix.RLIMIT_MEMLOCK, &l)
		}),
		f("nice itself up", func(*scene.Scene) (string, error) { return "-1", unix.Setpriority(unix.PRIO_PROCESS, 0, -1) }),
		f("run in real time", func(*scene.Scene) (string, error) {
			attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
			return "done", unix.SchedSetAttr(0, &attr, 0)
		}),
		f("leave a core behind", func(*scene.Scene) (string, error) {
			var l unix.Rlimit
			err := unix.Getrlimit(unix.RLIMIT_CORE, &l)
			if err == nil && l.Max == 0 {
				err = errors.New("no core may be written")
			}
			return "the limit can be raised", err
		}),
	}
}

func askWho(program string) (string, error) {
	if program == "" {
		return "", errors.New("the suite could not make one")
	}
	said, err := exec.Command(program, "who").Output()
	return strings.TrimSpace(string(said)), err
}

func who() error {
	held, err := status("CapEff")
	fmt.Fprintf(os.Stdout, "uid %d capabilities %s\n", os.Geteuid(), held)
	return err
}

// status is a line of /proc/self/status.
func status(name string) (string, error) {
	b, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", errors.Join(err, errors.New("no "+name+" in /proc/self/status"))
}

func home(s *scene.Scene) string { return strings.TrimSuffix(s.Credential, "/.ssh/id_test") }
