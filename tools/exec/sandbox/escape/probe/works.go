//go:build linux

// Doors that must stand open: what any build does. A sandbox that shuts them is of no use.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func works(p *probe) {
	f, writes := p.inside("works"), p.inside("works in a root that may be written")
	f("make a socketpair", func() error {
		pair := must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		check(write(pair[0], "!"))
		return readOne(pair[1])
	})
	f("read a file in the root", func() error { return readOne(open(p.ownFile, unix.O_RDONLY)) })
	f("run a program", func() error { return exec.Command("/bin/true").Run() })
	f("signal a child of its own", func() error {
		c := sleeper()
		defer end(c)
		return c.Process.Signal(unix.SIGTERM)
	})
	f("run a program that has no name", func() error {
		fd := must(unix.MemfdCreate("program", unix.MFD_CLOEXEC))
		must(unix.Write(fd, must(os.ReadFile("/bin/true"))))
		return exec.Command(proc(os.Getpid(), fmt.Sprintf("fd/%d", fd))).Run()
	})
	f("trace a child of its own", traceChild)
	f("read the memory of a child of its own", func() error {
		c := sleeper()
		defer end(c)
		return mayRead(c.Process.Pid)
	})
	writes("connect to a Unix socket of its own", func() error {
		defer p.ownStream().Close()
		return p.speak("unix", "o")
	})
	f("write to /dev/null", func() error { return scribble("/dev/null", unix.O_WRONLY) })
	f("read from /dev/urandom", func() error { return readOne(open("/dev/urandom", unix.O_RDONLY)) })
	f("read /proc/self/status", func() error { _, err := status("self", "Pid"); return err })
	f("write a file in the temporary directory", func() error { return os.Remove(must(os.CreateTemp("", "toold-")).Name()) })
	writes("write a file in the root", func() error { return scribble(p.ownFile, unix.O_WRONLY) })
	writes("create a file in the root", func() error { return create(p.own + "/new") })
	writes("chmod a file in the root", func() error { return unix.Chmod(p.ownFile, 0o600) })
	writes("rename a file between directories of the root", func() error { return unix.Rename(p.ownFile, p.swapped+"/own") })
	writes("touch a file in the root", func() error {
		return unix.UtimesNanoAt(cwd, p.ownFile, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
	})
	writes("write in .git beside what is protected", func() error { return create(p.Root + "/.git/toold-new") })
}

// readOne reads a byte.
func readOne(fd int) error {
	if must(unix.Read(fd, make([]byte, 1))) == 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func traceChild() error {
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

// sleeper starts a child that sleeps.
func sleeper() *exec.Cmd {
	c := exec.Command("/bin/sleep", "60")
	check(c.Start())
	return c
}

func end(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}
