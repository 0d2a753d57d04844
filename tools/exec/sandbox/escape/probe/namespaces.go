//go:build linux

// Doors that make namespaces, or enter those of processes outside.

package main

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// A childCall is made in a process that has one thread and does nothing else, as the calls for namespaces want.
func childCall(trap uintptr, args ...uintptr) (err error) {
	var a [3]uintptr
	copy(a[:], args)
	runtime.LockOSThread()
	pid, _, no := rawCall(trap, a[0], a[1], a[2])
	if no != 0 {
		return no
	}
	var status unix.WaitStatus
	must(unix.Wait4(int(pid), &status, unix.WALL, nil))
	if status.Signaled() {
		return fmt.Errorf("killed by %v", status.Signal())
	}
	return errno(unix.Errno(status.ExitStatus()))
}

// rawCall forks, makes the call in the child and gives its errno as exit status. Nothing but raw system calls may happen
// between fork and exit.
//
//go:norace
//go:nocheckptr
func rawCall(trap, a1, a2, a3 uintptr) (uintptr, uintptr, unix.Errno) {
	pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if no != 0 || pid != 0 {
		return pid, 0, no
	}
	_, _, no = unix.RawSyscall(trap, a1, a2, a3)
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(no), 0, 0)
	}
}

func namespaces() []door {
	kinds := []struct {
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
	}
	f := func(name string, try func(*scene.Scene) error) door {
		return door{name, "namespaces", false, func(s *scene.Scene) (string, error) { return "done", try(s) }}
	}
	var made []door
	for _, k := range kinds {
		made = append(made,
			f("unshare a "+k.name+" namespace", func(*scene.Scene) error { return childCall(unix.SYS_UNSHARE, k.flag) }),
			f("setns to the "+k.name+" namespace of a process outside", func(s *scene.Scene) error {
				fd := must(unix.Open(fmt.Sprintf("/proc/%d/ns/%s", s.Victim.PID, k.file), unix.O_RDONLY|unix.O_CLOEXEC, 0))
				mustBeVictim(s)
				return sameNamespace(childCall(unix.SYS_SETNS, uintptr(fd), k.flag))
			}))
		if k.flag != unix.CLONE_NEWTIME { // its bit means something else to clone
			made = append(made, f("clone with a "+k.name+" namespace", func(*scene.Scene) error { return cloneWith(k.flag) }))
		}
		made = append(made, f("clone3 with a "+k.name+" namespace", func(*scene.Scene) error { return clone3With(k.flag) }))
	}
	return append(made,
		f("setns by a pidfd of a process outside", func(s *scene.Scene) error {
			return childCall(unix.SYS_SETNS, uintptr(must(unix.PidfdOpen(s.Victim.PID, 0))), unix.CLONE_NEWUTS)
		}),
	)
}

// sameNamespace forgives the refusal to enter the user namespace in which one already is.
func sameNamespace(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func cloneWith(flag uintptr) error {
	runtime.LockOSThread()
	pid, no := rawClone(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0)
	return reap(pid, no)
}

func clone3With(flag uintptr) error {
	runtime.LockOSThread()
	args := [11]uint64{0: uint64(flag), 4: uint64(unix.SIGCHLD)}
	pid, no := rawClone(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), 64)
	return reap(pid, no)
}

//go:norace
//go:nocheckptr
func rawClone(trap, a1, a2 uintptr) (uintptr, unix.Errno) {
	pid, _, no := unix.RawSyscall6(trap, a1, a2, 0, 0, 0, 0)
	if no != 0 || pid != 0 {
		return pid, no
	}
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

func reap(pid uintptr, no unix.Errno) error {
	if no != 0 {
		return no
	}
	_, err := unix.Wait4(int(pid), nil, unix.WALL, nil)
	return err
}
