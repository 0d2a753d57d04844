//go:build linux

// Doors that must stand open: what any build does. A sandbox that shuts them is of no use.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func works() []door {
	f := func(name string, try func(*scene.Scene) error) door {
		return door{name, "works", false, func(s *scene.Scene) (string, error) { return "done", try(s) }}
	}
	writes := func(name string, try func(*scene.Scene) error) door {
		return door{name, "works in a root that may be written", false, func(s *scene.Scene) (string, error) { return "done", try(s) }}
	}
	return []door{
		f("make a socketpair", func(*scene.Scene) error {
			pair := must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
			must(unix.Write(pair[0], []byte("!")))
			_, err := unix.Read(pair[1], make([]byte, 1))
			return err
		}),
		f("read a file in the root", func(s *scene.Scene) error { _, err := os.ReadFile(own(s, ownFile)); return err }),
		f("run a program", func(*scene.Scene) error { return exec.Command("/bin/true").Run() }),
		f("signal a child of its own", signalChild),
		f("run a program that has no name", runUnnamed),
		f("trace a child of its own", traceChild),
		f("read the memory of a child of its own", readChild),
		writes("connect to a Unix socket of its own", func(s *scene.Scene) error {
			own, l := ownStream(s)
			defer l.Close()
			return speak("unix", own, []byte("!"))
		}),
		f("write to /dev/null", func(*scene.Scene) error { return scribble("/dev/null", unix.O_WRONLY) }),
		f("read from /dev/urandom", func(*scene.Scene) error {
			fd := must(unix.Open("/dev/urandom", unix.O_RDONLY, 0))
			_, err := unix.Read(fd, make([]byte, 1))
			return err
		}),
		f("read /proc/self/status", func(*scene.Scene) error { _, err := status("Pid"); return err }),
		f("write a file in the temporary directory", func(*scene.Scene) error {
			file := must(os.CreateTemp("", "toold-"))
			return os.Remove(file.Name())
		}),
		writes("write a file in the root", func(s *scene.Scene) error { return scribble(own(s, ownFile), unix.O_WRONLY) }),
		writes("create a file in the root", func(s *scene.Scene) error { return create(s, own(s, "new")) }),
		writes("chmod a file in the root", func(s *scene.Scene) error { return unix.Chmod(own(s, ownFile), 0o600) }),
		writes("rename a file between directories of the root", func(s *scene.Scene) error {
			return unix.Rename(own(s, ownFile), own(s, swapped+"/"+ownFile))
		}),
		writes("touch a file in the root", func(s *scene.Scene) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, own(s, ownFile), []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
		}),
		writes("write in .git beside what is protected", func(s *scene.Scene) error { return create(s, s.Root+"/.git/toold-new") }),
	}
}

func traceChild(*scene.Scene) error {
	runtime.LockOSThread()
	c := exec.Command("/bin/true")
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	check(c.Start())
	var status unix.WaitStatus
	_, err := unix.Wait4(c.Process.Pid, &status, 0, nil)
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("it is not stopped: %v", status)
	}
	return errors.Join(err, unix.PtraceDetach(c.Process.Pid), c.Wait())
}

func readChild(*scene.Scene) error {
	c := exec.Command("/bin/sleep", "60")
	check(c.Start())
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	b := make([]byte, 8) // of an address at which nothing is: who may not read is told so before
	_, err := unix.ProcessVMReadv(c.Process.Pid, []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 8, Len: 8}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

func signalChild(*scene.Scene) error {
	c := exec.Command("/bin/sleep", "60")
	check(c.Start())
	err := c.Process.Signal(unix.SIGTERM)
	if err != nil {
		err = errors.Join(err, c.Process.Kill())
	}
	_ = c.Wait()
	return err
}

func runUnnamed(*scene.Scene) error {
	program := must(os.ReadFile("/bin/true"))
	fd := must(unix.MemfdCreate("program", unix.MFD_CLOEXEC))
	must(unix.Write(fd, program))
	return exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)).Run()
}
