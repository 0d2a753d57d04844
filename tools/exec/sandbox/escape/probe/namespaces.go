//go:build linux

// Doors that make namespaces, or enter those of processes outside.

package main

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child makes a process by the call clone with two arguments. It has one thread, makes one call and does nothing else, as the
// calls for namespaces want. child returns the error of either.
func child(clone, c1, c2, trap, a1, a2 uintptr) error {
	runtime.LockOSThread()
	pid, no := rawChild(clone, c1, c2, trap, a1, a2)
	check(errno(no))
	var status unix.WaitStatus
	must(unix.Wait4(int(pid), &status, unix.WALL, nil))
	if status.Signaled() {
		return fmt.Errorf("killed by %v", status.Signal())
	}
	return errno(unix.Errno(status.ExitStatus()))
}

// rawChild makes the child, which gives the errno of its call as exit status. Nothing but raw system calls may happen between
// fork and exit.
//
//go:norace
//go:nocheckptr
func rawChild(clone, c1, c2, trap, a1, a2 uintptr) (uintptr, unix.Errno) {
	pid, _, no := unix.RawSyscall6(clone, c1, c2, 0, 0, 0, 0)
	if no != 0 || pid != 0 {
		return pid, no
	}
	_, _, no = unix.RawSyscall(trap, a1, a2, 0)
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(no), 0, 0)
	}
}

// childCall makes a call in a child.
func childCall(trap, a1, a2 uintptr) error {
	return child(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, trap, a1, a2)
}

func namespaces(p *probe) {
	f, pid := p.inside("namespaces"), p.Victim.PID
	for _, k := range []struct {
		name string
		flag uintptr
		file string
	}{
		{"user", unix.CLONE_NEWUSER, "user"},
		{"mount", unix.CLONE_NEWNS, "mnt"},
		{"pid", unix.CLONE_NEWPID, "pid"},
		{"network", unix.CLONE_NEWNET, "net"},
		{"ipc", unix.CLONE_NEWIPC, "ipc"},
		{"host name", unix.CLONE_NEWUTS, "uts"},
		{"cgroup", unix.CLONE_NEWCGROUP, "cgroup"},
		{"time", unix.CLONE_NEWTIME, "time"},
	} {
		f("unshare a "+k.name+" namespace", func() error { return childCall(unix.SYS_UNSHARE, k.flag, 0) })
		f("setns to the "+k.name+" namespace of a process outside", func() error {
			fd := open(proc(pid, "ns/"+k.file), unix.O_RDONLY)
			p.mustBeVictim()
			err := childCall(unix.SYS_SETNS, uintptr(fd), k.flag)
			if errors.Is(err, unix.EINVAL) { // the user namespace in which one already is cannot be entered
				return nil
			}
			return err
		})
		if k.flag != unix.CLONE_NEWTIME { // its bit means something else to clone
			f("clone with a "+k.name+" namespace", func() error {
				return child(unix.SYS_CLONE, k.flag|uintptr(unix.SIGCHLD), 0, unix.SYS_GETPID, 0, 0)
			})
		}
		f("clone3 with a "+k.name+" namespace", func() error {
			args := &[11]uint64{0: uint64(k.flag), 4: uint64(unix.SIGCHLD)}
			return child(unix.SYS_CLONE3, address(unsafe.Pointer(args)), 64, unix.SYS_GETPID, 0, 0)
		})
	}
	f("setns by a pidfd of a process outside", func() error {
		return childCall(unix.SYS_SETNS, uintptr(must(unix.PidfdOpen(pid, 0))), unix.CLONE_NEWUTS)
	})
}
