//go:build linux

// Doors through /proc of processes outside.

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

var errSomebodyElse = errors.New("that number is another process in here")

func procfs() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door { return door{name, "proc", false, try} }
	file := func(name, base string) door { // anything that is really the victim's
		return f(name, func(s *scene.Scene) (string, error) {
			mustBeVictim(s)
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.Victim.PID, base))
			return fmt.Sprintf("%d bytes", len(b)), err
		})
	}
	of := func(name string, of func(*scene.Scene) scene.Process) door {
		return f(name, func(s *scene.Scene) (string, error) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", of(s).PID))
			if err == nil && (len(b) == 0 || scene.Sum(b) != of(s).EnvironSum) {
				err = errSomebodyElse
			}
			return fmt.Sprintf("%d bytes", len(b)), err
		})
	}
	return []door{
		of("read /proc/PID/environ of a process outside", func(s *scene.Scene) scene.Process { return s.Victim }),
		of("read /proc/PID/environ of the starter", func(s *scene.Scene) scene.Process { return s.Starter }),
		file("read /proc/PID/cmdline of a process outside", "cmdline"),
		file("read /proc/PID/maps of a process outside", "maps"),
		file("read /proc/PID/stack of a process outside", "stack"),
		file("read /proc/PID/syscall of a process outside", "syscall"),
		file("read /proc/PID/auxv of a process outside", "auxv"),
		file("read /proc/PID/io of a process outside", "io"),
		f("list /proc/PID/fd of a process outside", func(s *scene.Scene) (string, error) {
			mustBeVictim(s)
			names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Victim.PID))
			return fmt.Sprintf("%d descriptors", len(names)), err
		}),
		f("read a file that a process outside has open and no name leads to", func(s *scene.Scene) (string, error) {
			return read(s, fmt.Sprintf("/proc/%d/fd/%d", s.Victim.PID, s.Victim.Secret))
		}),
		f("read /proc/PID/mem of a process outside", readMemory),
		plain("proc", "write /proc/PID/oom_score_adj of a process outside", func(s *scene.Scene) error {
			return store(fmt.Sprintf("/proc/%d/oom_score_adj", s.Victim.PID), "321")
		}),
		plain("proc", "write /proc/PID/coredump_filter of a process outside", func(s *scene.Scene) error {
			return store(fmt.Sprintf("/proc/%d/coredump_filter", s.Victim.PID), "0x7")
		}),
	}
}

// mustBeVictim ends the attempt if the number means another process than the one outside, as it may in another pid namespace.
func mustBeVictim(s *scene.Scene) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Victim.PID))
	if err == nil && !strings.HasSuffix(string(b), "\x00victim\x00") {
		check(errSomebodyElse)
	}
}

func readMemory(s *scene.Scene) (string, error) {
	fd := must(unix.Open(fmt.Sprintf("/proc/%d/mem", s.Victim.PID), unix.O_RDONLY, 0))
	return toldBy(s, func(b []byte) (int, error) { return unix.Pread(fd, b, int64(s.Victim.Address)) })
}

// store writes to a file that is there already.
func store(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
