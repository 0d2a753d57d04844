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
)

func privileges(p *probe) {
	f := p.inside("privileges")
	f("run a setuid program", func() error {
		said := askWho(p.Setuid)
		return p.gained(!strings.HasPrefix(said, fmt.Sprintf("uid %d ", os.Geteuid())), said)
	})
	f("run a program with file capabilities", func() error {
		said := askWho(p.Capable)
		return p.gained(!strings.Contains(said, "capabilities 0000000000000000"), said)
	})
	f("hold capabilities", func() error {
		held := must(status("self", "CapEff"))
		return p.gained(strings.Trim(held, "0") != "", held)
	})
	f("hold capabilities to be gained by exec", func() error {
		bounding := must(status("self", "CapBnd"))
		return p.gained(must(status("self", "NoNewPrivs")) != "1" && strings.Trim(bounding, "0") != "", bounding)
	})
	f("setuid to another user", func() error { return unix.Setresuid(4242, 4242, 4242) })
	f("setgid to another group", func() error { return unix.Setresgid(4242, 4242, 4242) })
	f("setgroups", func() error { return unix.Setgroups([]int{4242}) })
	f("raise a hard limit", func() error {
		var l unix.Rlimit
		check(unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l))
		if l.Max == unix.RLIM_INFINITY {
			return p.did(nil, "there was none")
		}
		l.Max++
		return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &l)
	})
	f("nice itself up", func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -1) })
	f("run in real time", func() error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	})
	f("leave a core behind", func() error {
		var l unix.Rlimit
		check(unix.Getrlimit(unix.RLIMIT_CORE, &l))
		return p.gained(l.Max != 0, fmt.Sprintf("%d bytes at most", l.Max))
	})
}

// gained judges whether there are more rights; detail is what shows them.
func (p *probe) gained(more bool, detail string) error {
	if !more {
		return fmt.Errorf("nothing is gained: %s", detail)
	}
	return p.did(nil, "%s", detail)
}

func askWho(program string) string {
	if program == "" {
		check(errors.New("the suite could not make one"))
	}
	return strings.TrimSpace(string(must(exec.Command(program, "who").Output())))
}

func who() error {
	held, err := status("self", "CapEff")
	fmt.Fprintf(os.Stdout, "uid %d capabilities %s\n", os.Geteuid(), held)
	return err
}

// status is a line of the status of a process, which is a number or "self".
func status(process, name string) (string, error) {
	b, err := os.ReadFile("/proc/" + process + "/status")
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("no %s in its status", name))
}
