// Opening terminals, and what the kernel shows of the programs that use one.

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// hostTerminal opens a terminal of the machine.
func hostTerminal() (master, slave *os.File, err error) { return polled(pty.Open()) }

// polled makes the daemon's end one whose reading can be interrupted.
func polled(master, slave *os.File, err error) (_, _ *os.File, _ error) {
	if err != nil {
		return nil, nil, err
	}
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	_ = master.Close()
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = slave.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), slave, nil
}

// openTerminal opens a terminal of the instance's own, which no process outside it can open by name. The
// machine's are used where the instance has none.
func (c *instance) openTerminal(users *os.File) (master, slave *os.File, err error) {
	at := slices.IndexFunc(c.namespaces, func(n namespace) bool { return n.kind == unix.CLONE_NEWNS })
	if at < 0 {
		return hostTerminal()
	}
	m := newMaker(users)
	m.about = "opening a terminal"
	m.do(unix.SYS_SETNS, int(c.namespaces[at].file.Fd()), unix.CLONE_NEWNS)
	far := m.kept(m.do(unix.SYS_OPENAT, unix.AT_FDCWD, "/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC))
	unlocked := new(int32)
	m.do(unix.SYS_IOCTL, far.at(), unix.TIOCSPTLCK, unsafe.Pointer(unlocked)).hold(unlocked)
	near := m.kept(m.do(unix.SYS_IOCTL, far.at(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC))
	if m.carryOut() != nil {
		return hostTerminal()
	}
	return polled(far.file("terminal"), near.file("terminal"), nil)
}

// A Prompt is a program that waits for a line which its terminal does not show.
type Prompt struct {
	PID     int
	Program string // the path of its executable; of a program of another user only its name
	Command string // its command line as it states it, at most 80 characters
	start   uint64 // ticks since boot
}

// Prompt returns the program that waits for a hidden line on the terminal: the terminal shows no
// typed characters, takes whole lines, and the program reads. ok is false if there is none, if
// anything else of the tree reads the terminal too, or if the session may have written the program
// or what it has loaded.
func (t *Terminal) Prompt() (found Prompt, ok bool) {
	group, hidden := t.state()
	if !hidden {
		return Prompt{}, false
	}
	for _, m := range t.process.members() {
		switch reading := t.use(m); {
		case reading == apart:
		case m.group == group && found.PID == 0:
			found = Prompt{PID: m.pid, Command: m.name(), start: m.start}
		case reading == reads || m.group == group:
			return Prompt{}, false
		}
	}
	if found.PID == 0 {
		return Prompt{}, false
	}
	found.Program, ok = t.process.foreign(found.PID)
	return found, ok
}

// Hidden reports whether the terminal does not show what is typed, and takes whole lines.
func (t *Terminal) Hidden() bool {
	_, hidden := t.state()
	return hidden
}

// state returns the process group in the foreground, and Hidden.
func (t *Terminal) state() (group int, hidden bool) {
	err := t.control(func(fd int) (err error) {
		if group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
			return err
		}
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			hidden = mode.Lflag&unix.ICANON != 0 && mode.Lflag&unix.ECHO == 0
		}
		return err
	})
	return group, hidden && err == nil
}

// Forget drops what was typed and not read.
func (t *Terminal) Forget() error {
	return t.control(func(fd int) error {
		near, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			return errno
		}
		defer unix.Close(int(near))
		return unix.IoctlSetInt(int(near), unix.TCFLSH, unix.TCIFLUSH)
	})
}

// Waits reports whether a program in the foreground reads from the terminal, and whether one that has
// it open polls, for input or for something else.
func (t *Terminal) Waits() (reading, waiting bool) {
	group, _ := t.state()
	for _, m := range t.process.members() {
		if m.group != group {
			continue
		}
		switch t.use(m) {
		case reads:
			reading = true
		case polls:
			waiting = true
		}
	}
	return reading, waiting
}

// A use is what a process does with the terminal.
type use uint8

const (
	apart use = iota
	polls     // it waits for one of several things
	reads     // it waits for input of the terminal
)

// polling are the calls that wait for one of several things, on every architecture.
var polling = append([]uintptr{unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2}, pollingHere...)

// use returns what the process does at the moment.
func (t *Terminal) use(m member) (found use) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", m.pid))
	if err != nil {
		return apart
	}
	for _, name := range tasks {
		text, err := os.ReadFile(name)
		if err != nil {
			if m.hides() {
				return reads
			}
			continue
		}
		fields := strings.Fields(string(text))
		call, err := strconv.Atoi(fields[0])
		if err != nil || len(fields) < 2 {
			continue // it runs
		}
		switch {
		case uintptr(call) == unix.SYS_READ && t.isAt(m.pid, fields[1]):
			return reads
		case slices.Contains(polling, uintptr(call)) && t.has(m.pid):
			found = polls
		}
	}
	return found
}

// hides reports whether the kernel does not show what the process does: it is a setuid program, or has made
// itself undumpable, as any program can.
func (m member) hides() bool {
	var info unix.Stat_t
	return unix.Stat(fmt.Sprintf("/proc/%d", m.pid), &info) == nil && int(info.Uid) != os.Geteuid()
}

// isRoots reports whether the process acts as root and the daemon does not: what the user has written cannot
// become that. Other users' numbers prove nothing, since a user may have some for user namespaces.
func (m member) isRoots() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil || os.Geteuid() == 0 {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if ids, is := strings.CutPrefix(line, "Uid:"); is {
			fields := strings.Fields(ids) // real, effective, saved, of the file system
			return len(fields) == 4 && fields[1] == "0"
		}
	}
	return false
}

// isAt reports whether the descriptor, as /proc writes an argument, is the terminal.
func (t *Terminal) isAt(pid int, argument string) bool {
	fd, err := strconv.ParseUint(strings.TrimPrefix(argument, "0x"), 16, 32)
	return err == nil && t.isTerminal(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
}

// has reports whether the process has the terminal open.
func (t *Terminal) has(pid int) bool {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(names, t.isTerminal)
}

// isTerminal reports whether an open file is the terminal, by its own name or as /dev/tty.
func (t *Terminal) isTerminal(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	device, is := info.Sys().(*syscall.Stat_t)
	return os.SameFile(info, t.slave) || is && device.Rdev == unix.Mkdev(5, 0)
}

// foreign returns the executable of a process of the tree if the tree could not have written it:
// neither it nor what it has loaded lies where the tree may write.
func (p *Process) foreign(pid int) (program string, ok bool) {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil { // a confined program cannot become another user
		m, err := look(pid)
		return m.comm, err == nil && p.confine.instance == nil && m.isRoots()
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil || !p.keeps(program) {
		return "", false
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), " ", 6)
		if len(fields) < 6 || !strings.Contains(fields[1], "x") {
			continue
		}
		if file := strings.TrimLeft(fields[5], " "); strings.HasPrefix(file, "/") && !p.keeps(file) {
			return "", false
		}
	}
	return program, true
}

// keeps reports whether a file is there, and the tree can neither change it nor put another one in
// its place.
func (p *Process) keeps(file string) bool {
	if !filepath.IsAbs(file) || pathname.Within("/dev", file) || pathname.Within("/proc", file) {
		return false
	}
	if _, err := os.Stat(file); err != nil { // also of a file that was deleted: its name has an appendix
		return false
	}
	if p.confine.instance != nil {
		return !slices.ContainsFunc(p.command.Policy.Places, func(place Place) bool {
			return place.Access == Write && pathname.Within(place.Path, file)
		})
	}
	for at := file; ; at = filepath.Dir(at) {
		if unix.Access(at, unix.W_OK) == nil {
			return false
		}
		if at == "/" {
			return true
		}
	}
}
