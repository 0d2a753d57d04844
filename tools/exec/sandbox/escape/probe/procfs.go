//go:build linux

// Doors through /proc of processes outside.

package main

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

var errSomebodyElse = errors.New("that number is another process in here")

func procfs(p *probe) {
	f, pid := p.inside("proc"), p.Victim.PID
	environ := func(name string, of scene.Process) {
		f(name, func() error {
			b, err := os.ReadFile(proc(of.PID, "environ"))
			if err == nil && (len(b) == 0 || scene.Sum(b) != of.EnvironSum) {
				err = errSomebodyElse
			}
			return p.did(err, "%d bytes", len(b))
		})
	}
	environ("read /proc/PID/environ of a process outside", p.Victim)
	environ("read /proc/PID/environ of the starter", p.Starter)
	for _, name := range []string{"cmdline", "maps", "stack", "syscall", "auxv", "io"} { // anything that is really the victim's
		f("read /proc/PID/"+name+" of a process outside", func() error {
			p.mustBeVictim()
			b, err := os.ReadFile(proc(pid, name))
			return p.did(err, "%d bytes", len(b))
		})
	}
	f("list /proc/PID/fd of a process outside", func() error {
		p.mustBeVictim()
		names, err := os.ReadDir(proc(pid, "fd"))
		return p.did(err, "%d descriptors", len(names))
	})
	f("read a file that a process outside has open and no name leads to", func() error {
		return p.read(proc(pid, "fd/") + strconv.Itoa(p.Victim.Secret))
	})
	f("read /proc/PID/mem of a process outside", func() error {
		fd := open(proc(pid, "mem"), unix.O_RDONLY)
		return p.toldBy(func(b []byte) (int, error) { return unix.Pread(fd, b, int64(p.Victim.Address)) })
	})
	o := p.outside("proc")
	o("write /proc/PID/oom_score_adj of a process outside", func() error { return store(proc(pid, "oom_score_adj"), "321") })
	o("write /proc/PID/coredump_filter of a process outside", func() error { return store(proc(pid, "coredump_filter"), "0x7") })
}

// mustBeVictim ends the attempt if the number means another process than the one outside, as it may in another pid namespace.
func (p *probe) mustBeVictim() { mustBe(p.Victim.PID, "\x00victim\x00") }

// mustBe ends the attempt if the command line of the process is another one. It may be hidden.
func mustBe(pid int, arguments string) {
	line, err := os.ReadFile(proc(pid, "cmdline"))
	if err == nil && !strings.Contains(string(line), arguments) {
		check(errSomebodyElse)
	}
}

// store writes to a file that is there already.
func store(path, value string) error { return writeTo(path, unix.O_WRONLY, value) }
